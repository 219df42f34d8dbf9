"""Images of different spacing on one grid, and back: where pixels come to lie, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import ndimage
from torch.nn import functional as F

from annotruth import Annotations
from annotruth.errors import InputError
from annotruth.training.resample import (
    back_on_grid,
    grid_size,
    grid_sizes,
    interpolate,
    nearest,
    plan_spacing,
    spacings,
)


def of_spacing(*spacing: tuple[float, ...] | None) -> Annotations:
    masks = [np.zeros((1, *[8] * len(spacing[0] or (1, 1))), np.uint8)] * len(spacing)
    return Annotations.from_masks(masks, spacing=list(spacing))


@pytest.mark.parametrize(("size", "wanted"), [((7, 10), (13, 4)), ((5, 6, 3), (5, 9, 8))])
def test_values_are_interpolated_where_scipy_finds_them(size, wanted):
    """Edges stay where they are: pixel i of the new grid lies at (i + ½) · old / new - ½ of the old."""
    values = torch.from_numpy(np.random.default_rng(0).normal(size=(2, *size)))
    places = np.meshgrid(*[(np.arange(new) + 0.5) * old / new - 0.5 for old, new in zip(size, wanted)], indexing="ij")
    by_scipy = [ndimage.map_coordinates(channel, places, order=1, mode="nearest") for channel in values.numpy()]
    np.testing.assert_allclose(interpolate(values, wanted), by_scipy, atol=1e-9)


@pytest.mark.parametrize(("size", "wanted"), [((7, 10), (13, 4)), ((5, 6, 3), (5, 9, 8))])
def test_labels_come_from_the_nearest_pixel(size, wanted):
    labels = torch.from_numpy(np.random.default_rng(0).choice([0, 3, 254, 255], (2, *size)).astype(np.uint8))
    by_torch = F.interpolate(labels[None].double(), wanted, mode="nearest-exact")[0].to(torch.uint8)
    assert torch.equal(nearest(labels, wanted), by_torch)


def test_what_has_the_size_already_stays_as_it_is():
    values = torch.rand(2, 4, 5)
    assert interpolate(values, (4, 5)) is values
    assert nearest(values, (4, 5)) is values


def test_probabilities_still_sum_to_one():
    values = torch.rand(3, 6, 5).softmax(dim=0)
    np.testing.assert_allclose(back_on_grid(values, (9, 4)).sum(axis=0), 1, atol=1e-6)
    matrices = torch.rand(2, 3, 3, 6, 5).softmax(dim=2)
    np.testing.assert_allclose(back_on_grid(matrices, (9, 4)).sum(axis=2), 1, atol=1e-6)


def test_the_median_spacing_where_they_differ():
    assert plan_spacing(of_spacing((1, 1), (1, 3), (1, 2)))[0] == (1.0, 2.0)
    assert plan_spacing(of_spacing((1, 1), (1, 1.05), (1, 0.95))) == (None, (1.0, 1.0))
    assert plan_spacing(of_spacing((1, 1), (1, 1.25)))[0] == (1.0, 1.125)
    assert plan_spacing(of_spacing(None, None)) == (None, None)


def test_sizes_on_the_grid():
    assert grid_sizes(of_spacing((1, 1), (1, 3)), (1, 2)) == [(8, 4), (8, 12)]
    assert grid_sizes(of_spacing(None, (1, 3)), None) == [(8, 8), (8, 8)]
    assert grid_size((3, 3), (0.1, 1), (1, 1)) == (1, 3), "never nothing"


def test_an_item_without_spacing_among_others_that_differ_is_named():
    with pytest.raises(InputError, match=r"No spacing, or one of zero, is known of item_1, while .* 1 × 2 mm.*null"):
        plan_spacing(of_spacing((1, 1), None, (1, 3)))
    assert plan_spacing(of_spacing((1, 1), None, (1, 1))) == (None, (1.0, 1.0)), "taken as alike"
    with pytest.raises(InputError, match="known of item_0, item_1, but images are resampled to 1 × 1 mm by the plan"):
        grid_sizes(of_spacing(None, None), (1, 1))


def test_spacings_of_images():
    assert spacings(None, 2) == [None, None]
    assert spacings(np.array([1.0, 2.0]), 1)[0].tolist() == [1, 2]
    with pytest.raises(InputError, match="3 images but 2 spacings"):
        spacings([(1, 1), (1, 2)], 3)
