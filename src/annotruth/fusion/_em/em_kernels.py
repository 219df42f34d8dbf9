"""Compiled loops over rows of answers. Each works on the rows first … last - 1 and shares no cache line it writes.

``cell`` (answers,) points, for each answer, at the first of the ``n_classes`` numbers that belong to its rater and
label in the flat arrays ``seen`` (log confusion) and ``counts``, both laid out (rater, observed, true).

``unrolled`` is a tuple as long as there are classes, or empty. The compiler knows its length, and makes straight vector
code of the loops over so many classes; that takes a quarter off the time, but a compilation for each number of classes.
Positions are unsigned, since every position that may be negative costs a comparison.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import math

import numpy as np
from numba import njit

from annotruth.fusion._em import PADDING

BATCH = 256

TAYLOR = tuple(1.0 / math.factorial(n) for n in range(13, -1, -1))


@njit(nogil=True, cache=True)
def posterior_rows(first, last, start, cell, gold, log_prior, seen, posterior, evidence):
    """Fill posterior (rows, classes) and evidence (rows,); log_prior is (rows, classes) or (1, classes)."""
    n_classes = log_prior.shape[1]
    score, best = np.empty(BATCH * n_classes + PADDING), np.empty(BATCH + PADDING)
    for batch in range(first, last, BATCH):
        size = min(BATCH, last - batch)
        _weigh(batch, size, start, cell, gold, log_prior, seen, score, best, ())
        for i in range(size):
            total = 0.0
            for k in range(n_classes):
                total += score[i * n_classes + k]
            for k in range(n_classes):
                posterior[batch + i, k] = score[i * n_classes + k] / total
            evidence[batch + i] = best[i] + np.log(total)


@njit(nogil=True, cache=True)
def expect_rows(first, last, start, cell, weight, gold, log_prior, seen, counts, classes, unrolled):
    """Add the rows' expected counts and classes, weighted; give their log-likelihood. No posterior is kept."""
    n_classes = len(unrolled) if len(unrolled) else log_prior.shape[1]
    score, best = np.empty(BATCH * n_classes + PADDING), np.empty(BATCH + PADDING)
    likelihood, product = 0.0, 1.0  # one logarithm for the product of many totals, each from 1 to n_classes
    for batch in range(first, last, BATCH):
        size = min(BATCH, last - batch)
        _weigh(batch, size, start, cell, gold, log_prior, seen, score, best, unrolled)
        for i in range(size):
            at, row_weight, total = np.uint64(i * n_classes), weight[batch + i], 0.0
            for k in range(n_classes):
                total += score[at + np.uint64(k)]
            likelihood += row_weight * best[i]
            if row_weight == 1.0:
                product *= total
            else:
                likelihood += row_weight * np.log(total)
            if product > 1e200:
                likelihood += np.log(product)
                product = 1.0
            factor = row_weight / total
            for k in range(n_classes):
                score[at + np.uint64(k)] *= factor
                classes[np.uint64(k)] += score[at + np.uint64(k)]
        for i in range(size):
            at = np.uint64(i * n_classes)
            for a in range(np.uint64(start[batch + i]), np.uint64(start[batch + i + 1])):
                to = np.uint64(cell[a])
                for k in range(n_classes):
                    counts[to + np.uint64(k)] += score[at + np.uint64(k)]
    return likelihood + np.log(product)


@njit(nogil=True, cache=True)
def share_rows(first, last, start, cell, label, weight, gold, counts, classes, n_classes):
    """Do as expect_rows with the shares of the votes as posterior (or the gold label, where there is one)."""
    share = np.empty(n_classes + PADDING)
    for i in range(first, last):
        share[:n_classes] = 0.0
        begin, end = start[i], start[i + 1]
        if gold[i] >= 0:
            share[gold[i]] = weight[i]
        else:
            for a in range(begin, end):
                share[label[a]] += weight[i] / (end - begin)
        for k in range(n_classes):
            classes[k] += share[k]
        for a in range(begin, end):
            to = np.int64(cell[a])
            for k in range(n_classes):
                counts[to + k] += share[k]


@njit(nogil=True, cache=True)
def count_rows(first, last, start, cell, posterior, counts):
    """Add the rows' posterior (rows, classes) to the counts of every rater who answered."""
    n_classes = posterior.shape[1]
    for i in range(first, last):
        for a in range(start[i], start[i + 1]):
            to = np.int64(cell[a])
            for k in range(n_classes):
                counts[to + k] += posterior[i, k]


@njit(nogil=True, cache=True)
def agree_rows(first, last, start, rater, label, row_weight, gold, weight, tie, right, classes, unrolled):
    """Add, to right (raters,), the answers that are the rows' best class by weighted votes.

    The best class is the gold label, where there is one, or the first of those within ``tie`` of the highest score.
    There is no branch that nobody could foretell.
    """
    n_classes = len(unrolled) if len(unrolled) else classes
    score = np.empty(BATCH * n_classes + PADDING)
    for batch in range(first, last, BATCH):
        size = min(BATCH, last - batch)
        _add_weights(batch, size, start, rater, label, weight, score, n_classes)
        for i in range(size):
            row, at = np.uint64(batch + i), np.uint64(i * n_classes)
            best = np.int64(gold[row])
            if best < 0:
                highest = score[at]
                for k in range(1, n_classes):
                    highest = max(highest, score[at + np.uint64(k)])
                best = np.int64(0)
                for k in range(n_classes - 1, -1, -1):
                    best = np.int64(k) if score[at + np.uint64(k)] >= highest - tie else best
            counted = row_weight[row]
            for a in range(np.uint64(start[row]), np.uint64(start[row + np.uint64(1)])):
                right[np.uint64(rater[a])] += counted * (label[a] == best)


@njit(nogil=True, cache=True)
def weighted_rows(first, last, start, rater, label, gold, weight, prior, posterior, unrolled):
    """Fill posterior (rows, classes) with shares of weighted votes: all alike where weights sum to nothing or less.

    Where nobody voted it is the prior, and where there is a gold label, that.
    """
    n_classes = len(unrolled) if len(unrolled) else posterior.shape[1]
    for i in range(first, last):
        begin, end = np.uint64(start[i]), np.uint64(start[i + 1])
        row, total = np.uint64(i), 0.0
        for k in range(n_classes):
            posterior[row, np.uint64(k)] = 0.0
        if gold[i] >= 0:
            posterior[row, np.uint64(gold[i])] = 1.0
            continue
        if begin == end:
            for k in range(n_classes):
                posterior[row, np.uint64(k)] = prior[k]
            continue
        for a in range(begin, end):
            posterior[row, np.uint64(label[a])] += weight[np.uint64(rater[a])]
        for k in range(n_classes):
            total += posterior[row, np.uint64(k)]
        if total > 0:
            for k in range(n_classes):
                posterior[row, np.uint64(k)] /= total
        else:
            for k in range(n_classes):
                posterior[row, np.uint64(k)] = 1.0 / n_classes


@njit(nogil=True, cache=True)
def count_weighted_rows(first, last, start, rater, label, row_weight, gold, weight, counts, classes, unrolled):
    """Add the rows' shares of weighted votes to the classes, and to the counts of every rater who answered.

    What :func:`weighted_rows` and :func:`count_rows` do one after the other, without writing the shares down.
    """
    n_classes = len(unrolled) if len(unrolled) else len(classes) - PADDING
    share = np.empty(BATCH * n_classes + PADDING)
    width = np.uint64(n_classes)
    for batch in range(first, last, BATCH):
        size = min(BATCH, last - batch)
        _add_weights(batch, size, start, rater, label, weight, share, n_classes)
        for i in range(size):
            row, at, total = np.uint64(batch + i), np.uint64(i * n_classes), 0.0
            for k in range(n_classes):
                total += share[at + np.uint64(k)]
            if gold[row] >= 0:
                for k in range(n_classes):
                    share[at + np.uint64(k)] = row_weight[row] if k == gold[row] else 0.0
            elif total > 0:
                scale = row_weight[row] / total
                for k in range(n_classes):
                    share[at + np.uint64(k)] *= scale
            else:
                alike = row_weight[row] / n_classes if start[row] < start[row + np.uint64(1)] else 0.0
                for k in range(n_classes):
                    share[at + np.uint64(k)] = alike
            for k in range(n_classes):
                classes[np.uint64(k)] += share[at + np.uint64(k)]
        for i in range(size):
            row, at = np.uint64(batch + i), np.uint64(i * n_classes)
            for a in range(np.uint64(start[row]), np.uint64(start[row + np.uint64(1)])):
                to = (np.uint64(rater[a]) * width + np.uint64(label[a])) * width
                for k in range(n_classes):
                    counts[to + np.uint64(k)] += share[at + np.uint64(k)]


@njit(nogil=True, cache=True)
def _add_weights(batch, size, start, rater, label, weight, score, n_classes):
    """Fill score (rows of the batch, classes) with the sums of weighted votes.

    Many rows together: reading a sum while what was just added to it is still on its way to memory takes long.
    """
    for j in range(size * n_classes):
        score[np.uint64(j)] = 0.0
    for i in range(size):
        row, at = np.uint64(batch + i), np.uint64(i * n_classes)
        for a in range(np.uint64(start[row]), np.uint64(start[row + np.uint64(1)])):
            score[at + np.uint64(label[a])] += weight[np.uint64(rater[a])]


@njit(nogil=True, cache=True)
def index_answers(first, last, item, rater, start, given):
    """Write where items begin, start (items + 1,), that do among the answers first … last - 1; count raters' answers.

    Answers are sorted by item. After the last of them, start is the caller's to fill.
    """
    before = np.int64(item[first - 1]) if first > 0 else np.int64(-1)
    for a in range(first, last):
        given[np.uint64(rater[a])] += 1
        while before < item[a]:
            before += 1
            start[before] = a


@njit(nogil=True, cache=True)
def first_linked(item, rater, n_raters):
    """Give for each rater (raters,) the first of all those linked to it by items of two or more, sorted by item."""
    first = np.arange(n_raters)
    for a in range(1, len(item)):
        if item[a] == item[a - 1]:
            one, other = rater[a - 1], rater[a]
            while first[one] != one:  # union-find: on the way up, everybody met is told of who is two steps ahead
                first[one] = first[first[one]]
                one = first[one]
            while first[other] != other:
                first[other] = first[first[other]]
                other = first[other]
            first[max(one, other)] = min(one, other)
    for r in range(n_raters):  # whoever a rater points to comes before it, and has been settled
        first[r] = first[first[r]]
    return first


@njit(nogil=True, cache=True)
def _weigh(batch, size, start, cell, gold, log_prior, seen, score, best, unrolled):
    """Fill score with exp(log joint - best) of each row and class, and best (rows,) with the largest log joint."""
    n_classes = len(unrolled) if len(unrolled) else log_prior.shape[1]
    per_item = len(log_prior) > 1
    for i in range(size):
        row, at = np.uint64(batch + i), np.uint64(i * n_classes)
        prior = row if per_item else np.uint64(0)
        for k in range(n_classes):
            score[at + np.uint64(k)] = log_prior[prior, np.uint64(k)]
        for a in range(np.uint64(start[row]), np.uint64(start[row + np.uint64(1)])):
            said = np.uint64(cell[a])
            for k in range(n_classes):
                score[at + np.uint64(k)] += seen[said + np.uint64(k)]
        highest = -np.inf
        for k in range(n_classes):
            highest = max(highest, score[at + np.uint64(k)])
        known = gold[row]
        if known >= 0:
            highest = score[at + np.uint64(known)]
            for k in range(n_classes):
                if k != known:
                    score[at + np.uint64(k)] = -np.inf
        if highest == -np.inf:  # the parameters rule every class out: only the prior, or the gold label, is left
            highest = 0.0
            for k in range(n_classes):
                score[at + np.uint64(k)] = log_prior[prior, np.uint64(k)]
            if known >= 0:
                for k in range(n_classes):
                    score[at + np.uint64(k)] = 0.0 if k == known else -np.inf
        best[i] = highest
        for k in range(n_classes):
            score[at + np.uint64(k)] -= highest
    _exp_in_place(score, size * n_classes)


@njit(nogil=True, cache=True, fastmath={"contract"})  # a·b + c in one instruction
def _exp_in_place(values, size):
    """Replace values ≤ 0 by their exponential, to the last bit or so; below -700 by 0.

    Plain loops over arithmetic become vector instructions; the library's exp, called number by number, took half of
    the time of expectation-maximisation. exp(x) = 2^n · exp(r), |r| ≤ ln 2 / 2, by Taylor's series.
    """
    shifter = 6755399441055744.0  # 1.5 · 2^52: added to a number, leaves its nearest integer in the lowest bits
    power = np.empty(size)
    bits = power.view(np.int64)
    for j in range(size):
        x = max(values[j], -700.0)
        power[j] = x * 1.4426950408889634 + shifter
        n = power[j] - shifter
        r = x - n * 0.6931471803691238 - n * 1.9082149292705877e-10
        series = TAYLOR[0]
        for coefficient in TAYLOR[1:]:
            series = series * r + coefficient
        values[j] = series if values[j] > -700.0 else 0.0
    for j in range(size):
        bits[j] = (bits[j] + 1023) << 52
    for j in range(size):
        values[j] *= power[j]
