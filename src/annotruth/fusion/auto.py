"""Choose a method by how well the truth that it finds without some raters foretells what these said.

The more a fused truth knows, the fewer bits it takes to tell a held-out rater's labels, given it and how that rater
errs. This needs no known truth, and treats all methods alike: one with more to learn than the labels can teach
foretells worse. The fewest bits decide: the simplest of the methods that chance does not tell apart is often a good
deal worse.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.data.answers import Answers
from annotruth.errors import InputError
from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.em import MIN_EXPECTED_COUNT
from annotruth.fusion.registry import make_estimator
from annotruth.fusion.stores import AnswerStore, MaskStore
from annotruth.fusion.votes import Votes

Candidate = tuple[str, Mapping[str, Any]]
# The simplest first: it is taken where several foretell the same.
LABEL_CANDIDATES: tuple[Candidate, ...] = (
    ("majority", {}), ("wawa", {}), ("dawid-skene", {"one_coin": True}), ("dawid-skene", {}), ("ibcc", {}),
    ("hierarchical-dawid-skene", {}), ("clustered-dawid-skene", {}), ("glad", {}), ("mace", {}),
)  # fmt: skip
MASK_CANDIDATES: tuple[Candidate, ...] = (("majority", {}), ("staple", {}), ("dawid-skene", {}), ("ibcc", {}))
ORDERED_CANDIDATES: tuple[Candidate, ...] = (("ordinal-dawid-skene", {"ordered": True}),)
MIN_RATERS = 3
_FOLDS, _MAX_ANSWERS, _MAX_CASES = 10, 100_000, 50
_DIGITS = 6  # of bits that count
_SHARED_LABELS = 10.0  # that a held-out rater is taken to have given as all of them do


@dataclass(frozen=True)
class Choice:
    """The method that foretells held-out raters best.

    Attributes
    ----------
    method, options : as :func:`~annotruth.fusion.registry.make_estimator` takes them
    bits : bits per held-out label, by method, the fewest first
    refused : why other methods could not take the data
    """

    method: str
    options: Mapping[str, Any]
    bits: Mapping[str, float]
    refused: Mapping[str, str]

    def __str__(self) -> str:
        chosen = _name(self.method, self.options)
        beside = "; ".join(f"{name} {bits:.3f}" for name, bits in self.bits.items() if name != chosen)
        return (
            f"Chosen: {chosen}. Given the truth that it finds without them, raters' labels take "
            f"{self.bits[chosen]:.3f} bits each to tell, the fewest{f' ({beside})' if beside else ''}."
        )


def choose(
    annotations: Annotations, candidates: Sequence[Candidate] | None = None, seed: int = 0, *, ordered: bool = False
) -> Choice:
    """Choose a method for annotations; raters are held out in ten groups, items beyond 100,000 answers left out.

    ``ordered`` says that the classes are grades that stand in their order: ordinal-dawid-skene is then among the
    methods. Names that are numbers do not say so, since any classes may be numbered.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 300)
    >>> skills = [0.95] * 3 + [0.5] * 7
    >>> answers = np.stack([np.where(rng.random(300) < p, truth, 1 - truth) for p in skills], axis=1)
    >>> choose(Annotations.from_answers(answers), [("majority", {}), ("dawid-skene", {})]).method
    'dawid-skene'
    """
    if len(annotations.raters) < MIN_RATERS:
        raise InputError(
            f"To choose a method, raters are held out in turn, and there are {len(annotations.raters)}. Name a method."
        )
    is_masks = annotations.kind == "masks"
    candidates = candidates or (MASK_CANDIDATES if is_masks else LABEL_CANDIDATES)
    candidates = (*candidates, *(ORDERED_CANDIDATES if ordered else ()))
    sample = _sample(annotations, np.random.default_rng(seed))
    votes = _votes(sample)
    told: dict[str, np.ndarray] = {}
    refused, made = {}, {}
    for method, options in candidates:
        name = _name(method, options)
        try:
            estimator = make_estimator(method, options=options)
            estimator.check(annotations)
            told[name] = held_out_bits(estimator, votes, np.random.default_rng(seed))
            made[name] = method, options
        except InputError as error:
            refused[name] = str(error)
    if not told:
        raise InputError(f"No method can take these labels. {next(iter(refused.values()))}")
    chosen = min(told, key=lambda name: round(float(told[name].mean()), _DIGITS))
    bits = dict(sorted(((name, float(each.mean())) for name, each in told.items()), key=lambda item: item[1]))
    return Choice(*made[chosen], bits, refused)


def held_out_bits(estimator: FusionEstimator, votes: Votes, rng: np.random.Generator) -> np.ndarray:
    """Bits that it takes to tell what raters said of items, given the truth that others' labels show.

    For each group of raters, (groups,): their bits, so weighted that the mean over the groups is bits per label.

    How a rater errs is learnt on one half of the items, and used on the other; the votes of masks, which stand for many
    pixels, are used for both.
    """
    answers, n_folds = votes.answers, min(_FOLDS, votes.n_raters)
    fold = rng.permutation(votes.n_raters) % n_folds
    half = rng.integers(0, 2, votes.n_rows) if (votes.weight == 1).all() else np.zeros(votes.n_rows, dtype=np.int64)
    total, told = np.zeros(n_folds), np.zeros(n_folds)
    for number in range(n_folds):
        held = fold[answers.rater] == number
        others = replace(votes, answers=_some(answers, ~held))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            posterior = estimator.posterior(others, estimator.estimate(others))
        held &= others.answered[answers.item]
        weight = votes.weight[answers.item] * held
        chance = _chances(_some(answers, held), posterior, half, votes)
        total[number] = weight.sum()
        told[number] = -weight[held] @ np.log2(np.maximum(chance, MIN_EXPECTED_COUNT))
    if not total.any():
        raise InputError("No item was labelled by several raters: nobody can be held out.")
    return told / total.mean()


def _name(method: str, options: Mapping[str, Any]) -> str:
    return ", ".join([method, *(f"{option}={value}" for option, value in options.items())])


def _chances(answers: Answers, posterior: np.ndarray, half: np.ndarray, votes: Votes) -> np.ndarray:
    """How probable each answer (answers,) is, given the posterior of its item and how its rater errs on others."""
    n_classes, chance = votes.n_classes, np.empty(len(answers))
    cell = answers.rater.astype(np.int64) * n_classes + answers.label
    for part in np.unique(half):
        tested = half[answers.item] == part
        taught = ~tested if (half != part).any() else tested
        weight = votes.weight[answers.item[taught]]
        counts = np.stack(
            [
                np.bincount(cell[taught], weight * posterior[answers.item[taught], true],
                            minlength=votes.n_raters * n_classes)
                for true in range(n_classes)
            ],
            axis=1,
        ).reshape(votes.n_raters, n_classes, n_classes)  # [rater, observed, true]  # fmt: skip
        shared = counts.sum(axis=0) + 1 / n_classes
        counts += _SHARED_LABELS * shared / shared.sum(axis=0)
        matrix = counts / counts.sum(axis=1, keepdims=True)
        said = matrix[answers.rater[tested], answers.label[tested]]
        chance[tested] = (said * posterior[answers.item[tested]]).sum(axis=1)
    return chance


def _some(answers: Answers, which: np.ndarray) -> Answers:
    return Answers(answers.item[which], answers.rater[which], answers.label[which])


def _sample(annotations: Annotations, rng: np.random.Generator) -> Annotations:
    """As many items as are enough to compare methods."""
    n_items = len(annotations)
    if annotations.kind == "masks":
        most = _MAX_CASES
    else:
        most = max(1, n_items * _MAX_ANSWERS // max(len(annotations.answers), 1))
    return annotations if n_items <= most else annotations.take(np.sort(rng.permutation(n_items)[:most]))


def _votes(annotations: Annotations) -> Votes:
    n_classes = len(annotations.classes)
    if annotations.kind == "masks":
        masks = MaskStore(n_classes, None, by_case=False)
        masks.add(annotations, None, None)
        return masks.votes()
    table = AnswerStore(n_classes, None)
    table.add(annotations, None)
    return table.votes()
