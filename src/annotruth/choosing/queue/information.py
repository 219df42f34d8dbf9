"""What one more label is expected to tell: mutual information of labels and truth, and posteriors after a label."""

from __future__ import annotations

import numpy as np
from scipy.special import entr

MAX_BRANCHES = 16
"""Of posteriors that an item may have after labels that are ordered but not yet given; rarer ones are given up."""


def entropy(probability: np.ndarray) -> np.ndarray:
    """Entropy (…,) in nats of distributions (…, classes).

    Examples
    --------
    >>> entropy(np.array([[0.5, 0.5], [1.0, 0.0]])).round(3)
    array([0.693, 0.   ])
    """
    return entr(probability).sum(axis=-1)


def information(posterior: np.ndarray, confusion: np.ndarray) -> np.ndarray:
    """Expected information of a rater's label about the truth, in nats: I(T; L) = H(p A) - Σ_k p_k H(A_k).

    Parameters
    ----------
    posterior : (rows, classes) what is known of the truth
    confusion : (raters, classes, classes), [true, observed]

    Returns
    -------
    (rows, raters) at least 0, at most the row's entropy

    Examples
    --------
    >>> good, spammer = np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([[0.7, 0.3], [0.7, 0.3]])
    >>> information(np.array([[0.5, 0.5], [1.0, 0.0]]), np.stack([good, spammer])).round(3)
    array([[0.368, 0.   ],
           [0.   , 0.   ]])
    """
    n_raters, n_classes, _ = confusion.shape
    told = posterior @ confusion.transpose(1, 0, 2).reshape(n_classes, -1)
    after = entropy(told.reshape(len(posterior), n_raters, n_classes))
    return np.maximum(after - posterior @ entropy(confusion).T, 0.0)


def branch_information(weight: np.ndarray, posterior: np.ndarray, confusion: np.ndarray) -> np.ndarray:
    """Expected information of a label given labels that are ordered already, whatever these will be.

    Parameters
    ----------
    weight : (rows, branches) how probable each outcome of the labels ordered is
    posterior : (rows, branches, classes) what will then be known
    confusion : (raters, classes, classes) the same raters for all rows; or (rows, raters, classes, classes)

    Returns
    -------
    (rows, raters)

    Examples
    --------
    >>> good = np.array([[[0.9, 0.1], [0.1, 0.9]]])
    >>> weight, posterior, _ = branch(np.ones((1, 1)), np.full((1, 1, 2), 0.5), good[0])
    >>> branch_information(weight, posterior, good).round(3)  # the second such label tells less than the first
    array([[0.146]])
    """
    rows, branches, n_classes = posterior.shape
    if confusion.ndim == 3:
        gain = information(posterior.reshape(-1, n_classes), confusion).reshape(rows, branches, len(confusion))
        return np.einsum("nb,nbr->nr", weight, gain)
    n_raters = confusion.shape[1]
    told = posterior @ confusion.transpose(0, 2, 1, 3).reshape(rows, n_classes, n_raters * n_classes)
    after = entropy(told.reshape(rows, branches, n_raters, n_classes))
    noise = posterior @ entropy(confusion).transpose(0, 2, 1)
    return np.maximum(np.einsum("nb,nbr->nr", weight, after - noise), 0.0)


def accuracy_gain(weight: np.ndarray, posterior: np.ndarray, confusion: np.ndarray) -> np.ndarray:
    """By how much a label raises the chance that the most probable class is true: Σ_l max_k p_k A_kl - max_k p_k.

    Zero for a label that changes nobody's mind, however it comes out. Parameters and shapes are those of
    :func:`branch_information`.

    Examples
    --------
    >>> good, weak = np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([[0.6, 0.4], [0.4, 0.6]])
    >>> accuracy_gain(np.ones((1, 1)), np.array([[[0.7, 0.3]]]), np.stack([good, weak])).round(3)
    array([[0.2, 0. ]])
    """
    n_classes = posterior.shape[-1]
    matrices = confusion[None] if confusion.ndim == 3 else confusion  # (1 or rows, raters, true, observed)
    after = np.zeros((*posterior.shape[:2], matrices.shape[1]))
    for observed in range(n_classes):
        best = np.zeros_like(after)
        for true in range(n_classes):
            np.maximum(best, posterior[:, :, true, None] * matrices[:, None, :, true, observed], out=best)
        after += best
    gain = np.maximum(after - posterior.max(axis=2)[:, :, None], 0.0)
    return np.asarray(np.einsum("nb,nbr->nr", weight, gain))


def branch(
    weight: np.ndarray, posterior: np.ndarray, confusion: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outcomes after one more label is ordered, the ``MAX_BRANCHES`` most probable ones.

    Nothing more is expected of outcomes that are given up: their weight is lost, so that gains come out too small
    rather than too large.

    Parameters
    ----------
    weight, posterior : (rows, branches) and (rows, branches, classes), as in :func:`branch_information`
    confusion : (classes, classes) of the rater, [true, observed]

    Returns
    -------
    weight, posterior : as above
    given_up : (rows,) how probably the outcomes given up come and their most probable class is true

    Examples
    --------
    >>> good = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> weight, posterior, _ = branch(np.ones((1, 1)), np.array([[[0.5, 0.5]]]), good)
    >>> weight[0].tolist(), posterior[0].round(2).tolist()
    ([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
    """
    rows, _, n_classes = posterior.shape
    joint = (weight[:, :, None] * posterior)[:, :, None, :] * confusion.T  # (rows, branches, observed, true)
    joint = joint.reshape(rows, posterior.shape[1] * n_classes, n_classes)
    given_up = np.zeros(rows)
    if joint.shape[1] > MAX_BRANCHES:
        order = np.argsort(-joint.sum(axis=2), axis=1, kind="stable")
        joint = np.take_along_axis(joint, order[:, :, None], axis=1)
        given_up = joint[:, MAX_BRANCHES:].max(axis=2).sum(axis=1)
        joint = joint[:, :MAX_BRANCHES]
    total = joint.sum(axis=2)
    uniform = np.full_like(joint, 1 / n_classes)
    return total, np.divide(joint, total[:, :, None], out=uniform, where=total[:, :, None] > 0), given_up


def expected_accuracy(weight: np.ndarray, posterior: np.ndarray) -> np.ndarray:
    """How probably the most probable class will be the true one, (rows,), over the outcomes of labels ordered.

    Examples
    --------
    >>> expected_accuracy(np.array([[0.5, 0.5]]), np.array([[[0.9, 0.1], [0.3, 0.7]]]))
    array([0.8])
    """
    return (weight * posterior.max(axis=2)).sum(axis=1)
