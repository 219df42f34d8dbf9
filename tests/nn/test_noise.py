"""Points that lie evenly: a mean over few of them is near the one over all."""

from __future__ import annotations

import math

import pytest
import torch

from annotruth.nn.noise import even_noise


def worst_share(points: torch.Tensor) -> float:
    """How far the share of points beyond a plane is from that of the normal distribution, at worst of many planes."""
    length = points.shape[1]
    planes = torch.nn.functional.normalize(torch.randn(300, length, generator=torch.Generator().manual_seed(1)), dim=1)
    beyond = [
        abs(float((points @ planes.T > place).float().mean(dim=0).sub(share).abs().max()))
        for place in (-0.5, 0.0, 0.5)
        for share in [0.5 * math.erfc(place / math.sqrt(2))]
    ]
    return max(beyond)


@pytest.mark.parametrize(("count", "length"), [(16, 6), (20, 10), (64, 8)])
def test_the_side_of_a_plane_gets_its_share(count: int, length: int) -> None:
    chance = [worst_share(torch.randn(count, length, generator=torch.Generator().manual_seed(n))) for n in range(20)]
    assert worst_share(even_noise(count, length)) < 0.8 * sum(chance) / len(chance)


def test_it_is_normal_finite_and_always_the_same() -> None:
    points = even_noise(4096, 3)
    torch.testing.assert_close(points.mean(dim=0), torch.zeros(3), atol=0.01, rtol=0)
    torch.testing.assert_close(torch.cov(points.T), torch.eye(3), atol=0.02, rtol=0)
    assert torch.isfinite(points).all()
    state = torch.get_rng_state()
    assert torch.equal(points, even_noise(4096, 3))
    assert torch.equal(state, torch.get_rng_state())  # others' chance is left alone
