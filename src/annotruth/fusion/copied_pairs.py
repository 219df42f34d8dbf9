"""Pairs of raters of whom one copies the other, told from few answers, at an error rate that is stated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.spamming import smooth_matrices, sum_logs

COPIED = 0.7
"""Share of the answers that is copied, of those who copy."""
LEVEL = 0.01
"""How probable it is, at most, that any two raters of all are called copies who answer for themselves."""
PRIOR_ANSWERS = 40.0
"""Answers that everybody is taken to have given as all raters do."""
MIN_COMMON = 5
"""Items that two raters must both have answered."""
MOST_PAIRS = 50_000_000
"""Pairs of answers to the same item, times classes, beyond which nobody is looked for."""
_CHUNK = 2**18


@dataclass(frozen=True)
class CopiedPairs:
    """Pairs of raters, the most suspicious first.

    Attributes
    ----------
    table : first, second; common (items that both answered), same (answers), expected (same answers of two who answer
        for themselves); evidence (how many times as probable the answers are if one of them copies), chance (that two
        raters who answer for themselves show so much evidence, at most)
    level : how probable it is, at most, that any pair at all is called copies wrongly
    """

    table: pd.DataFrame
    level: float

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Who is called copies: chance, times the number of pairs, is at most the level."""
        found = self.table[self.table["chance"] * len(self.table) <= self.level]
        return tuple(zip(found["first"], found["second"]))


def find_copied_pairs(
    annotations: Annotations, frequency: np.ndarray, confusion: np.ndarray, level: float = LEVEL
) -> CopiedPairs:
    """Find pairs of raters of a label table of whom one copies the other.

    Two good raters agree because both are right, so it is the same *wrong* answers that tell. What the others say of an
    item gives the probability of its classes, and with the two raters' matrices that of their two answers, if each
    answers alone. If one copies, 70 % of the answers are the same by that alone. The ratio of the two probabilities,
    multiplied over all items that both answered, is the evidence; of raters who answer alone its mean is 1, whatever
    the number of answers, and so it exceeds 1 / p with a probability of at most p (Markov). The error rate is that of
    the model with the matrices given: where items are hard in the same way for everybody, raters who never met err
    alike.

    Parameters
    ----------
    frequency : (classes,) how often each class is the true one
    confusion : (raters, classes, classes) of a fitted estimator
    level : how probable it may be that any pair is called copies wrongly

    Examples
    --------
    >>> from annotruth.fusion import DawidSkene
    >>> from annotruth.simulate import hammer_spammer, simulate_labels
    >>> truth = np.random.default_rng(0).integers(0, 3, 40)
    >>> answers = simulate_labels(truth, np.stack([hammer_spammer(3, 0.6)] * 6)).answers
    >>> answers[:, 5] = answers[:, 4]
    >>> ann = Annotations.from_answers(answers)
    >>> fused = DawidSkene().fit(ann)
    >>> find_copied_pairs(ann, fused.prior_, fused.confusion_).pairs
    (('rater_5', 'rater_6'),)
    """
    if not 0 < level < 1:
        raise InputError(f"The level is a probability between 0 and 1, not {level!r}.")
    answers, n_raters = annotations.answers, len(annotations.raters)
    first, second = _answer_pairs(answers.item, len(annotations), len(frequency))
    matrices = smooth_matrices(_drawn_together(confusion, np.bincount(answers.rater, minlength=n_raters)))
    told, together = sum_logs(annotations, frequency, matrices)
    pair = answers.rater[first].astype(np.int64) * n_raters + answers.rater[second]
    names, place = np.unique(pair, return_inverse=True)
    common = np.bincount(place, minlength=len(names))
    same, expected, evidence = (np.zeros(len(names)) for _ in range(3))
    for start in range(0, len(first), _CHUNK):
        part = slice(start, start + _CHUNK)
        one, other, where = first[part], second[part], place[part]
        logs = together[answers.item[one]] - told[one] - told[other]
        known = np.exp(logs - logs.max(axis=1, keepdims=True))
        known /= known.sum(axis=1, keepdims=True)
        of_one, of_other = matrices[answers.rater[one]], matrices[answers.rater[other]]  # (pairs, true, observed)
        agree = answers.label[one] == answers.label[other]
        by_one, by_other = (
            _given(matrix, answers.label[which]) for matrix, which in ((of_one, one), (of_other, other))
        )
        alone = (known * by_one * by_other).sum(axis=1)
        copied = ((known * by_one).sum(axis=1) + (known * by_other).sum(axis=1)) / 2 * agree
        same += np.bincount(where, agree, minlength=len(names))
        expected += np.bincount(where, (known * (of_one * of_other).sum(axis=2)).sum(axis=1), minlength=len(names))
        ratio = np.log(COPIED * copied + (1 - COPIED) * alone) - np.log(alone)
        evidence += np.bincount(where, ratio, minlength=len(names))
    kept = np.flatnonzero(common >= MIN_COMMON)
    kept = kept[np.argsort(-evidence[kept], kind="stable")]
    who = np.array(annotations.raters, dtype=object)
    table = {
        "first": who[names[kept] // n_raters], "second": who[names[kept] % n_raters], "common": common[kept],
        "same": same[kept].astype(int), "expected": expected[kept], "evidence": np.exp(np.minimum(evidence[kept], 600)),
        "chance": np.exp(-np.maximum(evidence[kept], 0)),
    }  # fmt: skip
    return CopiedPairs(pd.DataFrame(table), level)


def _drawn_together(confusion: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Matrices drawn to their mean, the more the fewer answers they rest on: the few of one who copies confirm it."""
    matrices = np.asarray(confusion, dtype=float)
    mean = np.average(matrices, axis=0, weights=np.maximum(given, 1e-9))
    own = (given / (given + PRIOR_ANSWERS))[:, None, None]
    return np.asarray(own * matrices + (1 - own) * mean)


def _answer_pairs(item: np.ndarray, n_items: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Places of all pairs of answers to the same item; answers are sorted by item."""
    count = np.bincount(item, minlength=n_items)
    if int((count * (count - 1) // 2).sum()) * n_classes > MOST_PAIRS:
        raise InputError(
            f"{len(item):,} answers make too many pairs to look for copies. Take a part of the items: "
            "annotations.take(…)."
        )
    start = np.cumsum(count) - count
    firsts, seconds = [], []
    for size in np.unique(count[count > 1]):
        one, other = np.triu_indices(size, k=1)
        begins = start[count == size]
        firsts.append((begins[:, None] + one).ravel())
        seconds.append((begins[:, None] + other).ravel())
    empty = [np.zeros(0, dtype=np.int64)]
    return np.concatenate(firsts or empty), np.concatenate(seconds or empty)


def _given(matrix: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Probability (pairs, true) of the labels given, under matrices (pairs, true, observed)."""
    return np.asarray(np.take_along_axis(matrix, label[:, None, None].astype(np.int64), axis=2)[:, :, 0])
