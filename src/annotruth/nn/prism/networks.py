"""The two prisms of Wu et al. 2022: ConP makes one mask of an image and confidences, DivP the raters of a mask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import lcm

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotruth.nn.backbones import UNetDecoder
from annotruth.nn.confusion import identity_scores
from annotruth.nn.plan import NetworkPlan
from annotruth.nn.prism.attention import CrossAttention, Positions, RaterHeads, SelfAttention, Windows
from annotruth.validation import one_of

PATCH = 4
"""Side of the patches of a mask that DivP gives matrices for."""
CONFIDENT_STAGES = 2
"""Confidences come in at so many stages, where a plan has them: those after the first, at one half and one quarter."""
NORM = ("group", {"num_groups": 1, "affine": True})
"""Over all channels of an item. A norm of each channel by itself would take away what is the same at every pixel, as
the confidences are that prediction begins with and those that users give."""
MIN_CONFIDENCE = 0.02
"""Confidences below this are taken for this, so that logarithms stay finite."""


class SeparableStep(nn.Module):
    """A depth-wise convolution that makes maps coarser by a stride per axis, and a point-wise one that mixes them.

    Nothing comes between the two, so that they are computed as the one convolution that they amount to.

    Examples
    --------
    >>> SeparableStep(3, 8, stride=(2, 1))(torch.rand(1, 3, 6, 4)).shape
    torch.Size([1, 8, 3, 4])
    """

    def __init__(self, before: int, after: int, stride: tuple[int, ...]) -> None:
        super().__init__()
        convolution = nn.Conv2d if len(stride) == 2 else nn.Conv3d
        self.stride = stride
        self.depth_wise = convolution(before, before, stride, stride, groups=before, bias=False)  # type: ignore[arg-type]
        self.point_wise = convolution(before, after, kernel_size=1)
        self.convolve = F.conv2d if len(stride) == 2 else F.conv3d

    def forward(self, maps: Tensor) -> Tensor:
        together = self.point_wise.weight * self.depth_wise.weight.transpose(0, 1)
        return self.convolve(maps, together, self.point_wise.bias, stride=self.stride)


class ConfidenceEmbedding(nn.Module):
    """Log-confidences (batch, raters, *spatial) as features of a plan's stages, by separable convolutions.

    Parameters
    ----------
    widths, strides : of these stages, see :class:`~annotruth.nn.NetworkPlan`
    """

    def __init__(self, raters: int, widths: Sequence[int], strides: Sequence[tuple[int, ...]]) -> None:
        super().__init__()
        self.steps = nn.ModuleList(
            [
                nn.Sequential(SeparableStep(before, after, stride), nn.PReLU())
                for (before, after), stride in zip(pairwise((raters, *widths)), strides)
            ]
        )

    def forward(self, log_confidences: Tensor) -> list[Tensor]:
        """Embeddings at the stages' resolutions, from fine to coarse."""
        embedded = [log_confidences]
        for step in self.steps:
            embedded.append(step(embedded[-1]))
        return embedded[1:]


class Concat(nn.Module):
    """Features and embedded confidences side by side, through a convolution."""

    def __init__(self, channels: int, dims: int) -> None:
        super().__init__()
        convolution = nn.Conv2d if dims == 2 else nn.Conv3d
        self.mix = nn.Sequential(convolution(2 * channels, channels, kernel_size=3, padding=1), nn.PReLU())

    def forward(self, features: Tensor, confidences: Tensor) -> Tensor:
        return self.mix(torch.cat([features, confidences], dim=1))


class ConvLSTM(nn.Module):
    """A convolutional LSTM that reads the confidences with the features as its state, then the features (Ji et al.).

    Examples
    --------
    >>> ConvLSTM(channels=8, dims=2)(torch.randn(1, 8, 5, 5), torch.randn(1, 8, 5, 5)).shape
    torch.Size([1, 8, 5, 5])
    """

    def __init__(self, channels: int, dims: int) -> None:
        super().__init__()
        convolution = nn.Conv2d if dims == 2 else nn.Conv3d
        self.gates = convolution(2 * channels, 4 * channels, kernel_size=3, padding=1)

    def forward(self, features: Tensor, confidences: Tensor) -> Tensor:
        cell, hidden = torch.zeros_like(features), features
        for read in (confidences, features):
            enter, forget, show, new = self.gates(torch.cat([read, hidden], dim=1)).chunk(4, dim=1)
            cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
            hidden = show.sigmoid() * cell.tanh()
        return features + hidden


INTEGRATIONS: dict[str, Callable[[int, int], nn.Module]] = {
    "attention": CrossAttention,
    "concat": Concat,
    "convlstm": ConvLSTM,
}
"""How confidences come into a decoder's features, made from (channels, dims): by attention, or the ways it is compared
with."""


class ConP(UNetDecoder):
    """The converging prism: a U-Net's decoder whose features are looked up by confidences before its last steps up.

    Confidences come in at one half and one quarter of the resolution (see :data:`CONFIDENT_STAGES`). What is coarser
    does not depend on them, and is decoded once, by :meth:`coarse`, for all recurrences.

    Parameters
    ----------
    raters, classes : how many there are
    plan : the stages of the encoder
    integration : how confidences come in: "attention", or "concat" or "convlstm" to compare with

    Examples
    --------
    >>> from annotruth.nn import UNetEncoder, plan_network
    >>> plan = plan_network((16, 16))
    >>> encoder, conp = UNetEncoder(1, plan), ConP(raters=3, classes=2, plan=plan)
    >>> images, confidences = torch.rand(2, 1, 16, 16), torch.full((2, 3, 16, 16), 0.5)
    >>> conp(conp.coarse(encoder(images)), confidences).shape  # logits
    torch.Size([2, 2, 16, 16])
    """

    def __init__(self, raters: int, classes: int, plan: NetworkPlan, integration: str = "attention") -> None:
        super().__init__(classes, plan, NORM)
        integrate = INTEGRATIONS[one_of(integration, tuple(INTEGRATIONS), "integration")]
        stages = slice(1, 1 + CONFIDENT_STAGES)
        self.embedding = ConfidenceEmbedding(raters, plan.widths[stages], plan.strides[stages])
        self.integrations = nn.ModuleList([integrate(width, plan.dims) for width in plan.widths[stages]])

    def coarse(self, features: list[Tensor]) -> list[Tensor]:
        """The encoder's features, decoded up to where confidences come in."""
        return self.decode(features, len(self.integrations))

    def forward(self, features: list[Tensor], confidences: Tensor) -> Tensor:  # type: ignore[override]
        """Logits (batch, classes, *spatial) from features of :meth:`coarse` and confidences (batch, raters, …)."""
        embedded = self.embedding(confidences.clamp_min(MIN_CONFIDENCE).log())
        decoded = list(features)
        for stage in reversed(range(len(embedded))):
            decoded[stage + 1] = self.integrations[stage](decoded[stage + 1], embedded[stage])
            decoded[stage] = self.steps[stage](decoded[stage + 1], decoded[stage])
        return self.logits(decoded)


class DivP(nn.Module):
    """The diverging prism: how each rater would err on a mask, as a confusion matrix per rater and patch of the mask.

    Patches of the mask attend to each other; in the last block every rater has a head of its own, which gives that
    rater's matrix. All are nearly the identity at first. The pixels of a patch share a matrix: one for every pixel,
    read from the mask at that very pixel, could explain any label by itself, and tell nothing of the raters.

    Parameters
    ----------
    raters, classes : how many there are
    dims : 2 or 3 spatial axes
    blocks : of attention, the last included

    Examples
    --------
    >>> divp = DivP(raters=3, classes=2)
    >>> divp(torch.rand(2, 2, 16, 12).softmax(dim=1)).shape  # scores of the matrices [true, observed] of 4 × 3 patches
    torch.Size([2, 3, 2, 2, 4, 3])
    """

    width, per_rater = 32, 8

    def __init__(self, raters: int, classes: int, dims: int = 2, blocks: int = 2) -> None:
        super().__init__()
        convolution = nn.Conv2d if dims == 2 else nn.Conv3d
        self.raters, self.classes = raters, classes
        self.embed = convolution(classes, self.width, kernel_size=PATCH, stride=PATCH)
        self.positions = Positions(self.width, dims)
        self.blocks = nn.ModuleList([SelfAttention(self.width) for _ in range(blocks - 1)])
        self.heads = RaterHeads(self.width, raters, self.per_rater)
        # The last weights are small, so that training begins with raters who are right.
        self.weights = nn.Parameter(0.01 * torch.randn(raters, self.per_rater, classes**2))
        self.bias = nn.Parameter(identity_scores(classes).flatten().repeat(raters, 1))

    def forward(self, mask: Tensor) -> Tensor:
        """Scores (batch, raters, true, observed, *patches) for masks (batch, classes, *spatial).

        Row-normalised softplus makes matrices of them. Sides must be multiples of the patch.
        """
        patches = self.embed(mask)
        windows = Windows(patches.shape[2:])
        places, seen, positions = windows.cut(patches), windows.seen(patches), self.positions(windows.lengths)
        for block in self.blocks:
            places = block(places, positions, seen)
        scores = torch.einsum("nprd,rdc->nprc", self.heads(places, positions, seen), self.weights) + self.bias
        return windows.join(scores.flatten(2)).unflatten(1, (self.raters, self.classes, self.classes))


def whole_patches(plan: NetworkPlan) -> tuple[int, ...]:
    """What sides must be multiples of, along each axis: of the plan's stride, and of the patch.

    Examples
    --------
    >>> from annotruth.nn import plan_network
    >>> whole_patches(plan_network((64, 8)))
    (16, 4)
    """
    return tuple(lcm(stride, PATCH) for stride in plan.stride)


def patched(values: Tensor) -> Tensor:
    """Values (batch, channels, *spatial) patch by patch: (batch · patches, channels, pixels).

    Examples
    --------
    >>> values = torch.rand(2, 3, 8, 12)
    >>> patched(values).shape, torch.equal(unpatched(patched(values), (8, 12)), values)
    (torch.Size([12, 3, 16]), True)
    """
    return Windows(values.shape[2:], PATCH).cut(values).transpose(1, 2)


def unpatched(values: Tensor, size: Sequence[int]) -> Tensor:
    """Undo :func:`patched`, given the spatial size."""
    return Windows(size, PATCH).join(values.transpose(1, 2))
