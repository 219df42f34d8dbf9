"""M-MSR: skills from how often pairs of raters agree, robust against some who answer against the truth on purpose."""

from __future__ import annotations

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.base import check_iterations
from annotruth.fusion.identifiability import co_labelling_groups
from annotruth.fusion.majority import decide
from annotruth.fusion.registry import register
from annotruth.fusion.votes import Votes
from annotruth.fusion.weighted import WeightedVote

_MAX_RATERS = 20_000  # several tables of their pairs, of 3 GB each, are in memory


@register("m-msr")
class MMSR(WeightedVote):
    """Matrix mean-subsequence-reduced: the table of agreement between raters is completed by one number for each.

    Agreement of two raters, measured from chance (0) to perfect (1), is the product of their skills if they err
    independently. The factors are found by means from which the largest and smallest values are left out, so that some
    malicious raters spoil nothing. A skill then weighs as its log odds, and negative ones speak against what was said.

    Parameters
    ----------
    max_iter : most rounds
    tol : stop when the completed table moves by less than this (Frobenius norm)
    scope : skills for the whole data set ("dataset") or for each case with masks on its own ("case")

    Notes
    -----
    It needs pairs of raters who labelled the same items, each rater with several others: a rater who shares no item
    with anybody weighs nothing. Memory grows with the square of the number of raters; for tens of thousands of them
    take ``DawidSkene(one_coin=True)``.

    References
    ----------
    Ma and Olshevsky, Adversarial crowdsourcing through robust rank-one matrix completion, 2020.

    Examples
    --------
    >>> from annotruth import Annotations
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 500)
    >>> skills = (0.9, 0.85, 0.8, 0.75, 0.7, 0.1)
    >>> answers = np.stack([np.where(rng.random(500) < skill, truth, 1 - truth) for skill in skills], axis=1)
    >>> fused = MMSR().fit(Annotations.from_answers(answers))
    >>> np.sign(fused.state_.weight)
    array([ 1.,  1.,  1.,  1.,  1., -1.])
    """

    def __init__(self, max_iter: int = 1000, tol: float = 1e-8, scope: str = "dataset") -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.scope = scope

    def check(self, annotations: Annotations) -> None:
        super().check(annotations)
        check_iterations(self.max_iter, self.tol)
        n_raters = len(annotations.raters)
        if n_raters > _MAX_RATERS:
            raise InputError(
                f"M-MSR compares every rater with every other, and {n_raters:,} raters have too many pairs: it takes "
                f"up to {_MAX_RATERS:,}. Take dawid-skene with --option one_coin=true."
            )

    def share(self, votes: Votes, weight: np.ndarray, prior: np.ndarray) -> np.ndarray:
        """Weights are log odds: their sums are those of a posterior, all classes being alike beforehand."""
        scores = votes.vote_counts(weight[votes.answers.rater])
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return decide(votes, powers / powers.sum(axis=1, keepdims=True), prior)

    def weigh(self, votes: Votes) -> tuple[np.ndarray, bool]:
        n_classes, n_items = votes.n_classes, float(votes.weight[votes.answered].sum())
        weight = np.zeros(votes.n_raters)
        if n_classes == 1:
            return weight, True
        common, same = _pairs(votes)
        paired = np.flatnonzero(common.sum(axis=1) > 0)
        if not len(paired):
            raise InputError(
                "M-MSR compares raters who labelled the same items, and no two of them did. Take dawid-skene with "
                "known truth of some items, or have some items labelled by several raters."
            )
        common, same = common[np.ix_(paired, paired)], same[np.ix_(paired, paired)]
        observed = common > 0
        agreed = np.where(observed, same / np.where(observed, common, 1.0), 0.0) * n_classes / (n_classes - 1)
        agreed -= 1 / (n_classes - 1)
        size, converged = self._factors(np.abs(agreed), observed, n_items)
        margin = 1 / np.sqrt(max(n_items, 4.0))
        groups = co_labelling_groups(votes.answers.item, votes.answers.rater, votes.n_raters)[paired]
        signs = _signs(np.where(observed, agreed, 0.0), groups)
        skill = np.clip(signs * size, margin - 1 / (n_classes - 1), 1 - margin)
        right = skill * (n_classes - 1) / n_classes + 1 / n_classes
        weight[paired] = np.log(right * (n_classes - 1) / (1 - right))
        return weight, converged

    def _factors(self, table: np.ndarray, observed: np.ndarray, n_items: float) -> tuple[np.ndarray, bool]:
        """Non-negative numbers (raters,) whose products come near a symmetric table (raters, raters)."""
        n_trimmed = max(int(observed.sum(axis=0).min()) // 2 - 1, 0)
        rows, columns = np.full(len(table), 0.5), np.full(len(table), 0.5)
        converged = False
        for _ in range(self.max_iter):
            before = np.outer(rows, columns)
            columns = _trimmed_means(table, rows, observed, columns, n_trimmed, n_items)
            rows = _trimmed_means(table.T, columns, observed.T, rows, n_trimmed, n_items)
            converged = bool(np.linalg.norm(np.outer(rows, columns) - before) <= self.tol)
            if converged:
                break
        scale = np.sqrt(np.linalg.norm(rows) / np.linalg.norm(columns))
        return rows / scale, converged


def _pairs(votes: Votes) -> tuple[np.ndarray, np.ndarray]:
    """On how many items each two raters both voted, and voted alike: (raters, raters) each, 0 on the diagonal."""
    from scipy.sparse import csr_array

    answers, n_raters = votes.answers, votes.n_raters
    said = answers.item.astype(np.int64) * votes.n_classes + answers.label
    found = []
    for group, size in ((answers.item, 1), (said, votes.n_classes)):
        given = csr_array((np.ones(len(answers)), (group, answers.rater)), (votes.n_rows * size, n_raters))
        weighted = given.multiply(np.repeat(votes.weight, size)[:, None]).tocsr()
        table = (given.T @ weighted).toarray()
        np.fill_diagonal(table, 0.0)
        found.append(table)
    return found[0], found[1]


def _trimmed_means(
    table: np.ndarray, rows: np.ndarray, observed: np.ndarray, now: np.ndarray, n_trimmed: int, n_items: float
) -> np.ndarray:
    """Mean of each column of table / rows without up to so many values above, and below, what it is now."""
    ratio = np.where(observed, table / rows[:, None], np.inf)
    ratio.sort(axis=0)
    n_seen, place = observed.sum(axis=0), np.arange(len(now))
    low = np.minimum((ratio < now).sum(axis=0), n_trimmed)
    high = n_seen - np.minimum(n_seen - (ratio <= now).sum(axis=0), n_trimmed)
    total = np.concatenate([np.zeros((1, len(now))), np.cumsum(np.where(np.isfinite(ratio), ratio, 0.0), axis=0)])
    kept = high - low
    mean = (total[high, place] - total[low, place]) / np.maximum(kept, 1)
    mean = np.where((kept == 1) & (mean == 0), 1 / np.sqrt(n_items), mean)
    return np.where(kept > 0, np.maximum(mean, np.finfo(float).tiny ** 0.25), now)


def _signs(agreed: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Signs (raters,) whose products are those of the agreement (raters, raters) best, most of a group's positive."""
    signs = np.ones(len(agreed))
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        _, vectors = np.linalg.eigh(agreed[np.ix_(members, members)])
        own = np.where(vectors[:, -1] >= 0, 1.0, -1.0)
        signs[members] = own if own.sum() > 0 or (own.sum() == 0 and own[0] > 0) else -own
    return signs
