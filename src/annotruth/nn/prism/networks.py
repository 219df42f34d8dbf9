"""The two prisms of Wu et al. 2022: ConP makes one mask of an image and confidences, DivP the raters of a mask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from monai.networks.blocks import ADN, Convolution, ResidualUnit
from torch import Tensor, nn

from annotruth.nn.backbones import pad_end, whole_strides
from annotruth.nn.confusion import identity_scores
from annotruth.nn.prism.attention import CrossAttention, Positions, RaterHeads, SelfAttention, Windows
from annotruth.validation import one_of

CHANNELS = (16, 32, 64)
"""Of the encoder's stages: those of ``annotruth.nn.unet``, at one half, one quarter and one quarter of the size."""
STRIDE = PATCH = 4
MIN_CONFIDENCE = 0.02
"""Confidences below this are taken for this, so that logarithms stay finite."""


class PrismEncoder(nn.Module):
    """The encoder of ``annotruth.nn.unet``: images (batch, channels, *spatial) to features of three stages.

    Sides must be multiples of :data:`STRIDE`.
    """

    def __init__(self, in_channels: int, dims: int = 2) -> None:
        super().__init__()
        widths, strides = (in_channels, *CHANNELS), (2, 2, 1)
        self.stages = nn.ModuleList(
            [
                ResidualUnit(dims, before, after, strides=stride, subunits=1, norm="batch")
                for (before, after), stride in zip(pairwise(widths), strides)
            ]
        )

    def forward(self, images: Tensor) -> list[Tensor]:
        features = [images]
        for stage in self.stages:
            features.append(stage(features[-1]))
        return features[1:]


class SeparableHalving(nn.Module):
    """A depth-wise convolution that halves maps, and a point-wise one that mixes them.

    Nothing comes between the two, so that they are computed as the one convolution that they amount to.

    Examples
    --------
    >>> SeparableHalving(3, 8, dims=2)(torch.rand(1, 3, 6, 4)).shape
    torch.Size([1, 8, 3, 2])
    """

    def __init__(self, before: int, after: int, dims: int) -> None:
        super().__init__()
        convolution = nn.Conv2d if dims == 2 else nn.Conv3d
        self.depth_wise = convolution(before, before, kernel_size=2, stride=2, groups=before, bias=False)
        self.point_wise = convolution(before, after, kernel_size=1)
        self.convolve = F.conv2d if dims == 2 else F.conv3d

    def forward(self, maps: Tensor) -> Tensor:
        together = self.point_wise.weight * self.depth_wise.weight.transpose(0, 1)
        return self.convolve(maps, together, self.point_wise.bias, stride=2)


class ConfidenceEmbedding(nn.Module):
    """Log-confidences (batch, raters, *spatial) as features of the decoder's stages, by separable convolutions."""

    def __init__(self, raters: int, channels: tuple[int, int], dims: int) -> None:
        super().__init__()
        self.steps = nn.ModuleList(
            [
                nn.Sequential(SeparableHalving(before, after, dims), nn.PReLU())
                for before, after in pairwise((raters, *channels))
            ]
        )

    def forward(self, log_confidences: Tensor) -> list[Tensor]:
        """Embeddings at one half and at one quarter of the size."""
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


class Contiguous(nn.Module):
    """Lays maps out class by class: where there are few channels, norms are far quicker than with them side by side."""

    def forward(self, maps: Tensor) -> Tensor:
        return maps.contiguous()


class ConP(nn.Module):
    """The converging prism: a U-Net's decoder whose features are looked up by confidences before each step up.

    Parameters
    ----------
    raters, classes : how many there are
    dims : 2 or 3 spatial axes
    integration : how confidences come in: "attention", or "concat" or "convlstm" to compare with

    Examples
    --------
    >>> encoder, conp = PrismEncoder(in_channels=1), ConP(raters=3, classes=2)
    >>> images, confidences = torch.rand(2, 1, 16, 16), torch.full((2, 3, 16, 16), 0.5)
    >>> conp(encoder(images), confidences).shape  # logits
    torch.Size([2, 2, 16, 16])
    """

    def __init__(self, raters: int, classes: int, dims: int = 2, integration: str = "attention") -> None:
        super().__init__()
        half, quarter, deep = CHANNELS
        integrate = INTEGRATIONS[one_of(integration, tuple(INTEGRATIONS), "integration")]
        self.embedding = ConfidenceEmbedding(raters, (half, deep), dims)
        self.low, self.high = integrate(deep, dims), integrate(half, dims)
        # As in annotruth.nn.unet, stage by stage.
        self.up = nn.Sequential(
            Convolution(dims, quarter + deep, half, strides=2, is_transposed=True, norm="batch"),
            ResidualUnit(dims, half, half, subunits=1, norm="batch"),
        )
        self.out = nn.Sequential(
            Convolution(dims, 2 * half, classes, strides=2, is_transposed=True, conv_only=True),
            Contiguous(),
            # A slope that is learnt may pass through 0; with as few channels as classes, one of these is then lost.
            ADN(in_channels=classes, norm="batch", norm_dim=dims, act=("leakyrelu", {"negative_slope": 0.25})),
            ResidualUnit(dims, classes, classes, subunits=1, norm="batch", last_conv_only=True),
        )

    def forward(self, features: list[Tensor], confidences: Tensor) -> Tensor:
        """Logits (batch, classes, *spatial) from the encoder's features and confidences (batch, raters, …)."""
        at_half, at_quarter = self.embedding(confidences.clamp_min(MIN_CONFIDENCE).log())
        low = self.low(features[2], at_quarter)
        high = self.high(self.up(torch.cat([features[1], low], dim=1)), at_half)
        return self.out(torch.cat([features[0], high], dim=1))


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


def padded(values: Tensor, fill: float) -> Tensor:
    """Values (batch, channels, *spatial) with far ends filled up to a multiple of the stride, and to two at least.

    Examples
    --------
    >>> padded(torch.zeros(1, 1, 5, 12), 1.0).shape
    torch.Size([1, 1, 8, 12])
    """
    return pad_end(values, whole_strides(values.shape[2:], STRIDE), fill)


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
