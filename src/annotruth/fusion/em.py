"""The two steps of expectation-maximisation on answers, in the log domain.

Whoever has answers and a prior per item (a class frequency here, a network's output elsewhere) shares these steps.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

import numpy as np

from annotruth.data.answers import Answers
from annotruth.fusion._em import PADDING, row_loops
from annotruth.fusion.votes import Votes, answer_cells, first_answers
from annotruth.parallel.threads import run_parts

MIN_EXPECTED_COUNT = 1e-10
"""Expected counts never fall below this: no answer is impossible, and rows without evidence come out uniform."""
MAX_TIE = 1e-9
"""Classes whose posteriors differ by less are tied; the one that comes first in the classes wins."""
_MIN_UNROLLED_ANSWERS, _MAX_UNROLLED_CLASSES = 2**18, 16  # where code for just this number of classes pays
_MAX_LANES, _MAX_LANE_BYTES, _MIN_LANE_ANSWERS, _MIN_LANE_WORK = 16, 2**28, 2**13, 8


def truth_posterior(
    answers: Answers,
    log_prior: np.ndarray,
    log_confusion: np.ndarray,
    *,
    n_items: int | None = None,
    gold: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """E-step: how probable each class is for each item, given who answered what.

    posterior[i, k] ∝ prior[i, k] · Π_answers confusion[rater, k, label]

    Parameters
    ----------
    answers : the answers, sorted by item
    log_prior : (items, classes) log prior of each item, or (classes,) one for all
    log_confusion : (raters, classes, classes) log of [true, observed]
    n_items : how many items there are; needed when ``log_prior`` is one for all
    gold : (items,) true classes, -1 = unknown; where known, the posterior is certain

    Returns
    -------
    posterior : (items, classes) float64, rows sum to 1; items without answers get their prior
    log_evidence : (items,) log probability of the item's answers; their sum is the log-likelihood

    Examples
    --------
    >>> answers = Answers(np.array([0, 0], np.int32), np.array([0, 1], np.int32), np.array([1, 1], np.int16))
    >>> good = np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> posterior, evidence = truth_posterior(answers, np.log([0.5, 0.5]), np.stack([good, good]), n_items=2)
    >>> posterior.round(3)
    array([[0.015, 0.985],
           [0.5  , 0.5  ]])
    """
    log_prior = np.atleast_2d(log_prior)
    n_items, n_classes = len(log_prior) if n_items is None else n_items, log_prior.shape[1]
    return votes_posterior(
        Votes.from_answers(answers, n_items, len(log_confusion), n_classes, gold), log_prior, log_confusion
    )


def votes_posterior(votes: Votes, log_prior: np.ndarray, log_confusion: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Take the E-step of :func:`truth_posterior` for the rows of votes; (rows, classes) and (rows,)."""
    log_prior = np.atleast_2d(np.ascontiguousarray(log_prior, dtype=np.float64))
    posterior, evidence = np.empty((votes.n_rows, votes.n_classes)), np.empty(votes.n_rows)
    start, cell, gold, seen = votes.first_answer, votes.cell, votes.gold, by_label(log_confusion)
    loops = row_loops(len(cell))

    def work(first: int, last: int) -> None:
        loops.posterior_rows(first, last, start, cell, gold, log_prior, seen, posterior, evidence)

    run_parts(work, split_lanes(start, 0))
    return posterior, evidence


def expected_counts(
    answers: Answers, posterior: np.ndarray, n_raters: int, weight: np.ndarray | None = None
) -> np.ndarray:
    """First half of the M-step: how often each rater is expected to have called class i j.

    counts[r, i, j] = Σ_items weight · posterior[item, i] · [rater r answered j]

    Parameters
    ----------
    answers : the answers, sorted by item
    posterior : (items, classes)
    weight : (items,) what each item counts; by default 1

    Returns
    -------
    (raters, classes, classes) float64, [true, observed]; the same bits for any number of threads

    Examples
    --------
    >>> answers = Answers(np.array([0, 1], np.int32), np.array([0, 0], np.int32), np.array([1, 1], np.int16))
    >>> expected_counts(answers, np.array([[0.25, 0.75], [0.0, 1.0]]), n_raters=1)
    array([[[0.  , 0.25],
            [0.  , 1.75]]])
    """
    n_items, n_classes = posterior.shape
    start, cell = first_answers(answers, n_items), answer_cells(answers, n_raters, n_classes)
    return _expected_counts(start, cell, posterior, n_raters, weight)


def vote_counts(votes: Votes, posterior: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """:func:`expected_counts` of votes, which have their answers in order already."""
    return _expected_counts(votes.first_answer, votes.cell, posterior, votes.n_raters, weight)


def _expected_counts(
    start: np.ndarray, cell: np.ndarray, posterior: np.ndarray, n_raters: int, weight: np.ndarray | None
) -> np.ndarray:
    weighted = np.asarray(posterior, dtype=np.float64)
    same = weight is None or bool((weight == 1).all())
    weighted = np.ascontiguousarray(weighted if same else weighted * np.asarray(weight)[:, None])
    n_classes = weighted.shape[1]
    loops = row_loops(len(cell))
    lanes = split_lanes(start, n_raters * n_classes**2)
    counts = own_rows(len(lanes), n_raters * n_classes**2)

    def work(lane: int, first: int, last: int) -> None:
        loops.count_rows(first, last, start, cell, weighted, counts[lane])

    run_parts(work, [(lane, *part) for lane, part in enumerate(lanes)])
    return by_truth(counts.sum(axis=0), n_raters, n_classes)


def confusion_from_counts(
    counts: np.ndarray, pseudo_counts: np.ndarray | None = None, *, one_coin: bool = False
) -> np.ndarray:
    """Second half of the M-step: confusion matrices (raters, classes, classes) from expected counts.

    Parameters
    ----------
    counts : (raters, classes, classes) from :func:`expected_counts`
    pseudo_counts : Dirichlet prior, (raters, classes, classes) or (classes, classes): labels each rater is taken to
        have given already, on items of known truth
    one_coin : one number per rater, its chance to be right whatever the class; errors spread evenly

    Examples
    --------
    >>> confusion_from_counts(np.array([[[3.0, 1.0], [0.0, 0.0]]])).round(2)
    array([[[0.75, 0.25],
            [0.5 , 0.5 ]]])
    >>> confusion_from_counts(np.array([[[3.0, 1.0], [0.0, 6.0]]]), one_coin=True).round(2)
    array([[[0.9, 0.1],
            [0.1, 0.9]]])
    """
    counts = counts if pseudo_counts is None else counts + pseudo_counts
    n_classes = counts.shape[-1]
    if not one_coin or n_classes == 1:
        floored = np.maximum(counts, MIN_EXPECTED_COUNT)
        floored /= floored.sum(axis=-1, keepdims=True)
        return floored
    correct = np.trace(counts, axis1=1, axis2=2)
    right, wrong = (
        np.maximum(correct, MIN_EXPECTED_COUNT),
        np.maximum(counts.sum(axis=(1, 2)) - correct, MIN_EXPECTED_COUNT),
    )
    unseen = counts.sum(axis=(1, 2)) == 0
    skill = np.where(unseen, 1 / n_classes, right / (right + wrong))[:, None, None]
    error = np.where(unseen, 1 - 1 / n_classes, wrong / (right + wrong))[:, None, None]  # 1 - skill could round to 0
    return np.where(np.eye(n_classes, dtype=bool), skill, error / (n_classes - 1))


def log_of(probability: np.ndarray) -> np.ndarray:
    """Logarithm in which zero quietly becomes -inf."""
    with np.errstate(divide="ignore"):
        return np.log(probability)


def best_classes(posterior: np.ndarray) -> np.ndarray:
    """Most probable class of each row (rows, classes), the first of those that are tied.

    Examples
    --------
    >>> best_classes(np.array([[0.2, 0.4, 0.4], [0.5, 0.2, 0.3]]))
    array([1, 0])
    """
    tied = posterior >= posterior.max(axis=1, keepdims=True) - MAX_TIE
    return tied.argmax(axis=1)


# -- inner workings ---------------------------------------------------------------------------------------------


def split_lanes(start: np.ndarray, n_cells: int) -> list[tuple[int, int]]:
    """Cut the rows into lanes of about as many answers each, every lane adding up ``n_cells`` sums of its own.

    The lanes' sums are then added in order. The number of lanes depends on the data alone, so the totals are the same
    bits for any number of threads. Lanes that would spend more on adding up lanes than on answers are not made.
    """
    n_rows, n_answers = len(start) - 1, int(start[-1])
    affordable = _MAX_LANE_BYTES // max(8 * n_cells, 1)
    worthwhile = max(2, n_answers * _MIN_LANE_WORK // max(n_cells, 1))
    count = int(max(1, min(_MAX_LANES, affordable, worthwhile, (n_answers + n_rows) // _MIN_LANE_ANSWERS)))
    wanted = np.linspace(0, n_answers + n_rows, count + 1)[1:-1]
    edges = [bisect_left(range(n_rows + 1), work, key=lambda row: start[row] + row) for work in wanted]
    return list(pairwise([0, *edges, n_rows]))


def unrolled_classes(n_answers: int, n_classes: int) -> tuple[int, ...]:
    """What tells the compiler how many classes there are: a tuple as long, where it pays, and an empty one elsewhere.

    Examples
    --------
    >>> unrolled_classes(100, 3), unrolled_classes(10**6, 3)
    ((), (0, 0, 0))
    """
    many = n_answers >= _MIN_UNROLLED_ANSWERS and n_classes <= _MAX_UNROLLED_CLASSES
    return (0,) * n_classes if many else ()


def own_rows(count: int, size: int) -> np.ndarray:
    """Zeros (count, size + padding): rows that different threads may write without slowing each other down."""
    return np.zeros((count, size + PADDING))


def by_label(log_confusion: np.ndarray) -> np.ndarray:
    """Lay matrices out flat as (raters, observed, true): what one answer says about every class, side by side."""
    return np.array(log_confusion.transpose(0, 2, 1), dtype=np.float64, order="C").reshape(-1)


def by_truth(counts: np.ndarray, n_raters: int, n_classes: int) -> np.ndarray:
    by_label = counts[: n_raters * n_classes**2].reshape(n_raters, n_classes, n_classes)
    return np.ascontiguousarray(by_label.transpose(0, 2, 1))
