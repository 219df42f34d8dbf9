"""Networks from whole images, or from feature vectors, to class logits."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotruth.errors import InputError
from annotruth.validation import one_of


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


def small_resnet(in_channels: int, classes: int, dims: int = 2, width: int = 16, blocks: int = 1) -> nn.Module:
    """A residual network of three resolutions for small pictures, such as CIFAR's; trains on a CPU.

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


IMAGE_NETWORKS: dict[str, Callable[..., nn.Module]] = {"cnn": small_cnn, "resnet": small_resnet}
FEATURE_NETWORKS: dict[str, Callable[..., nn.Module]] = {"mlp": mlp, "linear": linear}


def classifier_network(name: str | None, channels: int, classes: int, dims: int) -> nn.Module:
    """A network by its name; None = the simplest that learns more than a straight line.

    Parameters
    ----------
    channels : of images, or how many features
    dims : spatial axes of the images; 0 = feature vectors

    Examples
    --------
    >>> classifier_network("linear", channels=5, classes=3, dims=0)
    Linear(in_features=5, out_features=3, bias=True)
    """
    known = IMAGE_NETWORKS if dims else FEATURE_NETWORKS
    if name is None:
        name = next(iter(known))
    if name in {**IMAGE_NETWORKS, **FEATURE_NETWORKS} and name not in known:
        data = f"images of {dims} axes" if dims else "feature vectors"
        raise InputError(f"The network {name} does not take {data}. Those that do: {', '.join(known)}.")
    build = known[one_of(name, sorted({**IMAGE_NETWORKS, **FEATURE_NETWORKS}), "network")]
    return build(channels, classes, dims) if dims else build(channels, classes)


def _layers(dims: int, *kinds: str) -> tuple[Callable[..., nn.Module], ...]:
    """PyTorch's layers of so many spatial axes."""
    return tuple(getattr(nn, f"{kind}{dims}d") for kind in kinds)


def _laid_out(network: nn.Module, dims: int) -> nn.Module:
    """Channels last in memory: steps on pictures take two thirds of the time."""
    return network.to(memory_format=torch.channels_last) if dims == 2 else network  # type: ignore[call-overload]
