"""Two images mixed into one, their strokes and predictions with them: the idea of CycleMix."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from annotruth.methods.base import Batch, MethodModel
from annotruth.methods.options import check_not_negative
from annotruth.methods.registry import register
from annotruth.methods.strokes.partial_ce import PartialCE, stroke_loss
from annotruth.nn import is_labelled


@register
@dataclass(frozen=True)
class CycleMix(PartialCE):
    """A patch of another image is pasted in, with its strokes; what the network sees must not depend on that.

    Simplified: the paper finds the patches that carry most strokes by optimal transport, and cuts others out; here a
    box of random size and place comes from the next image of the batch. Its local consistency, which keeps the largest
    component of each structure, is left out: it holds only for organs in one piece.

    Options
    -------
    consistency : weight of the demand that predictions on mixed images be the mix of predictions
    others as partial-ce
    """

    name = "cycle-mix"
    paper = "Zhang and Zhuang 2022, its idea; comparison of the coarse-label paper"
    summary = "a network on strokes of images that are mixed"

    consistency: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative(consistency=self.consistency)

    def loss(self, model: MethodModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        log_truth = model.log_truth(batch.images)
        loss, likelihood = stroke_loss(log_truth, batch.labels)
        if not model.training or not is_labelled(batch.labels, log_truth.shape[1]).any():
            return loss, likelihood
        pasted = random_box(batch.images.shape[2:], batch.images.device)
        log_mixed = model.log_truth(_mixed(batch.images, pasted))
        of_mixed, _ = stroke_loss(log_mixed, _mixed(batch.labels, pasted))
        # Negative cosine similarity, as in the paper, of what is seen after and before mixing.
        before, after = _mixed(log_truth.exp(), pasted).detach(), log_mixed.exp()
        alike = torch.cosine_similarity(before, after, dim=1).mean()
        return (loss + of_mixed) / 2 + self.consistency * (1 - alike), likelihood


def random_box(size: torch.Size, device: torch.device) -> Tensor:
    """A box of half of each side, or up to the whole, somewhere: bool (*spatial)."""
    inside = torch.ones(size, dtype=torch.bool, device=device)
    for axis, length in enumerate(size):
        side = int(torch.randint(max(length // 2, 1), length + 1, ()))
        start = int(torch.randint(0, length - side + 1, ()))
        place = torch.arange(length, device=device).view([-1 if axis == other else 1 for other in range(len(size))])
        inside &= (place >= start) & (place < start + side)
    return inside


def _mixed(values: Tensor, pasted: Tensor) -> Tensor:
    return torch.where(pasted, values.roll(1, dims=0), values)
