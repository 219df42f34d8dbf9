"""Labellings of pictures that may be the truth: each rater's own, and what all of them say together.

Each comes in two forms: as drawn, which is known where there are labels, and as foretold from the image.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from annotruth.data.annotations import Annotations
from annotruth.fusion.dawid_skene import DawidSkene
from annotruth.nn.labels import is_labelled, one_hot
from annotruth.validation import MISSING_PIXEL

TOGETHER = (
    "the mean as foretold", "the vote", "the vote as foretold", "the fused labels", "the fused labels as foretold",
    "everybody's labels at their word",
)  # fmt: skip
"""Labellings of all raters together, which follow those of each: first as drawn, then as foretold."""


def labelling_count(raters: int) -> int:
    """How many labellings there are."""
    return 2 * raters + len(TOGETHER)


def labelling_name(number: int, raters: Sequence[str]) -> str:
    """What a labelling is, in words.

    Examples
    --------
    >>> labelling_name(1, ["ann", "bob"]), labelling_name(2, ["ann", "bob"]), labelling_name(5, ["ann", "bob"])
    ("bob's drawings", "ann's drawings as foretold", 'the vote')
    """
    if number < 2 * len(raters):
        return f"{raters[number % len(raters)]}'s drawings{' as foretold' * (number >= len(raters))}"
    return TOGETHER[number - 2 * len(raters)]


def labellings(drawings: Tensor, labels: Tensor, log_truth: Tensor, log_confusion: Tensor) -> tuple[Tensor, Tensor]:
    """Labellings as foretold from the image, and what is known of them from the labels.

    Parameters
    ----------
    drawings : (batch, raters, classes, *spatial) log-probabilities of everybody's labels
    labels : (batch, raters, *spatial) uint8, 255 = missing
    log_truth : (batch, classes, *spatial) of a network that learns labels at their word
    log_confusion : (raters, classes, classes), log-probability of each label (last axis) by true class

    Returns
    -------
    two of (labellings, batch, *spatial) uint8; the second is 255 where the labels do not tell: the pixel was not
    labelled by the rater, or by two raters at least
    """
    mean = drawings.exp().mean(dim=1)
    own, word = drawings.argmax(dim=2).to(torch.uint8), log_truth.argmax(dim=1).to(torch.uint8)
    vote, fused = (_vote(own, mean), _fused(own, mean, log_confusion))
    alone = is_labelled(labels, mean.shape[1]).sum(dim=1) < 2
    votes, fusions = (
        each.masked_fill(alone, MISSING_PIXEL) for each in (_vote(labels, mean), _fused(labels, mean, log_confusion))
    )
    unknown = torch.full_like(word, MISSING_PIXEL)
    raters = own.unbind(dim=1)
    foretold = [*raters, *raters, mean.argmax(dim=1).to(torch.uint8), vote, vote, fused, fused, word]
    drawn = [*labels.unbind(dim=1), *(unknown for _ in raters), unknown, votes, unknown, fusions, unknown, unknown]
    return torch.stack(foretold), torch.stack(drawn)


def fused_confusion(labels: Sequence[np.ndarray], raters: int, classes: int) -> np.ndarray:
    """Log-probabilities (raters, classes, classes) of labels by true class, by Dawid and Skene's model of the labels.

    Parameters
    ----------
    labels : an array (raters, *spatial) of uint8 per item, 255 = missing

    Examples
    --------
    >>> truth = np.array([[0, 0, 0, 1, 1, 1]] * 9, dtype=np.uint8)
    >>> flips = np.eye(9, 6, dtype=np.uint8)
    >>> found = fused_confusion([np.stack([truth, truth, truth ^ flips])], raters=3, classes=2)
    >>> bool(found[0, 0, 0] > found[2, 0, 0] > found[2, 0, 1])
    True
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        items = [str(number) for number in range(len(labels))]
        names = [str(number) for number in range(raters)]
        fused = DawidSkene().fit(Annotations.from_masks(list(labels), items=items, raters=names, classes=classes))
    return np.log(np.maximum(fused.confusion_, np.finfo(np.float32).tiny))


def _vote(labels: Tensor, mean: Tensor) -> Tensor:
    """What most say of a pixel (batch, raters, *spatial); of classes that are tied, the one likelier on average."""
    votes = one_hot(labels, mean.shape[1], dim=2).sum(dim=1)
    return (votes + 0.5 * mean).argmax(dim=1).to(torch.uint8)


def _fused(labels: Tensor, mean: Tensor, log_confusion: Tensor) -> Tensor:
    """The likeliest class by what raters of such errors said; each class as likely as on average before that."""
    said = torch.einsum("brl...,rtl->bt...", one_hot(labels, mean.shape[1], dim=2), log_confusion)
    return (said + mean.clamp_min(1e-6).log()).argmax(dim=1).to(torch.uint8)
