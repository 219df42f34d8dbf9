"""A discriminator that judges maps patch by patch, and what it and the network that it judges learn from."""

from __future__ import annotations

from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.utils.parametrizations import spectral_norm

WIDTHS = (16, 32, 64)
"""Channels of the discriminator's layers, each of half the resolution."""


class PatchDiscriminator(nn.Module):
    """Scores (batch, 1, *patches) of maps (batch, channels, *spatial): above 0 where a patch looks real (PatchGAN).

    With ``bounded``, a small change of a map changes scores but little (spectral normalisation, Miyato et al. 2018).

    Examples
    --------
    >>> import torch
    >>> PatchDiscriminator(channels=2)(torch.rand(3, 2, 28, 28)).shape
    torch.Size([3, 1, 4, 4])
    """

    def __init__(self, channels: int, dims: int = 2, bounded: bool = False) -> None:
        super().__init__()
        convolution = nn.Conv2d if dims == 2 else nn.Conv3d
        layers: list[nn.Module] = []
        for before, after in pairwise((channels, *WIDTHS)):
            layers += [convolution(before, after, kernel_size=3, stride=2, padding=1), nn.LeakyReLU(0.2)]
        self.layers = nn.Sequential(*layers, convolution(WIDTHS[-1], 1, kernel_size=1))
        for layer in self.layers:
            if bounded and isinstance(layer, convolution):
                spectral_norm(layer)

    def forward(self, maps: Tensor) -> Tensor:
        return self.layers(maps)


def adversarial_losses(
    discriminator: nn.Module, real: Tensor, fake: Tensor, real_weight: Tensor, fake_weight: Tensor
) -> tuple[Tensor, Tensor]:
    """How well a network's maps are found out, for the network to minimise, and how badly, for the discriminator.

    Both are cross-entropies. The first gives gradients to ``fake`` alone, the second to the discriminator alone: their
    sum can be minimised in one step.

    Parameters
    ----------
    real, fake : (items, channels, *spatial) maps as they should be, and the network's
    real_weight, fake_weight : (items,) how much each item counts; where all are 0, so is the loss

    Examples
    --------
    >>> import torch
    >>> judge, ones = PatchDiscriminator(channels=1), torch.ones(2)
    >>> fake = torch.rand(2, 1, 8, 8, requires_grad=True)
    >>> fools, judges = adversarial_losses(judge, torch.ones(2, 1, 8, 8), fake, ones, ones)
    >>> judges.backward()
    >>> fake.grad is None
    True
    """
    as_it_is = {name: weight.detach() for name, weight in discriminator.named_parameters()}
    fools = _mean(F.softplus(-functional_call(discriminator, as_it_is, (fake,))), fake_weight)
    judges = _mean(F.softplus(-discriminator(real.detach())), real_weight)
    return fools, judges + _mean(F.softplus(discriminator(fake.detach())), fake_weight)


def _mean(scores: Tensor, weight: Tensor) -> Tensor:
    """The weighted mean over items of the mean over their patches."""
    return (scores.flatten(1).mean(dim=1) * weight).sum() / weight.sum().clamp_min(1)
