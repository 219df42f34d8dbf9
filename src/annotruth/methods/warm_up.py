"""The warm-up before raters' errors are learnt: labels are taken at their word, but not those that say nothing."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from annotruth.nn import Confusion, IdentityConfusion, noisy_label_loss
from annotruth.validation import MISSING_PIXEL

LEAST_SHARE = 0.1
"""A rater who tells less than this share of what the best one tells has no say in the second half of the warm-up."""
TOLD_APART = 0.5
"""The network tells classes apart once its own view and the best rater's labels tell this much of each other."""
DOUBT = 1e-6
"""What is left to the classes the network does not take for the truth, so that logarithms stay finite."""


def warm_up_loss(
    log_truth: Tensor, labels: Tensor, share: float, confusion: Callable[[], Confusion]
) -> tuple[Tensor, Tensor]:
    """The loss of labels taken at their word: the limit of a strongly rewarded trace.

    The truth model must first look like the labels, class by class, or truth and errors may settle with classes
    swapped. Somebody who marks nothing, or marks at random, drags every class but the commonest towards one half, where
    the two models may take the wrong turn. So in the second half, when the network tells classes apart, such raters are
    found and left out, and the annotator model learns all raters' errors against what the network then takes for the
    truth. It does not touch the truth model yet.

    Parameters
    ----------
    log_truth : (batch, classes, *spatial);  labels : (batch, raters, *spatial)
    share : how much of the warm-up is done, 0 to 1
    confusion : gives the annotator model's matrices

    Returns
    -------
    loss, and the negative log-likelihood of the labels taken at their word
    """
    word = IdentityConfusion(labels.shape[1], log_truth.shape[1])
    if share < 0.5:
        return noisy_label_loss(log_truth, word, labels)
    truth = log_truth.detach().exp()
    told = informedness(truth, labels)
    if told.max() < TOLD_APART:
        return noisy_label_loss(log_truth, word, labels)
    silent = (told < LEAST_SHARE * told.max()).view(1, -1, *[1] * (labels.ndim - 2))
    of_truth, likelihood = noisy_label_loss(log_truth, word, torch.where(silent, MISSING_PIXEL, labels))
    settled = torch.zeros_like(truth).scatter_(1, truth.argmax(dim=1, keepdim=True), 1.0)
    of_raters, _ = noisy_label_loss(settled.clamp_min(DOUBT).log(), confusion(), labels)
    return of_truth + of_raters, likelihood


def informedness(truth: Tensor, labels: Tensor) -> Tensor:
    """How much each rater's labels tell of the truth: (raters,), 1 = everything, 0 = no more than chance.

    The mean chance of being right, over the classes, on a scale from guessing to certainty. A rater without labels
    tells nothing.

    Parameters
    ----------
    truth : (batch, classes, *spatial) probabilities;  labels : (batch, raters, *spatial)

    Examples
    --------
    >>> truth = torch.tensor([[[0.0, 0.0, 1.0], [1.0, 1.0, 0.0]]])
    >>> labels = torch.tensor([[[1, 1, 0], [0, 0, 0]]], dtype=torch.uint8)  # one is right, one always says 0
    >>> informedness(truth, labels)
    tensor([1., 0.])
    """
    classes = truth.shape[1]
    truth, labels = truth.flatten(2), labels.flatten(2)
    right = torch.stack([(truth[:, [c]] * (labels == c)).sum(dim=(0, 2)) for c in range(classes)])
    given = torch.stack([(truth[:, [c]] * (labels != MISSING_PIXEL)).sum(dim=(0, 2)) for c in range(classes)])
    mean = (right / given.clamp_min(1e-9)).mean(dim=0)
    return ((mean * classes - 1) / (classes - 1)).clamp_min(0)
