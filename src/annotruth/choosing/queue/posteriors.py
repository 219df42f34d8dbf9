"""What is known of each item before labels are ordered, in one form for label tables and for masks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from annotruth.errors import InputError
from annotruth.fusion.base import FusionEstimator, too_many_matrices
from annotruth.fusion.em import confusion_from_counts, log_of, votes_posterior
from annotruth.fusion.votes import Votes
from annotruth.validation import MISSING_LABEL

SHRINKAGE = 4.0
"""Labels that a rater is taken to have given as all raters do, and of each class as they themselves do."""


@dataclass(frozen=True)
class ItemPosteriors:
    """Items as rows of posteriors: one row for an item of a label table, several for a case with masks.

    Attributes
    ----------
    items, raters, classes : names
    posterior : (rows, classes) what is known of the truth
    weight : (rows,) how much a row counts: 1 in label tables; of masks, its pixels as a share of the foreground
    pieces : (rows,) how many independent pieces of doubt it stands for; 1 in label tables
    size : (rows,) how many items or pixels it stands for; 1 in label tables
    first_row : (items + 1,) item i's rows are first_row[i] … first_row[i + 1] - 1; an item may have none
    sure, total : items or pixels that stand in no row: how many of them are expected to be right, and how many there
        are in all, those of the rows too
    confusion : (raters, classes, classes), [true, observed]
    prior : (classes,)
    first_label, rater_of : (items + 1,) and (labels,): item i was labelled by the raters
        rater_of[first_label[i] : first_label[i + 1]]
    evidence : (raters,) items that each labelled and others too: what is known of a rater's skill rests on these
    describe : says in words what is known of an item
    whole : (items,) how much all of an item counts, also what stands in no row; None where its rows are all of it
    disagreement : (items,) how much models of several seeds disagree on each, in nats: the mutual information of the
        truth and the model (BALD); None where there is one model, or a fusion
    """

    items: tuple[str, ...]
    raters: tuple[str, ...]
    classes: tuple[str, ...]
    posterior: np.ndarray
    weight: np.ndarray
    pieces: np.ndarray
    size: np.ndarray
    first_row: np.ndarray
    sure: float
    total: float
    confusion: np.ndarray
    prior: np.ndarray
    first_label: np.ndarray
    rater_of: np.ndarray
    evidence: np.ndarray
    describe: Callable[[int], str]
    votes: Votes | None = None
    whole: np.ndarray | None = None
    disagreement: np.ndarray | None = None

    @property
    def n_labels(self) -> np.ndarray:
        """How many raters labelled each item, (items,)."""
        return np.diff(self.first_label)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums over each item's rows (items, …) of something by row (rows, …)."""
        return sum_rows(values, self.first_row)

    def labelled(self, items: np.ndarray) -> np.ndarray:
        """Who labelled some of the items, bool (some items, raters)."""
        made = np.zeros((len(items), len(self.raters)), dtype=bool)
        place, label = slots(self.first_label, items)
        made[place, self.rater_of[label]] = True
        return made


def sum_rows(values: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Sums (parts, …) of the rows first[i] … first[i + 1] - 1 of values (rows, …).

    Examples
    --------
    >>> sum_rows(np.array([1.0, 2.0, 3.0]), np.array([0, 2, 2, 3])).tolist()
    [3.0, 0.0, 3.0]
    """
    if len(values) == len(first) - 1 and (np.diff(first) == 1).all():
        return values
    sums = np.zeros((len(first) - 1, *values.shape[1:]))
    filled = np.flatnonzero(np.diff(first))
    if len(filled):
        sums[filled] = np.add.reduceat(values, first[filled], axis=0)
    return sums


def slots(first: np.ndarray, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of everything that belongs to some items: the place of its item among them, and its own place.

    Examples
    --------
    >>> slots(np.array([0, 2, 2, 3]), np.array([2, 0]))
    (array([0, 1, 1]), array([2, 0, 1]))
    """
    count = first[items + 1] - first[items]
    place = np.repeat(np.arange(len(items)), count)
    within = np.arange(len(place)) - np.repeat(np.cumsum(count) - count, count)
    return place, first[items][place] + within


def rater_matrices(fused: FusionEstimator, pixels: np.ndarray | None = None) -> np.ndarray:
    """Confusion matrices (raters, classes, classes) to expect labels by; see :func:`shrink`.

    An estimator that has a ``confusion_prior`` is taken at its word.

    Parameters
    ----------
    pixels : masks: (items, raters) how many pixels each rater labelled, which count as their square root: neighbours
        are not independent

    Examples
    --------
    >>> import annotruth as at
    >>> answers = np.array([[0, 0, 0, -1], [1, 1, -1, -1], [0, 0, -1, -1], [1, 1, -1, -1]])
    >>> rater_matrices(at.MajorityVote().fit(at.Annotations.from_answers(answers)))[:, 0, 0].round(2)
    array([0.97, 0.97, 0.95, 0.92])
    """
    n_raters, n_classes = len(fused.raters_), len(fused.classes_)
    if too_many_matrices(n_raters, n_classes):
        raise InputError(
            f"{n_raters:,} raters and {n_classes:,} classes make too many confusion matrices to choose by. Join rare "
            "classes, or leave out raters with few answers."
        )
    pseudo = fused.pseudo_counts(fused.raters_, n_classes)
    if pseudo is not None:
        return confusion_from_counts(fused.expected_counts_, pseudo, one_coin=fused.one_coin)
    counts = fused.expected_counts_
    if pixels is not None:
        labelled = np.maximum(fused.labelled_counts_, 1)
        pieces = np.sqrt(np.maximum(pixels, 0)).sum(axis=0)
        counts = counts * (pieces / labelled)[:, None, None]
    return confusion_from_counts(counts, shrink(counts), one_coin=fused.one_coin)


def shrink(counts: np.ndarray, belief: np.ndarray | None = None, own: float = SHRINKAGE) -> np.ndarray:
    """Labels (raters, classes, classes) to add to what is counted of each rater, for little is known of many.

    A rater who was right twice of twice is not faultless, and one who labelled nothing is like the others, as far as
    anybody knows: skills are drawn to that of all labels. And who was never seen to label a class is taken to be as
    good at it as at others: rows are drawn to the rater's skill, with errors as all raters make them.

    Parameters
    ----------
    counts : (raters, classes, classes) expected counts, [true, observed]
    belief : (classes, classes) labels to add to those of all raters together; by default a little more than one of each
        class, mostly right
    own : labels of each class that a rater is taken to have given with their own skill

    Examples
    --------
    >>> shrink(np.array([[[9.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]])).round(2)[:, 1]
    array([[0.45, 3.55],
           [0.57, 3.43]])
    """
    n_classes = counts.shape[-1]
    together = counts.sum(axis=0) + (np.eye(n_classes) + 1 / n_classes if belief is None else belief)
    usual = np.trace(together) / together.sum()
    errors = np.where(np.eye(n_classes, dtype=bool), 0.0, together)
    errors /= np.maximum(errors.sum(axis=1, keepdims=True), 1e-300)
    right = np.trace(counts, axis1=1, axis2=2)
    skill = (right + SHRINKAGE * usual) / (counts.sum(axis=(1, 2)) + SHRINKAGE)
    return own * np.where(np.eye(n_classes, dtype=bool), skill[:, None, None], (1 - skill)[:, None, None] * errors)


def table_posteriors(fused: FusionEstimator) -> ItemPosteriors:
    """Items of a label table, from an estimator that was fitted to it.

    The posterior is Bayes' rule with the matrices of :func:`rater_matrices`; where the truth is known it is certain.

    Examples
    --------
    >>> import annotruth as at
    >>> answers = np.array([[0, 0, 1], [1, 1, -1], [0, 0, 0], [1, 1, 1]])
    >>> found = table_posteriors(at.DawidSkene().fit(at.Annotations.from_answers(answers, raters=["ann", "bob", "cy"])))
    >>> found.posterior.shape, found.describe(0)
    ((4, 2), '2 of 3 say 0, 1 says 1')
    """
    return posteriors_of_votes(fused.votes(), fused.prior_, rater_matrices(fused), fused.items_, fused.classes_)


def posteriors_of_votes(
    votes: Votes, prior: np.ndarray, confusion: np.ndarray, items: tuple[str, ...], classes: tuple[str, ...]
) -> ItemPosteriors:
    """Items of a label table, from their votes.

    Parameters
    ----------
    prior : (classes,) class frequencies, or (items, classes) what a model says of each item
    confusion : (raters, classes, classes), [true, observed]
    """
    posterior, _ = votes_posterior(votes, log_of(prior), log_of(confusion))
    n_items = votes.n_rows

    def describe(item: int) -> str:
        given = votes.answers.label[votes.first_answer[item] : votes.first_answer[item + 1]]
        return describe_votes(np.bincount(given, minlength=votes.n_classes), classes)

    return ItemPosteriors(
        items=items, raters=votes.raters, classes=classes, posterior=posterior, weight=np.ones(n_items),
        pieces=np.ones(n_items), size=np.ones(n_items),
        first_row=np.arange(n_items + 1), sure=0.0, total=float(n_items), confusion=confusion,
        prior=prior if prior.ndim == 1 else prior.mean(axis=0), first_label=votes.first_answer,
        rater_of=votes.answers.rater, describe=describe, votes=votes,
        evidence=shared_items(votes.first_answer, votes.answers.rater, votes.n_raters, votes.gold != MISSING_LABEL),
    )  # fmt: skip


def shared_items(
    first_label: np.ndarray, rater_of: np.ndarray, n_raters: int, known: np.ndarray | None = None
) -> np.ndarray:
    """How many items each rater labelled that others labelled too, or of which the truth is known: (raters,).

    Parameters
    ----------
    first_label, rater_of : who labelled what, as in :class:`ItemPosteriors`
    known : bool (items,) where the truth is known

    Examples
    --------
    >>> shared_items(np.array([0, 2, 3]), np.array([0, 1, 1]), n_raters=3)
    array([1, 1, 0])
    """
    count = np.diff(first_label)
    shared = count > 1 if known is None else (count > 1) | known
    return np.bincount(rater_of[np.repeat(shared, count)], minlength=n_raters)


def describe_votes(counts: np.ndarray, classes: tuple[str, ...]) -> str:
    """Say who said what: (classes,) votes.

    Examples
    --------
    >>> describe_votes(np.array([0, 3]), ("cat", "dog")), describe_votes(np.array([0, 0]), ("cat", "dog"))
    ('all 3 say dog', 'nobody has labelled it')
    """
    total, named = int(counts.sum()), [int(one) for one in np.argsort(-counts, kind="stable") if counts[one]]
    if not named:
        return "nobody has labelled it"
    if len(named) == 1:
        return f"the only label says {classes[named[0]]}" if total == 1 else f"all {total} say {classes[named[0]]}"

    def say(one: int) -> str:
        return f"{'says' if counts[one] == 1 else 'say'} {classes[one]}"

    others = ", ".join(f"{counts[one]} {say(one)}" for one in named[1:3])
    more = " and others differ" if len(named) > 3 else ""
    return f"{counts[named[0]]} of {total} {say(named[0])}, {others}{more}"
