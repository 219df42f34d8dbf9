"""The loops of ``em_kernels``, ``pattern_kernels`` and ``table_kernels`` in NumPy, under the same names and arguments.

Loading Numba takes longer than fusing a hundred pictures; a process that meets only few votes never loads it.
"""

from __future__ import annotations

import zlib
from itertools import pairwise

import numpy as np

from annotruth.fusion._em import PADDING

MISSING, BLOCK = 255, 2**14


def posterior_rows(
    first: int,
    last: int,
    start: np.ndarray,
    cell: np.ndarray,
    gold: np.ndarray,
    log_prior: np.ndarray,
    seen: np.ndarray,
    posterior: np.ndarray,
    evidence: np.ndarray,
) -> None:
    score, best = _weigh(first, last, start, cell, gold, log_prior, seen)
    total = score.sum(axis=1)
    posterior[first:last] = score / total[:, None]
    evidence[first:last] = best + np.log(total)


def expect_rows(
    first: int,
    last: int,
    start: np.ndarray,
    cell: np.ndarray,
    weight: np.ndarray,
    gold: np.ndarray,
    log_prior: np.ndarray,
    seen: np.ndarray,
    counts: np.ndarray,
    classes: np.ndarray,
    unrolled: tuple[int, ...],
) -> float:
    score, best = _weigh(first, last, start, cell, gold, log_prior, seen)
    total, own = score.sum(axis=1), weight[first:last]
    score *= (own / total)[:, None]
    _add_rows(first, last, start, cell, score, counts, classes)
    return float(own @ (best + np.log(total)))


def share_rows(
    first: int,
    last: int,
    start: np.ndarray,
    cell: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
    gold: np.ndarray,
    counts: np.ndarray,
    classes: np.ndarray,
    n_classes: int,
) -> None:
    row = _rows(first, last, start)
    given = np.bincount(row, minlength=last - first)
    share = np.zeros((last - first, n_classes))
    np.add.at(share.reshape(-1), row * n_classes + label[start[first] : start[last]], 1.0 / given[row])
    known = np.flatnonzero(gold[first:last] >= 0)
    share[known] = np.eye(n_classes)[gold[first:last][known]]
    share *= weight[first:last, None]
    _add_rows(first, last, start, cell, share, counts, classes)


def count_rows(
    first: int, last: int, start: np.ndarray, cell: np.ndarray, posterior: np.ndarray, counts: np.ndarray
) -> None:
    _add_rows(first, last, start, cell, posterior[first:last], counts, np.zeros(posterior.shape[1]))


def agree_rows(
    first: int,
    last: int,
    start: np.ndarray,
    rater: np.ndarray,
    label: np.ndarray,
    row_weight: np.ndarray,
    gold: np.ndarray,
    weight: np.ndarray,
    tie: float,
    right: np.ndarray,
    n_classes: int,
    unrolled: tuple[int, ...],
) -> None:
    row, own = _rows(first, last, start), slice(start[first], start[last])
    score = _add_votes(row, last - first, n_classes, label[own], weight[rater[own]])
    best = (score >= score.max(axis=1, keepdims=True) - tie).argmax(axis=1)
    best = np.where(gold[first:last] >= 0, gold[first:last], best)
    np.add.at(right, rater[own], np.where(best[row] == label[own], row_weight[first:last][row], 0.0))


def weighted_rows(
    first: int,
    last: int,
    start: np.ndarray,
    rater: np.ndarray,
    label: np.ndarray,
    gold: np.ndarray,
    weight: np.ndarray,
    prior: np.ndarray,
    posterior: np.ndarray,
    unrolled: tuple[int, ...],
) -> None:
    n_classes, own = posterior.shape[1], slice(start[first], start[last])
    score = _add_votes(_rows(first, last, start), last - first, n_classes, label[own], weight[rater[own]])
    total = score.sum(axis=1, keepdims=True)
    share = np.where(total > 0, score / np.where(total > 0, total, 1.0), 1 / n_classes)
    answered = np.diff(start[first : last + 1])[:, None] > 0
    posterior[first:last] = np.where(answered, share, prior)
    known = np.flatnonzero(gold[first:last] >= 0)
    posterior[first + known] = np.eye(n_classes)[gold[first:last][known]]


def count_weighted_rows(
    first: int,
    last: int,
    start: np.ndarray,
    rater: np.ndarray,
    label: np.ndarray,
    row_weight: np.ndarray,
    gold: np.ndarray,
    weight: np.ndarray,
    counts: np.ndarray,
    classes: np.ndarray,
    unrolled: tuple[int, ...],
) -> None:
    n_classes = len(classes) - PADDING
    posterior = np.empty((len(start) - 1, n_classes))
    weighted_rows(first, last, start, rater, label, gold, weight, np.zeros(n_classes), posterior, ())
    posterior[first:last] *= row_weight[first:last, None]
    cell = (rater.astype(np.int64) * n_classes + label) * n_classes
    count_rows(first, last, start, cell, posterior, counts)
    classes[:n_classes] += posterior[first:last].sum(axis=0)


def index_answers(
    first: int, last: int, item: np.ndarray, rater: np.ndarray, start: np.ndarray, given: np.ndarray
) -> None:
    before = int(item[first - 1]) if first > 0 else -1
    begun = np.arange(before + 1, int(item[last - 1]) + 1) if last > first else np.empty(0, dtype=np.int64)
    start[begun] = first + np.searchsorted(item[first:last], begun)
    np.add.at(given, rater[first:last], 1)


def first_linked(item: np.ndarray, rater: np.ndarray, n_raters: int) -> np.ndarray:
    linked = item[1:] == item[:-1]
    one, other = rater[:-1][linked], rater[1:][linked]
    first, before = np.arange(n_raters), np.full(n_raters, -1)
    while not np.array_equal(first, before):
        before = first.copy()
        lowest = np.minimum(first[one], first[other])
        np.minimum.at(first, one, lowest)
        np.minimum.at(first, other, lowest)
        first = first[first]
    return first


def count_dense(
    masks: np.ndarray, gold: np.ndarray, first: int, last: int, n_classes: int, table_size: int
) -> tuple[np.ndarray, bool]:
    table, strange = np.zeros(table_size, dtype=np.int64), False
    for begin, end in _blocks(first, last):
        code, odd = _encode(masks, gold, begin, end, n_classes)
        table += np.bincount(code, minlength=table_size)
        strange |= odd
    return table, strange


def write_dense(
    masks: np.ndarray,
    gold: np.ndarray,
    first: int,
    last: int,
    n_classes: int,
    table: np.ndarray,
    unknown: np.generic,
    out: np.ndarray,
) -> bool:
    known = True
    for begin, end in _blocks(first, last):
        code = _encode(masks, gold, begin, end, n_classes)[0].astype(np.intp)
        for values, target in zip(table, out):
            np.take(values, code, out=target[begin:end], mode="clip")
        known &= bool((out[0, begin:end] != unknown).all())
    return known


def hash_names(offsets: np.ndarray, content: np.ndarray) -> np.ndarray:
    text = content.tobytes()
    return np.array([zlib.crc32(text[a:b]) for a, b in pairwise(offsets)], dtype=np.uint32)


def group_answers(
    item: np.ndarray, rater: np.ndarray, label: np.ndarray, n_items: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    order = np.lexsort((rater, item))
    return item[order], rater[order], label[order]


def _blocks(first: int, last: int) -> list[tuple[int, int]]:
    """Pixels in blocks that stay in the cache between the steps of a pass."""
    return [(begin, min(begin + BLOCK, last)) for begin in range(first, last, BLOCK)]


def _encode(masks: np.ndarray, gold: np.ndarray, first: int, last: int, n_classes: int) -> tuple[np.ndarray, bool]:
    """Number the tuples as the compiled passes do; and whether a label outside the classes was met."""
    code, strange = np.zeros(last - first, dtype=np.uint16), False
    for column in (*masks, gold) if len(gold) else masks:
        label = column[first:last]
        strange |= bool(((label >= n_classes) & (label != MISSING)).any())
        code *= np.uint16(n_classes + 1)
        code += np.minimum(label, np.uint8(n_classes))
    return code, strange


def _weigh(
    first: int,
    last: int,
    start: np.ndarray,
    cell: np.ndarray,
    gold: np.ndarray,
    log_prior: np.ndarray,
    seen: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """exp(log joint - best) of each row and class, and the largest log joint (rows,)."""
    n_classes, row = log_prior.shape[1], _rows(first, last, start)
    prior = np.broadcast_to(log_prior[first:last] if len(log_prior) > 1 else log_prior, (last - first, n_classes))
    score = prior.copy()
    said = cell[start[first] : start[last], None].astype(np.intp) + np.arange(n_classes)
    np.add.at(score.reshape(-1), (row[:, None] * n_classes + np.arange(n_classes)).reshape(-1), seen[said].reshape(-1))
    best = score.max(axis=1)
    known = np.flatnonzero(gold[first:last] >= 0)
    true = gold[first:last][known]
    best[known] = score[known, true]
    score[known] = -np.inf
    score[known, true] = best[known]
    ruled_out = np.flatnonzero(best == -np.inf)  # only the prior, or the gold label, is left
    best[ruled_out] = 0.0
    score[ruled_out] = prior[ruled_out]
    for each in np.intersect1d(ruled_out, known):
        score[each] = np.where(np.arange(n_classes) == gold[first + each], 0.0, -np.inf)
    return np.exp(score - best[:, None]), best


def _add_votes(row: np.ndarray, n_rows: int, n_classes: int, label: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The sum (rows, classes) of the weights of votes."""
    return np.bincount(row * n_classes + label, weight, n_rows * n_classes).reshape(n_rows, n_classes)


def _rows(first: int, last: int, start: np.ndarray) -> np.ndarray:
    """Which of the rows each of their answers is one of."""
    return np.repeat(np.arange(last - first), np.diff(start[first : last + 1]))


def _add_rows(
    first: int,
    last: int,
    start: np.ndarray,
    cell: np.ndarray,
    posterior: np.ndarray,
    counts: np.ndarray,
    classes: np.ndarray,
) -> None:
    """Add the rows' posterior (rows, classes) to the counts of every rater who answered, and to the classes."""
    n_classes = posterior.shape[1]
    classes[:n_classes] += posterior.sum(axis=0)
    to = cell[start[first] : start[last], None].astype(np.intp) + np.arange(n_classes)
    np.add.at(counts, to.reshape(-1), posterior[_rows(first, last, start)].reshape(-1))
