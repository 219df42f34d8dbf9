"""Labellings of pictures that may be the truth: each rater's own, and what all of them say together.

Each comes in forms: as drawn, which is known where there are labels, and as foretold from the image. The mean of
everybody's drawings, and a network that takes all labels at their word, are only foretold. What one rater would have
drawn is also known from the others' drawings, once it is known how much larger or smaller each of them draws.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from annotruth.data.annotations import Annotations
from annotruth.fusion.dawid_skene import DawidSkene
from annotruth.methods.anchor.offsets import REACH, SHIFTS, drawn_distances, in_the_middle, within
from annotruth.nn.labels import is_labelled, one_hot
from annotruth.validation import MISSING_PIXEL

MEAN, VOTE, FUSED, WORD = TOGETHER = (
    "the mean", "the vote", "the fused labels", "everybody's labels at their word",
)  # fmt: skip
"""Labellings of all raters together, which follow those of each; then come everybody's borders at some distances."""


NEARLY = 0.9
"""A drawing counts if its Dice with what is foretold is this share of that of the likest one."""


def labelling_count(raters: int) -> int:
    """How many labellings there are."""
    return raters + len(TOGETHER) + len(SHIFTS)


def labelling_name(number: int, raters: Sequence[str]) -> str:
    """What a labelling is, in words.

    Examples
    --------
    >>> [labelling_name(number, ["ann", "bob"]) for number in (1, 3, 6, 10)]
    ["bob's drawings", 'the vote', "everybody's borders, 2 pixels farther in", "everybody's borders"]
    """
    if number < len(raters):
        return f"{raters[number]}'s drawings"
    if number < len(raters) + len(TOGETHER):
        return TOGETHER[number - len(raters)]
    shift = SHIFTS[number - len(raters) - len(TOGETHER)]
    moved = f", {abs(shift):g} pixels farther {'out' if shift > 0 else 'in'}" if shift else ""
    return f"everybody's borders{moved}"


class Labellings:
    """Labellings of a batch, by their numbers: as foretold from the image, and what is known of them from the labels.

    Parameters
    ----------
    drawings : (batch, raters, classes, *spatial) log-probabilities of everybody's labels
    labels : (batch, raters, *spatial) uint8, 255 = missing
    log_truth : (batch, classes, *spatial) of a network that learns labels at their word
    log_confusion : (raters, classes, classes), log-probability of each label (last axis) by true class
    offsets : (labellings, raters, classes - 1) of raters' borders from those of the labelling, see
        ``methods.anchor.offsets``; inf of those who are left out
    """

    def __init__(
        self, drawings: Tensor, labels: Tensor, log_truth: Tensor, log_confusion: Tensor, offsets: Tensor
    ) -> None:
        self.labels, self.log_truth, self.log_confusion, self.offsets = labels, log_truth, log_confusion, offsets
        self.raters, self.classes = drawings.shape[1:3]
        self.mean = drawings.exp().mean(dim=1)
        self.own = drawings.argmax(dim=2).to(torch.uint8)

    def foretold(self, number: int) -> Tensor:
        """What the image gives away of a labelling: (batch, *spatial) uint8."""
        if number < self.raters:
            return self.own[:, number]
        if number >= self.raters + len(TOGETHER):
            borders = in_the_middle(self._foretold_distances - _broadcast(self.offsets[number], self.own))
            return within(borders.nan_to_num(REACH))
        match TOGETHER[number - self.raters]:
            case "the vote":
                return _vote(self.own, self.mean)
            case "the fused labels":
                return self._fused(self.own)
            case "the mean":
                return self.mean.argmax(dim=1).to(torch.uint8)
            case _:
                return self.log_truth.argmax(dim=1).to(torch.uint8)

    def drawn(self, number: int) -> Tensor:
        """The labelling itself, 255 where too few labels were given to tell: (batch, *spatial) uint8."""
        if number < self.raters:
            return self.labels[:, number]
        if number >= self.raters + len(TOGETHER):
            return self._moved(number)
        match TOGETHER[number - self.raters]:
            case "the vote":
                return self._of_several(_vote(self.labels, self.mean))
            case "the fused labels":
                return self._of_several(self._fused(self.labels))
        return torch.full_like(self.labels[:, 0], MISSING_PIXEL)

    def by_others(self, number: int) -> Tensor:
        """What other drawings tell of a labelling where it was not drawn, or by a slip: (batch, *spatial) uint8.

        255 where they do not tell: of a vote of several, it is the vote that tells, and of everybody's borders all
        drawings do already.
        """
        if number >= self.raters + len(TOGETHER):
            return torch.full_like(self.labels[:, 0], MISSING_PIXEL)
        moved = self._moved(number)
        return moved if number < self.raters else moved.masked_fill(self._by_several(), MISSING_PIXEL)

    def _moved(self, number: int) -> Tensor:
        """All drawings but a rater's own, moved to where a labelling's borders lie: the one in the middle.

        Of an item's drawings, those count that are then nearly as like what is foretold of the labelling as the one
        that is most like it.
        """
        foretold, offsets = self.foretold(number), self.offsets[number]
        others = [rater for rater in range(self.raters) if rater != number and offsets[rater].isfinite().all()]
        if not others:
            return torch.full_like(foretold, MISSING_PIXEL)
        moved = self._distances[:, others] - _broadcast(offsets[others], self.labels)
        like = torch.stack([overlap(within(each), foretold) for each in moved.unbind(dim=1)], dim=1)
        like = like.masked_fill((self.labels[:, others] == MISSING_PIXEL).flatten(2).all(dim=2), 0.0)
        unlike = like < NEARLY * like.max(dim=1, keepdim=True).values
        return within(in_the_middle(moved.masked_fill(unlike.view(*unlike.shape, *[1] * (moved.ndim - 2)), torch.nan)))

    @cached_property
    def _distances(self) -> Tensor:
        """From everybody's borders (batch, raters, classes - 1, *spatial), nan where somebody did not label."""
        return drawn_distances(self.labels, self.classes)

    @cached_property
    def _foretold_distances(self) -> Tensor:
        return drawn_distances(self.own, self.classes)

    def _by_several(self) -> Tensor:
        """Where (batch, *spatial) at least two labelled a pixel."""
        return is_labelled(self.labels, self.classes).sum(dim=1) >= 2

    def _of_several(self, labelling: Tensor) -> Tensor:
        """What is known of a labelling where at least two labelled a pixel."""
        return labelling.masked_fill(~self._by_several(), MISSING_PIXEL)

    def _fused(self, labels: Tensor) -> Tensor:
        """The likeliest class by what raters of such errors said; each class as likely as on average before that."""
        said = torch.einsum("brl...,rtl->bt...", one_hot(labels, self.classes, dim=2), self.log_confusion)
        return (said + self.mean.clamp_min(1e-6).log()).argmax(dim=1).to(torch.uint8)


def _broadcast(offsets: Tensor, labels: Tensor) -> Tensor:
    """Offsets (raters, classes - 1), nan of those who are left out, for labels (batch, raters, *spatial)."""
    known = offsets.masked_fill(~offsets.isfinite().all(dim=1, keepdim=True), torch.nan)
    return known.view(*known.shape, *[1] * (labels.ndim - 2))


def overlap(drawn: Tensor, foretold: Tensor) -> Tensor:
    """Dice of two labellings (batch, *spatial), all foreground classes together, where the first is known: (batch,).

    Examples
    --------
    >>> overlap(torch.tensor([[0, 1, 2, 255], [0, 0, 0, 0]]), torch.tensor([[0, 1, 1, 1], [0, 0, 0, 0]]))
    tensor([0.5000, 1.0000])
    """
    both, area = overlap_and_area(drawn, foretold)
    return torch.where(area > 0, 2 * both / area.clamp_min(1), 1.0)


def overlap_and_area(drawn: Tensor, foretold: Tensor) -> tuple[Tensor, Tensor]:
    """Foreground pixels (batch,) that two labellings have in common, and of both added up, where the first is known."""
    known, pixels = drawn != MISSING_PIXEL, tuple(range(1, drawn.ndim))
    area = ((drawn > 0) & known).sum(dim=pixels) + ((foretold > 0) & known).sum(dim=pixels)
    return ((drawn > 0) & known & (drawn == foretold)).sum(dim=pixels), area


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
