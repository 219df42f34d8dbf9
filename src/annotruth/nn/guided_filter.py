"""The guided filter: a coarse map brought up to the resolution of a guide, along whose edges it then changes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

RADIUS = 2
"""Pixels of the coarse map to each side that a window holds."""
EVENNESS = 0.01
"""Variance of the guide below which a window counts as flat, so that its map is smoothed, not fitted."""


def guided_coefficients(guide: Tensor, values: Tensor, attention: Tensor) -> tuple[Tensor, Tensor]:
    """Slope and offset (batch, channels, *spatial) by which the guide tells the values, around every pixel.

    In each window, slope and offset minimise Σ_i w_i·((a·g_i + b − v_i)² + ε·a²) with the squared attention as weight
    w; a pixel takes the mean of all windows that it lies in (He et al. 2013; with attention, Zhang et al. 2019).

    Parameters
    ----------
    guide, values : (batch, channels, *spatial)
    attention : (batch, 1, *spatial) how much a pixel counts

    Examples
    --------
    >>> guide = torch.rand(1, 1, 6, 6)
    >>> slope, offset = guided_coefficients(guide, 3 * guide + 1, torch.ones(1, 1, 6, 6))
    >>> bool((slope < 3).all() and (slope > 2).all())  # a flat window pulls it to 0
    True
    """
    weights = attention**2
    mass = _window_means(weights).clamp_min(1e-6)
    of_guide, of_values = _window_means(weights * guide) / mass, _window_means(weights * values) / mass
    covariance = _window_means(weights * guide * values) / mass - of_guide * of_values
    variance = (_window_means(weights * guide**2) / mass - of_guide**2).clamp_min(0)
    slope = covariance / (variance + EVENNESS)
    return _window_means(slope), _window_means(of_values - slope * of_guide)


def _window_means(maps: Tensor) -> Tensor:
    """Means over the window around every pixel, as much of it as lies inside."""
    dims = maps.ndim - 2
    pool = F.avg_pool2d if dims == 2 else F.avg_pool3d

    def padded_means(values: Tensor) -> Tensor:  # by hand: pooling itself refuses maps that are smaller than a window
        return pool(F.pad(values, [RADIUS] * (2 * dims)), 2 * RADIUS + 1, stride=1)

    return padded_means(maps) / padded_means(torch.ones_like(maps[:1, :1]))


class AttentionGuidedFilter(nn.Module):
    """Brings coarse features up to the resolution of a guide; attention says which pixels the guide is fitted to.

    Parameters
    ----------
    channels : of the coarse features, and of the guide
    dims : 2 or 3 spatial axes

    Examples
    --------
    >>> AttentionGuidedFilter(channels=4)(torch.rand(1, 4, 5, 5), guide=torch.rand(1, 4, 10, 10)).shape
    torch.Size([1, 4, 10, 10])
    """

    def __init__(self, channels: int, dims: int = 2) -> None:
        super().__init__()
        convolution = nn.Conv2d if dims == 2 else nn.Conv3d
        self.of_guide = convolution(channels, channels, kernel_size=1)
        self.of_coarse = convolution(channels, channels, kernel_size=1)
        self.attention = convolution(channels, 1, kernel_size=1)
        self.interpolation = "bilinear" if dims == 2 else "trilinear"

    def forward(self, coarse: Tensor, guide: Tensor) -> Tensor:
        seen = F.interpolate(guide, coarse.shape[2:], mode=self.interpolation)
        attention = torch.sigmoid(self.attention(F.relu(self.of_guide(seen) + self.of_coarse(coarse))))
        slope, offset = (
            F.interpolate(maps, guide.shape[2:], mode=self.interpolation)
            for maps in guided_coefficients(seen, coarse, attention)
        )
        return slope * guide + offset
