"""Compiled loops over rows of answers. Each works on the rows first … last - 1 and shares no cache line it writes.

``cell`` (answers,) points, for each answer, at the first of the ``n_classes`` numbers that belong to its rater and
label in the flat arrays ``seen`` (log confusion) and ``counts``, both laid out (rater, observed, true).
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import math

import numpy as np
from numba import njit

BATCH = 512
PADDING = 16  # numbers kept free on both sides of a thread's own sums, so that no two threads write one cache line

TAYLOR = tuple(1.0 / math.factorial(n) for n in range(13, -1, -1))


@njit(nogil=True, cache=True)
def posterior_rows(first, last, start, cell, gold, log_prior, seen, posterior, evidence):
    """Fill posterior (rows, classes) and evidence (rows,); log_prior is (rows, classes) or (1, classes)."""
    n_classes = log_prior.shape[1]
    score, best = np.empty(BATCH * n_classes + PADDING), np.empty(BATCH + PADDING)
    for batch in range(first, last, BATCH):
        size = min(BATCH, last - batch)
        _weigh(batch, size, start, cell, gold, log_prior, seen, score, best)
        for i in range(size):
            total = 0.0
            for k in range(n_classes):
                total += score[i * n_classes + k]
            for k in range(n_classes):
                posterior[batch + i, k] = score[i * n_classes + k] / total
            evidence[batch + i] = best[i] + np.log(total)


@njit(nogil=True, cache=True)
def expect_rows(first, last, start, cell, weight, gold, log_prior, seen, counts, classes):
    """Add the rows' expected counts and classes, weighted; give their log-likelihood. No posterior is kept."""
    n_classes = log_prior.shape[1]
    score, best = np.empty(BATCH * n_classes + PADDING), np.empty(BATCH + PADDING)
    likelihood = 0.0
    for batch in range(first, last, BATCH):
        size = min(BATCH, last - batch)
        _weigh(batch, size, start, cell, gold, log_prior, seen, score, best)
        for i in range(size):
            row_weight = weight[batch + i]
            if row_weight == 0.0:
                continue
            total = 0.0
            for k in range(n_classes):
                total += score[i * n_classes + k]
            likelihood += row_weight * (best[i] + np.log(total))
            for k in range(n_classes):
                share = score[i * n_classes + k] * (row_weight / total)
                score[i * n_classes + k] = share
                classes[k] += share
            for a in range(start[batch + i], start[batch + i + 1]):
                to = np.int64(cell[a])
                for k in range(n_classes):
                    counts[to + k] += score[i * n_classes + k]
    return likelihood


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
def _weigh(batch, size, start, cell, gold, log_prior, seen, score, best):
    """Fill score with exp(log joint - best) of each row and class, and best (rows,) with the largest log joint."""
    n_classes = log_prior.shape[1]
    per_item = len(log_prior) > 1
    for i in range(size):
        row, at = batch + i, i * n_classes
        prior = row if per_item else 0
        for k in range(n_classes):
            score[at + k] = log_prior[prior, k]
        for a in range(start[row], start[row + 1]):
            said = np.int64(cell[a])
            for k in range(n_classes):
                score[at + k] += seen[said + k]
        known = gold[row]
        highest = -np.inf
        for k in range(n_classes):
            highest = max(highest, score[at + k])
        if known >= 0:
            highest = score[at + known]
            for k in range(n_classes):
                score[at + k] = -np.inf
            score[at + known] = highest
        if highest == -np.inf:  # the parameters rule every class out: only the prior, or the gold label, is left
            highest = 0.0
            for k in range(n_classes):
                score[at + k] = log_prior[prior, k]
            if known >= 0:
                for k in range(n_classes):
                    score[at + k] = 0.0 if k == known else -np.inf
        best[i] = highest
        for k in range(n_classes):
            score[at + k] -= highest
    _exp_in_place(score, size * n_classes)


@njit(nogil=True, cache=True)
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
