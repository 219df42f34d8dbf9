"""Chance that is spread evenly, for means over few drawings."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

TAIL = 1e-6
"""Share on either side that is left out of the normal distribution, where it would end in infinity."""


def even_noise(count: int, length: int) -> Tensor:
    """Standard normal points (count, length), always the same, that fill the space evenly (Sobol's sequence).

    Of sixteen points that are drawn by chance, three or thirteen may lie on the side where nothing is drawn, and a mean
    over them calls everything background, or nothing. Spread evenly, eight do.

    Examples
    --------
    >>> points = even_noise(16, 6)
    >>> points.shape, (points > 0).sum(dim=0).tolist()
    (torch.Size([16, 6]), [8, 8, 8, 8, 8, 8])
    """
    shares = SobolEngine(length, scramble=True, seed=0).draw(count, dtype=torch.float64)
    return torch.special.ndtri(shares.clamp(TAIL, 1 - TAIL)).to(torch.get_default_dtype())
