"""How confidences come into a decoder's features: by attention, or the ways attention is compared with."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from annotruth.nn.prism.attention import CrossAttention
from annotruth.validation import one_of


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


def integration_of(name: str) -> Callable[[int, int], nn.Module]:
    """What makes a module from (channels, dims), by its name.

    Examples
    --------
    >>> integration_of("concat").__name__
    'Concat'
    """
    one_of(name, tuple(INTEGRATIONS), "integration")
    return INTEGRATIONS[name]
