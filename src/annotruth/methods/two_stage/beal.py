"""BEAL: a network on the majority vote that draws boundaries, too; discriminators judge these, and where it doubts."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotruth.methods.base import Batch, DataSpec
from annotruth.methods.options import check_not_negative
from annotruth.methods.registry import register
from annotruth.methods.two_stage.adversarial import Adversarial, Judged, JudgedModel
from annotruth.nn import dice_loss, is_labelled, noisy_label_loss, unet
from annotruth.nn.labels import one_hot

FEATURES = 16
"""Channels of the features that both branches share, and of the boundary branch's layers."""
BLUR = 1.0
"""Deviation, in pixels, of the blur that makes a boundary of a contour."""


class BoundaryNetwork(nn.Module):
    """Features of images, a boundary drawn from them, and class scores from both.

    Class scores of a network of the user's own serve as features.
    """

    def __init__(self, spec: DataSpec, network: nn.Module | None = None) -> None:
        super().__init__()
        convolution = nn.Conv2d if spec.dims == 2 else nn.Conv3d
        width = FEATURES if network is None else spec.classes
        self.features = unet(spec.channels, FEATURES, spec.dims, spec.network) if network is None else network
        self.boundary = nn.Sequential(
            convolution(width, FEATURES, kernel_size=3, padding=1), nn.LeakyReLU(),
            convolution(FEATURES, FEATURES, kernel_size=3, padding=1), nn.LeakyReLU(),
            convolution(FEATURES, 1, kernel_size=1),
        )  # fmt: skip
        self.mask = convolution(width + 1, spec.classes, kernel_size=1)

    def forward(self, images: Tensor) -> Tensor:
        return self.draw(images)[0]

    def draw(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Class scores (batch, classes, *spatial), and scores of the boundary (batch, 1, *spatial)."""
        features = self.features(images)
        boundary = self.boundary(features)
        return self.mask(F.leaky_relu(torch.cat([features, boundary], dim=1))), boundary


@register
@dataclass(frozen=True)
class BEAL(Adversarial[JudgedModel]):
    """A boundary is learnt beside the mask; boundaries must look real, and doubt must lie where it lies in real masks.

    By default the single-domain form, where boundary and doubt, the entropy of each pixel, are held against those of
    the vote, which has no doubt. With two domains, as in the paper, against those of the labelled domain. That is where
    it gains: pictures that nobody labelled. With one domain it was no better than its own network unjudged in small
    trials.

    Options
    -------
    boundary : how much the boundary counts, beside the mask
    """

    name = "beal"
    paper = "Wang et al. 2019 (BEAL); baseline of Wu et al. 2022"
    summary = "a network on the majority vote, its boundaries and doubts judged"

    boundary: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative(boundary=self.boundary)

    def build(self, spec: DataSpec, network: nn.Module | None = None) -> JudgedModel:
        judges = {"boundary": self.judge(1, spec.dims), "entropy": self.judge(spec.classes, spec.dims)}
        return JudgedModel(Judged(BoundaryNetwork(spec, network), judges), self.annotator_model(spec))

    def loss(self, model: JudgedModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        assert isinstance(model.truth.network, BoundaryNetwork)
        scores, edges = model.truth.network.draw(batch.images)
        log_truth, vote, edges = scores.log_softmax(dim=1), batch.labels[:, 0], edges.sigmoid()
        loss, likelihood = noisy_label_loss(log_truth, model.rater_confusion(batch), batch.labels)
        if self.domains == "one":  # as all that learn from the vote; in two, it makes sure of the labelled one alone
            loss = loss + dice_loss(log_truth, vote)
        labelled, contour = is_labelled(vote, log_truth.shape[1]), blurred_contour(vote, log_truth.shape[1])
        off = ((edges - contour) ** 2).squeeze(1) * labelled
        loss = loss + self.boundary * off.sum() / labelled.sum().clamp_min(1)
        real = {"boundary": contour, "entropy": torch.zeros_like(log_truth)}
        fake = {"boundary": edges, "entropy": -log_truth.exp() * log_truth}
        return loss + self.judged(model, real, fake, labelled, progress), likelihood


def blurred_contour(labels: Tensor, classes: int) -> Tensor:
    """Pixels (batch, 1, *spatial) with another class among their direct and diagonal neighbours, blurred; at most 1.

    What is not labelled is no other class.

    Parameters
    ----------
    labels : (batch, *spatial) uint8, 255 = not labelled

    Examples
    --------
    >>> labels = torch.tensor([[[0, 0, 0, 0, 1, 1, 1, 1]]], dtype=torch.uint8)
    >>> blurred_contour(labels, classes=2)[0, 0].round(decimals=1)
    tensor([[0.0000, 0.1000, 0.5000, 1.0000, 1.0000, 0.5000, 0.1000, 0.0000]])
    """
    dims = labels.ndim - 1
    pool = F.max_pool2d if dims == 2 else F.max_pool3d
    near = pool(one_hot(labels, classes), kernel_size=3, stride=1, padding=1)
    blurred = (near.sum(dim=1, keepdim=True) > 1).float()
    offsets = torch.arange(-3, 4, dtype=torch.float32, device=labels.device)
    window = (-(offsets**2) / (2 * BLUR**2)).exp()
    convolve = F.conv2d if dims == 2 else F.conv3d
    for axis in range(dims):
        size = [1] * dims
        size[axis] = len(offsets)
        blurred = convolve(blurred, (window / window.sum()).view(1, 1, *size), padding=[side // 2 for side in size])
    highest = blurred.flatten(1).amax(dim=1).clamp_min(1e-6)
    return blurred / highest.view(-1, *[1] * (dims + 1))
