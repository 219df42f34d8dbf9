"""Models in which an answer speaks for the class it names, and against all others alike: the posterior of the truth.

What an answer adds to the log odds of its class is its gain. GLAD's gains differ by rater and item, those of MACE by
rater and class; all else is the same.
"""

from __future__ import annotations

import numpy as np

from annotruth.fusion.em import log_of
from annotruth.fusion.votes import Votes
from annotruth.validation import MISSING_LABEL


def gain_posterior(votes: Votes, prior: np.ndarray, gain: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Posterior of the truth, and the logarithm of what it was divided by.

    posterior[i, k] ∝ prior[k] · exp(Σ_answers on i that name k: gain)

    Parameters
    ----------
    prior : (classes,)
    gain : (answers,) log of how much more probable the answer is if it is true than if it is not

    Returns
    -------
    posterior : (rows, classes) float64; certain where gold labels are
    log_total : (rows,) with what all answers add whether true or not, the log evidence

    Examples
    --------
    >>> from annotruth.data.answers import Answers
    >>> answers = Answers(np.array([0, 0], np.int32), np.array([0, 1], np.int32), np.array([1, 0], np.int16))
    >>> posterior, _ = gain_posterior(Votes.from_answers(answers, 1, 2, 2), np.array([0.5, 0.5]), np.log([9.0, 3.0]))
    >>> posterior
    array([[0.25, 0.75]])
    """
    score = votes.vote_counts(gain)
    score += log_of(prior)
    known = np.flatnonzero(votes.gold != MISSING_LABEL)
    if len(known):
        true = votes.gold[known]
        certain = np.maximum(score[known, true], -1e300)  # also of a class that is held to be impossible
        score[known] = -np.inf
        score[known, true] = certain
    most = score.max(axis=1, keepdims=True)
    np.exp(score - most, out=score)
    total = score.sum(axis=1, keepdims=True)
    score /= total
    return score, (most + np.log(total))[:, 0]
