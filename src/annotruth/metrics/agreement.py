"""How far raters agree, beyond what chance would give; and on which items they do not."""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.data.confusion import confusion_counts, is_labelled
from annotruth.errors import InputError
from annotruth.metrics.registry import metric
from annotruth.metrics.votes import Masks, count_classes, each_item, vote_counts
from annotruth.validation import MISSING_PIXEL, one_of


@metric("Cohen's kappa", "prediction", "truth", "n_classes", range=(-1.0, 1.0))
def cohen_kappa(a: np.ndarray, b: np.ndarray, n_classes: int | None = None) -> float:
    """Cohen's kappa: the agreement of two raters beyond chance.

    Parameters
    ----------
    a, b : class numbers of one shape (answers, or masks); what either did not label (-1 or 255) does not count
    n_classes : needed only to tell class 255 from a missing label

    Returns
    -------
    1 = full agreement, 0 = as by chance. nan if they share no item, or if both gave one and the same class to all
    they share: then chance would agree as well, and nothing can be said.

    Examples
    --------
    >>> cohen_kappa(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]))
    0.5
    """
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        raise InputError(f"Two raters' labels must have one shape, found {a.shape} and {b.shape}.")
    n_classes = n_classes if n_classes is not None else 1 + max(_highest(a), _highest(b))
    counts = confusion_counts(a, b, n_classes)
    total = counts.sum()
    if total == 0:
        return float("nan")
    observed = float(np.trace(counts) / total)
    chance = float(counts.sum(axis=0) / total @ (counts.sum(axis=1) / total))
    return _beyond_chance(observed, chance)


@metric("Fleiss' kappa", "answers", "n_classes", range=(-1.0, 1.0))
def fleiss_kappa(answers: Annotations | np.ndarray, n_classes: int | None = None) -> float:
    """Fleiss' kappa: the agreement of any number of raters beyond chance.

    Items may have different numbers of answers. Those with fewer than two say nothing about agreement and are left
    out; the others count alike, both in the observed agreement (the mean share of agreeing pairs of answers) and in
    the frequency of the classes (the mean share of answers). With equal numbers this is Fleiss' definition.

    Parameters
    ----------
    answers : a label table as annotations, or (items, raters) class numbers, -1 = missing

    Returns
    -------
    1 = full agreement, 0 = as by chance; nan if no item has two answers or all answers are one class

    Examples
    --------
    >>> round(fleiss_kappa(np.array([[0, 0, 0], [1, 1, 1], [0, 0, 1]])), 3)
    0.55
    """
    counts, answered = _answered_twice(vote_counts(answers, n_classes))
    if not len(counts):
        return float("nan")
    agreeing = ((counts**2).sum(axis=1) - answered) / (answered * (answered - 1))
    share = (counts / answered[:, None]).mean(axis=0)
    return _beyond_chance(float(agreeing.mean()), float(share @ share))


@metric("Krippendorff's alpha", "answers", range=(-1.0, 1.0))
def krippendorff_alpha(
    answers: Annotations | np.ndarray,
    level: Literal["nominal", "ordinal", "interval"] = "nominal",
    n_classes: int | None = None,
) -> float:
    """Krippendorff's alpha: one minus the observed over the expected disagreement, for any pattern of missing labels.

    Parameters
    ----------
    answers : a label table as annotations, or (items, raters) class numbers, -1 = missing. Items with fewer than
        two answers are left out
    level : how far apart two classes are: all alike ("nominal"), by the answers that lie between them ("ordinal"),
        or by the difference of their numbers ("interval")

    Returns
    -------
    1 = full agreement, 0 = as by chance; nan if no item has two answers or all answers are one class

    Examples
    --------
    >>> round(krippendorff_alpha(np.array([[0, 0, -1], [1, 1, 1], [0, 1, 0]])), 3)
    0.562
    """
    one_of(level, ("nominal", "ordinal", "interval"), "level")
    counts, answered = _answered_twice(vote_counts(answers, n_classes))
    # Each item's answers form ordered pairs, weighted so that an item counts as often as it has answers.
    weighted = counts / (answered[:, None] - 1)
    coincidence = counts.T @ weighted - np.diag(weighted.sum(axis=0))
    frequency = counts.sum(axis=0)
    distance = _class_distance(frequency, level)
    expected = (np.outer(frequency, frequency) * distance).sum() / max(frequency.sum() - 1, 1)
    return 1 - float((coincidence * distance).sum() / expected) if expected > 0 else float("nan")


@metric("vote entropy", "masks", "n_classes", better="neither", axes=("item",), form=".3f")
def vote_entropy(labels: Masks, n_classes: int | None = None) -> np.ndarray:
    """How evenly the raters' votes are spread on each item: (items,), to sort cases by.

    The entropy of the votes on a pixel, averaged over the item's pixels that somebody labelled, as a share of the
    entropy of votes that are spread evenly over all classes: 0 = all agree, 1 = as divided as can be. For a label
    table, the entropy of the votes on the item. nan for an item that nobody labelled.

    Parameters
    ----------
    labels : annotations of either kind; or masks (items, raters, *spatial) or one (raters, *spatial) array per item
    n_classes : by default as many as the annotations name, or as the labels show

    Examples
    --------
    >>> agreed, divided = [[[0, 1]], [[0, 1]]], [[[0, 1]], [[0, 0]]]
    >>> vote_entropy(np.array([agreed, divided]))
    array([0. , 0.5])
    """
    if isinstance(labels, Annotations) and labels.kind == "labels":
        return _entropy(vote_counts(labels).T)
    n_classes = count_classes(labels, n_classes)
    scores: list[float] = []
    for item in each_item(labels):
        is_labelled(item, n_classes, f"Item {len(scores)}")
        entropy = _entropy(np.stack([(item == label).sum(axis=0) for label in range(n_classes)]))
        voted = ~np.isnan(entropy)
        scores.append(float(entropy[voted].mean()) if voted.any() else float("nan"))
    return np.array(scores)


@metric("pairwise disagreement", "masks", "n_classes", better="neither", axes=("item",), form=".3f")
def pairwise_disagreement(
    labels: Masks, n_classes: int | None = None, *, estimate: np.ndarray | None = None
) -> np.ndarray:
    """Chance that two raters differ on a pixel that any of them marked as foreground: (items,).

    For every such pixel that two raters or more labelled, the share of pairs of raters whose labels differ; then the
    mean over these pixels: 0 = all agree, 1 = no two raters say the same. For a label table, the share of pairs of
    answers that differ, whatever the class. 0 where nobody marked anything; nan where no pixel has two labels.

    Parameters
    ----------
    labels : annotations of either kind; or masks (items, raters, *spatial) or one (raters, *spatial) array per item
    n_classes : by default as many as the annotations name, or as the labels show
    estimate : (items, *spatial) class numbers that take the place of the second rater in items where no pixel has two

    Examples
    --------
    >>> pairwise_disagreement(np.array([[[[0, 1, 1]], [[0, 0, 1]]]]))  # of two pixels that anybody marked, one
    array([0.5])
    """
    if isinstance(labels, Annotations) and labels.kind == "labels":
        answers = vote_counts(labels)
        return np.array([_differing_pairs(item[:, None]) if item.sum() > 1 else float("nan") for item in answers])
    n_classes = count_classes(labels, n_classes)
    scores: list[float] = []
    for item in each_item(labels):
        is_labelled(item, n_classes, f"Item {len(scores)}")
        votes = np.stack([(item == label).sum(axis=0) for label in range(n_classes)])
        if estimate is not None and votes.sum(axis=0).max(initial=0) < 2:
            votes += estimate[len(scores)] == np.arange(n_classes).reshape(-1, *[1] * (item.ndim - 1))
        twice = votes.sum(axis=0) > 1
        marked = twice & (votes[1:].sum(axis=0) > 0)
        scores.append(_differing_pairs(votes[:, marked]) if marked.any() else 0.0 if twice.any() else float("nan"))
    return np.array(scores)


def disagreement(labels: Masks, n_classes: int | None = None) -> np.ndarray:
    """Give :func:`vote_entropy`, which this was called before; it goes away with the next version."""
    warnings.warn(
        "annotruth.metrics.disagreement is now called vote_entropy, and the old name goes away with the next version; "
        "for the chance that two raters differ there is pairwise_disagreement.",
        DeprecationWarning,
        stacklevel=2,
    )
    return vote_entropy(labels, n_classes)


def _differing_pairs(votes: np.ndarray) -> float:
    """Share of pairs of raters who differ, the mean over pixels, of votes (classes, pixels), two or more on each."""
    votes, voters = votes.astype(float), votes.sum(axis=0).astype(float)
    alike = (votes * (votes - 1)).sum(axis=0) / (voters * (voters - 1))
    return float(1 - alike.mean())


def _entropy(votes: np.ndarray) -> np.ndarray:
    """Entropy of votes (classes, ...) over the first axis, as a share of log(classes); nan where nobody voted."""
    total = votes.sum(axis=0)
    share = votes / np.maximum(total, 1)
    entropy = -(share * np.log(np.where(share > 0, share, 1.0))).sum(axis=0) / np.log(max(len(votes), 2))
    return np.where(total > 0, np.abs(entropy), np.nan)  # abs: no minus sign in front of zero


def _answered_twice(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Votes (items, classes) and number of answers (items,) of the items with two answers or more."""
    answered = counts.sum(axis=1)
    return counts[answered > 1], answered[answered > 1]


def _class_distance(frequency: np.ndarray, level: str) -> np.ndarray:
    """Squared distance between every two classes."""
    n_classes = len(frequency)
    if level == "nominal":
        return 1.0 - np.eye(n_classes)
    if level == "interval":
        position = np.arange(n_classes, dtype=float)
    else:  # half of the own answers and all those in between lie between the middles of two classes
        position = np.cumsum(frequency) - frequency / 2
    return np.subtract.outer(position, position) ** 2


def _beyond_chance(observed: float, chance: float) -> float:
    return (observed - chance) / (1 - chance) if chance < 1 else float("nan")


def _highest(labels: np.ndarray) -> int:
    given = labels[(labels >= 0) & (labels != MISSING_PIXEL)]
    return int(given.max(initial=0))
