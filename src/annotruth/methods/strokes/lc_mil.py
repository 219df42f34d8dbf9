"""Coarse masks cleaned by a network that learnt from bags of pixels: the idea of LC-MIL."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from annotruth.data.annotations import Annotations
from annotruth.methods.base import Batch, DataSpec, Method, MethodModel, as_tensor
from annotruth.methods.protocols import Stages
from annotruth.methods.registry import register
from annotruth.methods.strokes.drawings import check_strokes, whole_masks
from annotruth.methods.targets import majority_of
from annotruth.methods.warmup import loss_at_their_word
from annotruth.nn import class_index, is_labelled

BAG_SIDE = 4
"""Pixels along each side of a bag."""
BAG_SHARE = 0.5
"""Share of the training in which the network learns from bags; then it cleans the masks it learns from."""
MIN_PROBABILITY = 1e-6
"""What shares and probabilities of a bag are at least, so that quotients and logarithms stay finite."""
SURE_PROBABILITY = 0.7
"""Probability above which the network's word stands against a coarse label."""


@register
@dataclass(frozen=True)
class LabelCleaning(Stages, Method[MethodModel]):
    """Where a coarse mask marks a class, pixels nearby are of it, though not every one.

    Simplified: the paper trains on bags of patches of one huge slide, with attention over a bag, and then labels the
    patches anew. Here a bag is a window of pixels that is of a class as far as those marked in it are on average, all
    images share one network, and cleaning goes on while it is trained. Unmarked pixels are background.
    """

    name = "lc-mil"
    paper = "Wang et al. 2021, its idea; comparison of the coarse-label paper"
    summary = "a network on coarse masks that it cleans by multiple-instance learning"
    tasks = ("masks",)
    learns_from_raters = False

    def check(self, annotations: Annotations) -> None:
        check_strokes(annotations, unmarked_is_background=True, negatives=False)

    def mask_targets(self, annotations: Annotations, index: int) -> Tensor:
        return majority_of(whole_masks(as_tensor(annotations.item_masks(index))), len(annotations.classes))

    def n_targets(self, spec: DataSpec) -> int:
        return 1

    def objective_is_final(self, model: MethodModel, progress: float) -> bool:
        return progress >= BAG_SHARE

    def loss(self, model: MethodModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        log_truth = model.log_truth(batch.images)
        if self.objective_is_final(model, progress):
            return loss_at_their_word(log_truth, cleaned(log_truth, batch.labels))
        loss = bag_loss(log_truth, batch.labels[:, 0])
        return loss, loss.detach()


def bag_loss(log_truth: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy in which a window is of a class as its marked pixels are on average; labels (batch, *spatial).

    Background is told pixel by pixel, each class counting alike.
    """
    classes, dims = log_truth.shape[1], log_truth.ndim - 2
    pool = F.avg_pool2d if dims == 2 else F.avg_pool3d
    means = []
    for number in range(classes):
        marked = labels == number
        if not marked.any():
            continue
        of_class = log_truth[:, number]
        if number:
            inside, found = (
                pool(part[:, None], BAG_SIDE, ceil_mode=True) for part in (marked.float(), of_class.exp() * marked)
            )
            marked = inside > 0
            of_class = (found / inside.clamp_min(MIN_PROBABILITY)).clamp_min(MIN_PROBABILITY).log()
        means.append(-of_class[marked].mean())
    return torch.stack(means).mean() if means else 0 * log_truth.sum()


@torch.no_grad()
def cleaned(log_truth: Tensor, labels: Tensor) -> Tensor:
    """Labels (batch, 1, *spatial) where the network is not sure of another class, that class where it is.

    Examples
    --------
    >>> log_truth = torch.tensor([[[0.9, 0.6, 0.2], [0.1, 0.4, 0.8]]]).log()
    >>> cleaned(log_truth, torch.tensor([[[1, 1, 1]]]))
    tensor([[[0, 1, 1]]])
    """
    classes = log_truth.shape[1]
    best, likeliest = log_truth.max(dim=1, keepdim=True)
    # No class is cleaned away altogether.
    still = torch.stack([((labels == c) & (likeliest == c)).any() for c in range(classes)])
    sure = (best.exp() > SURE_PROBABILITY) & is_labelled(labels, classes) & still[class_index(labels, classes)]
    return torch.where(sure, likeliest.to(labels.dtype), labels)
