"""Whether probabilities are what they say: of all that is called 80 % sure, are 80 % right?

Every score here follows from a few sums over predictions (:class:`Calibration`), taken block by block, so that
probabilities of many pixels need no second array of their size; and those of single cases add up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from annotruth.data.confusion import is_labelled
from annotruth.errors import InputError
from annotruth.metrics.registry import metric

BINS = 15
"""Bins of equal width between 0 and 1, as in Guo et al. 2017."""
BLOCK = 1 << 20
"""Probabilities looked at together: bounds memory."""
SUM_TOLERANCE = 0.01
"""How far the probabilities of the classes may be from summing to 1: half precision is that coarse."""


@dataclass(frozen=True)
class Reliability:
    """A reliability curve, each (bins,): mean confidence, share that is right (nan in an empty bin), and how many."""

    confidence: np.ndarray
    accuracy: np.ndarray
    count: np.ndarray


@dataclass(frozen=True)
class Calibration:
    """Sums over predictions of known truth; those of two sets of predictions add up with ``+``.

    Attributes
    ----------
    known : how many predictions there are
    squared : (classes,) sum of squared errors of each class's probability
    bins : (1 + classes, 3, bins) how many predictions lie in a bin of confidence, the sum of their confidence, and how
        many are right: first of the most probable class, then of each class, where right means that it is the true one

    Examples
    --------
    >>> sure = calibration_sums(np.array([[0.1, 0.9]]), np.array([1]))
    >>> unsure = calibration_sums(np.array([[0.6, 0.4]]), np.array([1]))
    >>> round(sure.ece, 3), round(unsure.ece, 3), round((sure + unsure).ece, 3)
    (0.1, 0.6, 0.35)
    """

    known: int
    squared: np.ndarray
    bins: np.ndarray

    def __add__(self, other: Calibration) -> Calibration:
        return Calibration(self.known + other.known, self.squared + other.squared, self.bins + other.bins)

    @property
    def ece(self) -> float:
        """Expected calibration error of the most probable class; nan if no truth is known."""
        return float(self._errors()[0])

    @property
    def ece_per_class(self) -> np.ndarray:
        """(classes,) expected calibration error of each class's probability."""
        return self._errors()[1:]

    @property
    def brier(self) -> float:
        """Brier score, summed over the classes; nan if no truth is known."""
        return float(self.squared.sum() / self.known) if self.known else float("nan")

    @property
    def brier_per_class(self) -> np.ndarray:
        """(classes,) mean squared error of each class's probability."""
        return self.squared / self.known if self.known else np.full(len(self.squared), np.nan)

    def curve(self, label: int | None = None) -> Reliability:
        """The reliability curve of the most probable class, or of the probability of one class."""
        count, confidence, right = self.bins[0 if label is None else 1 + label]
        return Reliability(_share(confidence, count), _share(right, count), count.astype(np.int64))

    def _errors(self) -> np.ndarray:
        if not self.known:
            return np.full(len(self.bins), np.nan)
        return np.abs(self.bins[:, 1] - self.bins[:, 2]).sum(axis=1) / self.known


@metric("ECE", "probabilities", "truth", better="lower", name="ece")
def expected_calibration_error(probabilities: np.ndarray, truth: np.ndarray, *, n_bins: int = BINS) -> float:
    """Expected calibration error: how far confidence and share of right predictions lie apart, on average.

    The probability of the most probable class is the confidence. Predictions are sorted into bins of equal width by
    it, and ECE = Σ_bins (predictions in it / all) · |mean confidence − share that is right|.

    Parameters
    ----------
    probabilities : (items, classes) or (items, classes, *spatial), summing to 1 over the classes
    truth : (items,) or (items, *spatial) class numbers; where it is not known (-1 or 255) nothing counts
    n_bins : how many bins; a confidence on the edge of two is in the lower one

    Returns
    -------
    Between 0 and 1; nan if no truth is known

    Examples
    --------
    >>> sure = np.array([[0.1, 0.9], [0.1, 0.9], [0.1, 0.9], [0.1, 0.9]])
    >>> round(expected_calibration_error(sure, np.array([1, 1, 1, 0])), 3)  # 90 % sure, and right on 75 %
    0.15
    """
    return calibration_sums(probabilities, truth, n_bins=n_bins).ece


@metric("ECE", "probabilities", "truth", better="lower", axes=("class",))
def ece_per_class(probabilities: np.ndarray, truth: np.ndarray, *, n_bins: int = BINS) -> np.ndarray:
    """Expected calibration error of each class's own probability: (classes,).

    As :func:`expected_calibration_error`, but what is sorted is the probability of one class, whether or not it is the
    greatest, and right means that the class is the true one ("class-wise" or "static" calibration error).

    Examples
    --------
    >>> ece_per_class(np.array([[0.1, 0.9], [0.1, 0.9]]), np.array([1, 0])).round(3)
    array([0.4, 0.4])
    """
    return calibration_sums(probabilities, truth, n_bins=n_bins).ece_per_class


@metric("Brier score", "probabilities", "truth", better="lower", range=(0.0, 2.0), name="brier")
def brier_score(probabilities: np.ndarray, truth: np.ndarray) -> float:
    """Brier score: the mean over predictions of Σ_classes (probability − 1 if it is the true class, else 0)².

    It is low where probabilities are both right and sure, so it measures more than calibration. Parameters are those
    of :func:`expected_calibration_error`.

    Returns
    -------
    Between 0 and 2, as Brier defined it; with two classes twice the mean squared error of one of them. nan if no truth
    is known.

    Examples
    --------
    >>> round(brier_score(np.array([[0.2, 0.8], [0.4, 0.6]]), np.array([1, 1])), 3)  # of 2 · 0.04 and 2 · 0.16
    0.2
    """
    return calibration_sums(probabilities, truth).brier


@metric("Brier score", "probabilities", "truth", better="lower", axes=("class",))
def brier_per_class(probabilities: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Mean squared error of each class's probability: (classes,), the parts of which :func:`brier_score` is the sum.

    Examples
    --------
    >>> brier_per_class(np.array([[0.2, 0.8], [0.4, 0.6]]), np.array([1, 1])).round(3)
    array([0.1, 0.1])
    """
    return calibration_sums(probabilities, truth).brier_per_class


def reliability_curve(
    probabilities: np.ndarray, truth: np.ndarray, *, label: int | None = None, n_bins: int = BINS
) -> Reliability:
    """Mean confidence, share that is right and number of predictions in each bin of confidence.

    Parameters
    ----------
    probabilities, truth, n_bins : as in :func:`expected_calibration_error`
    label : the class whose probability is the confidence; by default the most probable one

    Examples
    --------
    >>> curve = reliability_curve(np.array([[0.2, 0.8], [0.3, 0.7], [0.9, 0.1]]), np.array([1, 0, 0]), n_bins=2)
    >>> curve.confidence.round(2), curve.accuracy.round(2), curve.count
    (array([nan, 0.8]), array([ nan, 0.67]), array([0, 3]))
    """
    return calibration_sums(probabilities, truth, n_bins=n_bins).curve(label)


def calibration_sums(probabilities: np.ndarray, truth: np.ndarray, *, n_bins: int = BINS) -> Calibration:
    """Sum up all that the scores of calibration follow from, in one pass.

    Parameters are those of :func:`expected_calibration_error`.

    Examples
    --------
    >>> found = calibration_sums(np.array([[0.2, 0.8], [0.9, 0.1]]), np.array([1, -1]))
    >>> found.known, round(found.ece, 3), round(found.brier, 3)
    (1, 0.2, 0.08)
    """
    probabilities, truth = np.asarray(probabilities), np.asarray(truth)
    if probabilities.ndim < 2 or probabilities.shape[1] < 2:
        raise InputError(
            "Give probabilities as (items, classes) or (items, classes, *spatial), of two classes or more, found shape "
            f"{probabilities.shape}."
        )
    if truth.shape != probabilities.shape[:1] + probabilities.shape[2:]:
        raise InputError(
            f"The probabilities have shape {probabilities.shape}, so the truth must have "
            f"{probabilities.shape[:1] + probabilities.shape[2:]}, found {truth.shape}."
        )
    if n_bins < 1:
        raise InputError(f"n_bins must be 1 or more, found {n_bins}.")
    n_classes = probabilities.shape[1]
    found = Calibration(0, np.zeros(n_classes), np.zeros((1 + n_classes, 3, n_bins)))
    length = max(BLOCK // n_classes, 1)
    if truth.ndim == 1:  # a label table: its items lie beside each other as the pixels of an image do
        for start in range(0, len(truth), length):
            part = slice(start, start + length)
            found += _block(probabilities[part].T, truth[part], n_bins, start, of_table=True)
        return found
    for item, (image, labels) in enumerate(zip(probabilities, truth, strict=True)):
        image, labels = image.reshape(n_classes, -1), labels.reshape(-1)
        for start in range(0, labels.size, length):
            part = slice(start, start + length)
            found += _block(image[:, part], labels[part], n_bins, item, of_table=False)
    return found


def _block(probabilities: np.ndarray, truth: np.ndarray, n_bins: int, first: int, *, of_table: bool) -> Calibration:
    """The sums over (classes, predictions); ``first`` is their item, or that of the first in a table."""
    n_classes = len(probabilities)
    known = is_labelled(truth, n_classes, "Truth")
    if not known.all():
        probabilities, truth = probabilities[:, known], truth[known]
    _refuse_other_numbers(probabilities, known, first, of_table)
    edges = np.linspace(0, 1, n_bins + 1)[1:-1]
    bins, squared = np.zeros((1 + n_classes, 3, n_bins)), np.zeros(n_classes)

    def sums(confidence: np.ndarray, right: np.ndarray) -> list[np.ndarray]:
        place = np.searchsorted(edges, confidence)  # from the left: an edge belongs to the bin below, as elsewhere
        return [np.bincount(place, weights, minlength=n_bins) for weights in (None, confidence, right)]

    if truth.size:
        likeliest = probabilities.argmax(axis=0)
        bins[0] = sums(np.take_along_axis(probabilities, likeliest[None], axis=0)[0], likeliest == truth)
    for label, probability in enumerate(probabilities):
        right = truth == label
        bins[1 + label] = sums(probability, right)
        squared[label] = np.square(probability - right, dtype=np.float64).sum()
    return Calibration(truth.size, squared, bins)


def _refuse_other_numbers(probabilities: np.ndarray, known: np.ndarray, first: int, of_table: bool) -> None:
    """Refuse what cannot be probabilities, logits say, naming the item."""
    wrong = ~((probabilities >= 0) & (probabilities <= 1 + SUM_TOLERANCE)).all(axis=0)  # nan is neither
    wrong |= ~(np.abs(probabilities.sum(axis=0, dtype=np.float64) - 1) <= SUM_TOLERANCE)
    if wrong.any():
        item = first + int(np.flatnonzero(known)[wrong.argmax()]) if of_table else first
        example = ", ".join(f"{value:.3g}" for value in probabilities[:3, wrong.argmax()])
        raise InputError(
            f"Item {item}: probabilities must lie between 0 and 1 and sum to 1 over the classes, found {example}"
            f"{' …' if len(probabilities) > 3 else ''}. Are these scores before the softmax?"
        )


def _share(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0)
