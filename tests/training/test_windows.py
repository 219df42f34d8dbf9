"""An image that goes through a network window by window, and mirrored."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from annotruth.nn import AnySize
from annotruth.training import windows
from annotruth.training.windows import by_windows, mirrored


@pytest.fixture
def network() -> torch.nn.Module:
    """Something that sees left from right, pads, and gives values for all pixels."""
    torch.manual_seed(0)
    layers = torch.nn.Conv2d(1, 3, 3, padding=1), torch.nn.MaxPool2d(4), torch.nn.Upsample(scale_factor=4)
    return AnySize(torch.nn.Sequential(*layers), stride=4).eval()


@pytest.mark.parametrize("axes", [(), (0,), (1,), (0, 1)])
@torch.no_grad()
def test_the_mean_over_all_mirror_images(network, axes):
    image = torch.randn(1, 1, 7, 10)
    some = {(): [()], (0,): [(), (2,)], (1,): [(), (3,)], (0, 1): [(), (2,), (3,), (2, 3)]}[axes]
    by_hand = np.mean([np.flip(network(image.flip(each)).numpy(), each) for each in some], axis=0)
    np.testing.assert_allclose(mirrored(network, axes)(image), by_hand, atol=1e-6)


@pytest.mark.parametrize(("together", "times"), [(windows.TOGETHER, 1), (0, 8)])
def test_every_mirror_image_is_looked_at_once_small_ones_together(monkeypatch, together, times):
    monkeypatch.setattr(windows, "TOGETHER", together)
    seen = []
    images = torch.randn(2, 1, 2, 3, 4)
    torch.testing.assert_close(mirrored(lambda part: seen.append(part) or part, (0, 1, 2))(images), images)
    assert len(seen) == times
    assert len({tuple(view.flatten().tolist()) for part in seen for view in part.split(2)}) == 8


@torch.no_grad()
def test_a_mirrored_image_gets_a_mirrored_prediction_whatever_is_padded(network):
    """Windows of an odd size are padded at their far ends, before and after mirroring."""
    image = torch.randn(1, 1, 11, 13)
    predict = mirrored(network, (0, 1))
    for patch in (None, (5, 7)):
        for axes in ((2,), (3,), (2, 3)):
            as_it_is = by_windows(image, patch, predict)
            turned = by_windows(image.flip(axes), patch, predict).flip(axes)
            if patch is None:
                torch.testing.assert_close(turned, as_it_is, atol=1e-5, rtol=1e-5)
            assert turned.shape == as_it_is.shape == (1, 3, 11, 13)


@torch.no_grad()
def test_windows_of_what_looks_at_each_pixel_alone_give_what_the_whole_gives():
    image = torch.randn(1, 1, 11, 13)
    torch.testing.assert_close(by_windows(image, (4, 5), lambda part: 3 * part), 3 * image)
