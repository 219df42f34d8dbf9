"""Choose a method, or weights of several, by how well the truth found without some raters foretells what these said.

The more a fused truth knows, the fewer bits it takes to tell a held-out rater's labels, given it and how that rater
errs. This needs no known truth, and treats all methods alike: one with more to learn than the labels can teach
foretells worse.

Of masks, the method with the fewest bits is taken. Of tables, methods are averaged, with weights by how well each
foretells: the one with the fewest bits is often not the one that is right most often. Methods too close for the labels
to tell apart differ by points; and bits count how sure a method is, which its labels do not show.
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
from annotruth.fusion.ordinal import Order, grades_of
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
AVERAGED = "averaged"
MIN_RATERS = 3
_FOLDS, _MAX_ANSWERS, _MAX_CASES = 10, 100_000, 50
_DIGITS = 6  # of bits that count
_MIN_WEIGHT = 0.02  # below this a method changes hardly any label, but takes its time
_ROUNDS = 200  # of the weights, which stay between all alike and those that fit the held-out labels best, and too well
_SHARED_LABELS = 10.0  # that a held-out rater is taken to have given as all of them do


@dataclass(frozen=True)
class Choice:
    """The method that foretells held-out raters best; of tables mostly "averaged", whose options name the methods.

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
        chosen = AVERAGED if self.method == AVERAGED else _name(self.method, self.options)
        beside = "; ".join(f"{name} {bits:.3f}" for name, bits in self.bits.items() if name != chosen)
        members = sorted(self.options.get("members", ()), key=lambda member: -member[2])
        of = ", ".join(f"{_name(method, options)} {weight:.0%}" for method, options, weight in members)
        return (
            f"Chosen: {chosen}{f' ({of})' if of else ''}. Given the truth found so without them, raters' labels take "
            f"{self.bits[chosen]:.3f} bits each to tell, the fewest{f' ({beside})' if beside else ''}."
        )


def choose(
    annotations: Annotations, candidates: Sequence[Candidate] | None = None, seed: int = 0, *, ordered: Order = None
) -> Choice:
    """Choose a method for masks, or weights of methods for a label table.

    Raters are held out in ten groups; items beyond 100,000 answers are left out.

    ``ordered`` says that the classes are grades, and in which order, as for ordinal-dawid-skene, which is then among
    the methods. Names that are numbers do not say so, since any classes may be numbered.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 300)
    >>> skills = [0.95] * 3 + [0.5] * 7
    >>> answers = np.stack([np.where(rng.random(300) < p, truth, 1 - truth) for p in skills], axis=1)
    >>> choice = choose(Annotations.from_answers(answers), [("majority", {}), ("dawid-skene", {})])
    >>> choice.method, list(choice.bits)
    ('averaged', ['averaged', 'dawid-skene', 'majority'])
    >>> vote, model = choice.options["members"]
    >>> vote[0], model[0], vote[2] < 0.1 < 0.9 < model[2]
    ('majority', 'dawid-skene', True)
    """
    if len(annotations.raters) < MIN_RATERS:
        raise InputError(
            f"To choose a method, raters are held out in turn, and there are {len(annotations.raters)}. Name a method."
        )
    is_masks = annotations.kind == "masks"
    candidates = candidates or (MASK_CANDIDATES if is_masks else LABEL_CANDIDATES)
    if ordered:
        grades_of(annotations.classes, ordered)
        candidates = (*candidates, ("ordinal-dawid-skene", {"ordered": ordered}))
    sample = _sample(annotations, np.random.default_rng(seed))
    votes = _votes(sample)
    chances: dict[str, np.ndarray] = {}
    made: dict[str, Candidate] = {}
    refused = {}
    for method, options in candidates:
        name = _name(method, options)
        try:
            estimator = make_estimator(method, options=options)
            estimator.check(annotations)
            chances[name] = held_out_chances(estimator, votes, np.random.default_rng(seed))
            made[name] = method, options
        except InputError as error:
            refused[name] = str(error)
    if not chances:
        raise InputError(f"No method can take these labels. {next(iter(refused.values()))}")
    bits = {name: held_out_bits(each, votes) for name, each in chances.items()}
    chosen = made[min(bits, key=lambda name: round(bits[name], _DIGITS))]
    differ = len({round(each, _DIGITS) for each in bits.values()}) > 1
    if not is_masks and differ:
        every = np.stack(list(chances.values()))
        weights = mixture_weights(every, votes.weight[votes.answers.item])
        weights = np.where(weights >= min(_MIN_WEIGHT, weights.max()), weights, 0.0)
        weights /= weights.sum()
        members = tuple((*made[name], float(weight)) for name, weight in zip(chances, weights) if weight > 0)
        if len(members) > 1:
            bits[AVERAGED] = held_out_bits(np.tensordot(weights, every, axes=1), votes)
            chosen = AVERAGED, {"members": members}
    return Choice(*chosen, dict(sorted(bits.items(), key=lambda item: item[1])), refused)


def mixture_weights(chances: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Weights (methods,) that give what was said a high probability, by expectation-maximisation from all alike.

    It is stopped long before the highest: methods differ on few items, whose labels are not independent, and weights
    that fit these best leave out methods that are as good.

    Parameters
    ----------
    chances : (methods, answers) how probable each method makes each answer; NaN where it was not asked
    weight : (answers,) how often each counts

    Examples
    --------
    >>> chances = np.array([[0.9, 0.9, 0.9, 0.1], [0.1, 0.1, 0.1, 0.9], [0.1, 0.1, 0.1, 0.1]])
    >>> mixture_weights(chances, np.ones(4)).round(2)
    array([0.81, 0.19, 0.  ])
    """
    asked = ~np.isnan(chances).any(axis=0)
    chances, weight = np.maximum(chances[:, asked], MIN_EXPECTED_COUNT), weight[asked]
    weights = np.full(len(chances), 1 / len(chances))
    for _ in range(_ROUNDS):  # an answer's share in a method is how well that foretold it
        weights = weights * (chances @ (weight / (weights @ chances)))
        weights /= weights.sum()
    return weights


def held_out_bits(chances: np.ndarray, votes: Votes) -> float:
    """Bits per label, given how probable each answer is (answers,), NaN where nobody asked."""
    weight = np.where(np.isnan(chances), 0.0, votes.weight[votes.answers.item])
    told = np.log2(np.fmax(chances, MIN_EXPECTED_COUNT))  # of NaN and a number, the number
    return float(-weight @ told / weight.sum())


def held_out_chances(estimator: FusionEstimator, votes: Votes, rng: np.random.Generator) -> np.ndarray:
    """How probable what raters said of items is, given the truth that others' labels show: (answers,).

    NaN where nobody else said anything of the item.

    How a rater errs is learnt on one half of the items, and used on the other; the votes of masks, which stand for many
    pixels, are used for both.
    """
    answers, n_folds = votes.answers, min(_FOLDS, votes.n_raters)
    fold = rng.permutation(votes.n_raters) % n_folds
    half = rng.integers(0, 2, votes.n_rows) if (votes.weight == 1).all() else np.zeros(votes.n_rows, dtype=np.int64)
    chance = np.full(len(answers), np.nan)
    for number in range(n_folds):
        held = fold[answers.rater] == number
        others = replace(votes, answers=_some(answers, ~held))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            posterior = estimator.posterior(others, estimator.estimate(others))
        held &= others.answered[answers.item]
        chance[held] = _chances(_some(answers, held), posterior, half, votes)
    if not (votes.weight[answers.item] * ~np.isnan(chance)).any():
        raise InputError("No item was labelled by several raters: nobody can be held out.")
    return chance


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
            dtype=np.float64,  # of no answers, bincount gives whole numbers
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
