"""Networks from whole images, or from feature vectors, to class logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotruth.errors import InputError
from annotruth.nn.monai_networks import is_monai, monai_network
from annotruth.nn.precision import mixed_in_training
from annotruth.validation import one_of

LARGEST_AT_ONCE = {2: 64, 3: 32}
"""Pixels along the longest axis up to which a planned network sees pictures at full resolution, by number of axes."""
FEWEST_PIXELS = 4
"""An axis is not pooled to fewer."""
FIRST_WIDTH, MOST_CHANNELS = 16, 128
"""Channels of a planned network at its first resolution, and at most."""
USUAL_LENGTH = 32
"""Along each axis, where a network is planned and nobody says how large pictures are."""


def small_cnn(
    in_channels: int, classes: int, dims: int = 2, widths: tuple[int, ...] = (32, 32, 64, 64), norm: bool = True
) -> nn.Module:
    """The network of Tanno et al. 2019 for digits: four convolutions, global average pooling, one linear layer.

    The first two convolutions are followed by pooling. Images may have any size, of 2 or 3 axes.

    Parameters
    ----------
    widths : channels after each convolution
    norm : batch normalisation after each, which the paper does without; it then takes many more epochs

    Examples
    --------
    >>> import torch
    >>> small_cnn(in_channels=1, classes=10)(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """
    convolution, batch_norm, pool, average = _layers(dims, "Conv", "BatchNorm", "MaxPool", "AdaptiveAvgPool")
    layers: list[nn.Module] = []
    for number, (before, after) in enumerate(pairwise((in_channels, *widths))):
        layers += [convolution(before, after, kernel_size=3, padding=1, bias=not norm)]
        layers += [batch_norm(after), nn.ReLU()] if norm else [nn.ReLU()]
        if number < 2:
            layers.append(pool(2, ceil_mode=True))  # an odd row or column is not thrown away
    return _laid_out(nn.Sequential(*layers, average(1), nn.Flatten(), nn.Linear(widths[-1], classes)), dims)


@dataclass(frozen=True)
class PicturePlan:
    """How a residual network for pictures of some size is built: see :func:`plan_resnet`.

    Attributes
    ----------
    stem_stride : by which the first convolution shrinks large pictures
    pools : by how much each axis is pooled before each further resolution
    widths : channels at every resolution, the first convolution's first
    """

    stem_stride: int
    pools: tuple[tuple[int, ...], ...]
    widths: tuple[int, ...]

    @property
    def blocks(self) -> tuple[int, ...]:
        """The resolutions that have a residual block: the first that is pooled, and the last."""
        last = len(self.pools)
        return (1, last) if last > 1 else (last,)


def plan_resnet(size: Sequence[int]) -> PicturePlan:
    """Plan a network from the pictures' size, one number per axis.

    Pictures are seen at full resolution, up to 64 pixels along each axis (volumes: 32); the first convolution shrinks
    larger ones. An axis is halved until it would fall under 4 pixels. Channels are doubled from 16 to 128.

    Examples
    --------
    >>> plan_resnet((32, 32))
    PicturePlan(stem_stride=1, pools=((2, 2), (2, 2), (2, 2)), widths=(16, 32, 64, 128))
    >>> plan_resnet((8, 16))
    PicturePlan(stem_stride=1, pools=((2, 2), (1, 2)), widths=(16, 32, 64))
    >>> plan_resnet((224, 224)).stem_stride
    4
    """
    most, stride = LARGEST_AT_ONCE[len(size)], 1
    while max(size) > most * stride:
        stride *= 2
    lengths, pools = [-(-length // stride) for length in size], []
    while any(length >= 2 * FEWEST_PIXELS - 1 for length in lengths):
        # An odd length is rounded up, so that 7 becomes 4.
        pools.append(tuple(2 if length >= 2 * FEWEST_PIXELS - 1 else 1 for length in lengths))
        lengths = [-(-length // pool) for length, pool in zip(lengths, pools[-1])]
    widths = (min(FIRST_WIDTH * 2**level, MOST_CHANNELS) for level in range(len(pools) + 1))
    return PicturePlan(stride, tuple(pools), tuple(widths))


def planned_resnet(in_channels: int, classes: int, dims: int = 2, size: Sequence[int] | None = None) -> nn.Module:
    """A residual network for pictures in 2D or 3D, planned by their size; the default of :class:`annotruth.Classifier`.

    On pictures of 32×32 it is a narrow ResNet-9 (Page 2018, "How to train your ResNet"), which a CPU can train: a
    convolution at full resolution, then at each further resolution a convolution and max-pooling, and at the first and
    the last of them a residual block of two convolutions; all with batch normalisation. What is largest of each channel
    over the picture goes into one linear layer.

    Parameters
    ----------
    size : of the pictures, one number per axis; None = 32 along each. Others of any size may follow

    Examples
    --------
    >>> import torch
    >>> planned_resnet(in_channels=3, classes=10, size=(32, 32))(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """
    plan = plan_resnet(size or [USUAL_LENGTH] * dims)
    pool, largest = _layers(dims, "MaxPool", "AdaptiveMaxPool")
    before = plan.widths[0]
    layers = _convolved(in_channels, before, dims, plan.stem_stride)
    for level, width in enumerate(plan.widths):
        if level:
            layers += [*_convolved(before, width, dims), pool(plan.pools[level - 1], ceil_mode=True)]
        if level in plan.blocks:
            layers.append(_AddedBlock(width, dims))
        before = width
    return _laid_out(_Layers(*layers, largest(1), nn.Flatten(), nn.Linear(before, classes)), dims)


class _Layers(nn.Sequential):
    """Layers that compute in the precision of the training."""

    @mixed_in_training
    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images)


def _convolved(before: int, after: int, dims: int, stride: int = 1) -> list[nn.Module]:
    """A convolution, normalised; with a stride it is wide enough to see every pixel."""
    convolution, norm = _layers(dims, "Conv", "BatchNorm")
    kernel = max(3, 2 * stride - 1)
    layer = convolution(before, after, kernel, stride=stride, padding=kernel // 2, bias=False)
    return [layer, norm(after), nn.ReLU()]


class _AddedBlock(nn.Module):
    """Two convolutions whose result is added to what they see."""

    def __init__(self, width: int, dims: int) -> None:
        super().__init__()
        self.body = nn.Sequential(*_convolved(width, width, dims), *_convolved(width, width, dims))

    def forward(self, images: Tensor) -> Tensor:
        return images + self.body(images)


def small_resnet(in_channels: int, classes: int, dims: int = 2, width: int = 16, blocks: int = 1) -> nn.Module:
    """The network "resnet" of annotruth 0.1, three resolutions for small pictures; kept for models of that version.

    Parameters
    ----------
    width : channels at full resolution, doubled at each of the other two
    blocks : residual blocks of two convolutions at each resolution

    Examples
    --------
    >>> import torch
    >>> small_resnet(in_channels=3, classes=10)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """
    convolution, norm, average = _layers(dims, "Conv", "BatchNorm", "AdaptiveAvgPool")
    layers: list[nn.Module] = [convolution(in_channels, width, 3, padding=1, bias=False), norm(width), nn.ReLU()]
    before = width
    for level in range(3):
        for block in range(blocks):
            layers.append(_Residual(before, width * 2**level, dims, stride=2 if level and not block else 1))
            before = width * 2**level
    return _laid_out(nn.Sequential(*layers, average(1), nn.Flatten(), nn.Linear(before, classes)), dims)


class _Residual(nn.Module):
    def __init__(self, before: int, after: int, dims: int, stride: int) -> None:
        super().__init__()
        convolution, norm = _layers(dims, "Conv", "BatchNorm")
        self.body = nn.Sequential(
            convolution(before, after, 3, stride=stride, padding=1, bias=False), norm(after), nn.ReLU(),
            convolution(after, after, 3, padding=1, bias=False), norm(after),
        )  # fmt: skip
        self.skip = (
            nn.Identity()
            if before == after and stride == 1
            else nn.Sequential(convolution(before, after, 1, stride=stride, bias=False), norm(after))
        )

    def forward(self, images: Tensor) -> Tensor:
        return F.relu(self.body(images) + self.skip(images))


def mlp(features: int, classes: int, width: int = 128, dropout: float = 0.5) -> nn.Module:
    """One hidden layer with dropout, for feature vectors. Of many features some are dropped, too; of few, each counts.

    Examples
    --------
    >>> import torch
    >>> mlp(features=512, classes=8)(torch.zeros(2, 512)).shape
    torch.Size([2, 8])
    """
    first = [nn.Dropout(dropout)] if features >= width else []
    hidden = nn.Sequential(*first, nn.Linear(features, width), nn.ReLU(), nn.Dropout(dropout))
    return hidden.append(nn.Linear(width, classes))


def linear(features: int, classes: int) -> nn.Module:
    """Logistic regression on feature vectors.

    Examples
    --------
    >>> import torch
    >>> linear(features=512, classes=8)(torch.zeros(2, 512)).shape
    torch.Size([2, 8])
    """
    return nn.Linear(features, classes)


IMAGE_NETWORKS: dict[str, Callable[..., nn.Module]] = {"resnet": planned_resnet, "cnn": small_cnn}
FEATURE_NETWORKS: dict[str, Callable[..., nn.Module]] = {"mlp": mlp, "linear": linear}
OLD_NETWORKS: dict[str, Callable[..., nn.Module]] = {"resnet of 0.1": small_resnet}
"""Networks of earlier versions, which their models need."""


def default_network(dims: int) -> str:
    """The name of the network for images of so many axes; 0 = feature vectors.

    Examples
    --------
    >>> default_network(2), default_network(0)
    ('resnet', 'mlp')
    """
    return next(iter(IMAGE_NETWORKS if dims else FEATURE_NETWORKS))


def classifier_network(
    name: str | None, channels: int, classes: int, dims: int, size: Sequence[int] | None = None
) -> nn.Module:
    """A network by its name; None = "resnet" for images, "mlp" for features; "monai:DenseNet121" is one of MONAI's.

    Parameters
    ----------
    channels : of images, or how many features
    dims : spatial axes of the images; 0 = feature vectors
    size : of the images, one number per axis, for networks that are planned by it

    Examples
    --------
    >>> classifier_network("linear", channels=5, classes=3, dims=0)
    Linear(in_features=5, out_features=3, bias=True)
    """
    name = default_network(dims) if name is None else name
    known = IMAGE_NETWORKS if dims else FEATURE_NETWORKS
    if dims and is_monai(name):
        network = monai_network(
            name, dims=dims, in_channels=channels, out_channels=classes, size=size, task="labels"
        )  # fmt: skip
        return _laid_out(network, dims)
    if is_monai(name) or (name in {**IMAGE_NETWORKS, **FEATURE_NETWORKS} and name not in known):
        data = f"images of {dims} axes" if dims else "feature vectors"
        raise InputError(f"The network {name} does not take {data}. Those that do: {', '.join(known)}.")
    if name in OLD_NETWORKS:
        return OLD_NETWORKS[name](channels, classes, dims)
    names = [*sorted({**IMAGE_NETWORKS, **FEATURE_NETWORKS}), "monai:<one of MONAI's>"]
    build = known[one_of(name, names, "network")]
    if build is planned_resnet:
        return planned_resnet(channels, classes, dims, size)
    return build(channels, classes, dims) if dims else build(channels, classes)


def _layers(dims: int, *kinds: str) -> tuple[Callable[..., nn.Module], ...]:
    """PyTorch's layers of so many spatial axes."""
    return tuple(getattr(nn, f"{kind}{dims}d") for kind in kinds)


def _laid_out(network: nn.Module, dims: int) -> nn.Module:
    """Channels last in memory: steps on pictures take two thirds of the time."""
    return network.to(memory_format=torch.channels_last) if dims == 2 else network  # type: ignore[call-overload]
