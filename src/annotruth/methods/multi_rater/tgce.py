"""Truncated generalised cross-entropy: a loss that is cut off as far as a rater seems unreliable, here or anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import torch
import torch.nn.functional as F
from monai.networks.blocks import Convolution
from torch import Tensor, nn

from annotruth.errors import InputError
from annotruth.methods.base import HEAD_START, Batch, DataSpec, Method, MethodModel
from annotruth.methods.protocols import FusesLabels
from annotruth.methods.registry import register
from annotruth.nn import IdentityAnnotators, class_index, is_labelled, unet
from annotruth.nn.prism import said, shares
from annotruth.validation import one_of

WIDTH = 8
"""Channels of the reliability's network, at full resolution."""
FIRST_RELIABILITY = 2.0
"""Log-odds of a label's being trusted, before anything was learnt."""


class Reliability(IdentityAnnotators):
    """How far each rater is to be trusted, from the image: one number each, one for every region, or for every pixel.

    As matrices go, raters are taken at their word.
    """

    def __init__(self, spec: DataSpec, scale: Literal["global", "features", "pixel"]) -> None:
        super().__init__(spec.raters, spec.classes)
        self.scale = scale
        if scale == "pixel":
            self.network: nn.Module = unet(spec.channels, spec.raters, spec.dims, spec.network, WIDTH)
            return
        norm = ("group", {"num_groups": 1})  # item by item: a batch of one must do
        widths = [spec.channels, WIDTH, 2 * WIDTH, 4 * WIDTH]
        steps = [Convolution(spec.dims, a, b, strides=2, norm=norm, act="relu") for a, b in pairwise(widths)]
        head = (nn.Conv2d if spec.dims == 2 else nn.Conv3d)(widths[-1], spec.raters, kernel_size=1)
        self.network = nn.Sequential(*steps, head)

    def trust(self, images: Tensor) -> Tensor:
        """Reliabilities (batch, raters, *spatial), between 0 and 1."""
        scores = self.network(images) + FIRST_RELIABILITY
        if self.scale == "global":
            scores = scores.mean(dim=tuple(range(2, scores.ndim)), keepdim=True)
        if self.scale == "features":
            scores = F.interpolate(scores, images.shape[2:])
        return torch.sigmoid(scores).expand(-1, -1, *images.shape[2:])


class ReliabilityModel(MethodModel):
    """A network, and how far each rater is to be trusted."""

    annotators: Reliability


@register
@dataclass(frozen=True)
class TGCE(FusesLabels, Method[ReliabilityModel]):
    """A label that the network doubts costs no more than a guess would, and then its rater is said to be unreliable.

    The paper reads reliabilities from the segmentation network's own features; here a small network gives them, so
    that any network can be trained so.

    Options
    -------
    reliability : "global" = one for each rater and image; "features" = one for every region, at the resolution of a
        network's deepest features; "pixel" = one for every pixel
    q : from cross-entropy (towards 0) to the mean absolute error (1), which minds wrong labels less and learns slower
    """

    name = "tgce"
    paper = "Triana-Martinez et al. 2023, in its form for segmentation (TGCE-SS)"
    summary = "a network by a loss that is cut off where raters seem unreliable"
    tasks = ("masks",)
    model_class = ReliabilityModel
    head_start = HEAD_START

    reliability: Literal["global", "features", "pixel"] = "pixel"
    q: float = 0.5

    def __post_init__(self) -> None:
        one_of(self.reliability, ("global", "features", "pixel"), "reliability")
        if not 0 < self.q <= 1:
            raise InputError(f"q must lie above 0 and not above 1, which {self.q} does not.")

    def annotator_model(self, spec: DataSpec) -> nn.Module:
        return Reliability(spec, self.reliability)

    def loss(self, model: ReliabilityModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        trust = model.annotators.trust(batch.images)
        loss = truncated_loss(model.log_truth(batch.images), batch.labels, trust, self.q)
        return loss, loss.detach()

    def rater_confidences(self, model: ReliabilityModel, images: Tensor, raters: int, **options: Any) -> Tensor:
        return model.annotators.trust(images)

    def fuse_labels(self, model: ReliabilityModel, images: Tensor, labels: Tensor, **options: Any) -> Tensor:
        """Every rater's vote counts as far as the rater is trusted; the network speaks where nobody does."""
        log_truth = model.log_truth(images)
        votes = shares(said(labels, log_truth.shape[1]), model.annotators.trust(images))
        anybody = is_labelled(labels, log_truth.shape[1]).any(dim=1, keepdim=True)
        return torch.where(anybody, votes, log_truth.exp())


def truncated_loss(log_truth: Tensor, labels: Tensor, trust: Tensor, q: float) -> Tensor:
    """Mean over labels of λ·(1 − p^q)/q + (1 − λ)·(1 − K^−q)/q, where p is a label's probability and K the classes.

    Parameters
    ----------
    log_truth : (batch, classes, *spatial);  labels : (batch, raters, *spatial), 255 = not labelled
    trust : λ, (batch, raters, *spatial), between 0 and 1

    Examples
    --------
    >>> log_truth, labels = torch.tensor([[[0.81], [0.19]]]).log(), torch.tensor([[[0], [255]]])
    >>> truncated_loss(log_truth, labels, torch.ones(1, 2, 1), q=0.5)  # (1 - 0.9) / 0.5
    tensor(0.2000)
    """
    classes = log_truth.shape[1]
    given = is_labelled(labels, classes)
    of_label = -torch.expm1(q * log_truth.gather(1, class_index(labels, classes))) / q
    of_guess = (1 - classes**-q) / q
    return ((trust * of_label + (1 - trust) * of_guess) * given).sum() / given.sum().clamp_min(1)
