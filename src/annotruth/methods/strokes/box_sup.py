"""Boxes in which the object is found while the network learns: the idea of BoxSup."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from annotruth.data.annotations import Annotations
from annotruth.methods.base import Batch, DataSpec, M, Method, MethodModel, as_tensor
from annotruth.methods.protocols import Stages
from annotruth.methods.registry import register
from annotruth.methods.strokes.cuts import grab_cut, opencv
from annotruth.methods.strokes.drawings import check_strokes, whole_masks
from annotruth.methods.targets import majority_of
from annotruth.methods.warmup import loss_at_their_word
from annotruth.nn import is_labelled
from annotruth.validation import MISSING_PIXEL

CANDIDATE_SHARE = 0.4
"""Share of the training on candidates alone; then the network decides within the boxes."""
MIN_FILLED = 0.1
"""Share of a batch's boxes that the network must fill before its decisions count: it may not empty them."""


@dataclass(frozen=True)
class BoxMethod(Stages, Method[M]):
    """Base of the methods that learn from boxes: what they teach, and when the network decides within them.

    A box is whatever a mask marks as a class; ``simulate_boxes`` draws some.
    """

    tasks = ("masks",)
    learns_from_raters = False

    def check(self, annotations: Annotations) -> None:
        opencv()
        check_strokes(annotations, unmarked_is_background=True, negatives=False)

    def mask_targets(self, annotations: Annotations, index: int) -> Tensor:
        """The boxes, and the candidates in them: (2, *spatial)."""
        classes = len(annotations.classes)
        boxes = majority_of(whole_masks(as_tensor(annotations.item_masks(index))), classes)[0].numpy()
        image, nowhere = annotations.item_image(index), np.zeros(boxes.shape, dtype=bool)
        found = np.where(boxes == MISSING_PIXEL, boxes, 0)
        for number in range(1, classes):
            box = boxes == number
            if box.any():
                candidate = grab_cut(image, inside=nowhere, outside=~box, maybe=box) & box
                found[candidate if candidate.any() else box] = number
        return as_tensor(np.stack([boxes, found]))

    def n_targets(self, spec: DataSpec) -> int:
        return 2

    def objective_is_final(self, model: M, progress: float) -> bool:
        return progress >= CANDIDATE_SHARE

    def labels(self, log_truth: Tensor, batch: Batch, progress: float) -> Tensor:
        """What is taken for true now: (batch, 1, *spatial)."""
        boxes, candidates = batch.labels[:, :1], batch.labels[:, 1:]
        return estimates_in_boxes(log_truth, boxes, candidates) if progress >= CANDIDATE_SHARE else candidates


@register
@dataclass(frozen=True)
class BoxSup(BoxMethod[MethodModel]):
    """Outside the boxes is background; inside, first a candidate that follows the image, then the network's estimate.

    Simplified: the paper chooses among many region proposals for each box, again and again, by their overlap with the
    box and with the network's estimate. Here the one proposal is GrabCut's, and the network's own estimate, kept within
    the box, follows it.
    """

    name = "box-sup"
    paper = "Dai et al. 2015, its idea; comparison of the coarse-label paper"
    summary = "a network on boxes, which finds the objects in them"

    def loss(self, model: MethodModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        log_truth = model.log_truth(batch.images)
        return loss_at_their_word(log_truth, self.labels(log_truth, batch, progress))


@torch.no_grad()
def estimates_in_boxes(log_truth: Tensor, boxes: Tensor, candidates: Tensor) -> Tensor:
    """The class of a box where the network finds it likelier than background; candidates where it finds too little.

    Examples
    --------
    >>> log_truth = torch.tensor([[[0.2, 0.9, 0.2, 0.2], [0.8, 0.1, 0.8, 0.8]]]).log()
    >>> estimates_in_boxes(log_truth, torch.tensor([[[1, 1, 1, 0]]]), torch.tensor([[[1, 1, 1, 0]]]))
    tensor([[[1, 0, 1, 0]]])
    """
    labels = candidates.clone()
    for number in range(1, log_truth.shape[1]):
        box = boxes == number
        seen = box & (log_truth[:, number] > log_truth[:, 0])[:, None]
        if seen.sum() >= MIN_FILLED * box.sum():
            labels[box] = 0
            labels[seen] = number
    return labels.masked_fill(~is_labelled(boxes, log_truth.shape[1]), MISSING_PIXEL)
