"""Augmented items: image and masks move together, and nothing is said that nobody said."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from annotruth import Annotations
from annotruth.training import augment as module
from annotruth.training.augment import Change, augment, augment_pictures
from annotruth.training.datasets import MaskDataset, Standard

shapes = st.lists(st.integers(1, 12), min_size=2, max_size=3).map(tuple)


def coordinates(shape: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    """An item that says where each of its pixels comes from: image and labels (axes, *shape) are their coordinates."""
    where = np.stack(np.meshgrid(*[np.arange(length) for length in shape], indexing="ij"))
    return torch.from_numpy(where.astype(np.float32)), torch.from_numpy(where.astype(np.uint8))


def augment_one(
    image: torch.Tensor, labels: torch.Tensor, rng: np.random.Generator, mirror: tuple[int, ...] = (0, 1, 2)
) -> tuple[torch.Tensor, torch.Tensor]:
    images, masks = augment([image], [labels], [Change.draw(len(image), image.shape[1:], mirror, rng)])
    return images[0], masks[0]


@pytest.fixture
def same_intensities(monkeypatch):
    monkeypatch.setattr(module, "CONTRAST", 1.0)
    monkeypatch.setattr(module, "BRIGHTNESS", 0.0)


@pytest.mark.usefixtures("same_intensities")
@pytest.mark.parametrize("shape", [(9, 14), (6, 11, 8), (20, 20, 2)])
def test_image_and_masks_move_together(shape):
    """Interpolating coordinates gives where a pixel comes from, so the nearest pixel's label is known."""
    moved = 0
    for seed in range(40):
        image, labels = augment_one(*coordinates(shape), np.random.default_rng(seed))
        seen = (labels != 255).all(dim=0)
        assert ((labels != 255).any(dim=0) == seen).all()  # all axes of a pixel come from inside, or none
        inner = torch.stack([(axis > 0.01) & (axis < n - 1.01) for axis, n in zip(image, shape)]).all(dim=0)
        assert ((image - labels).abs() <= 0.5 + 1e-4)[:, seen & inner].all()
        assert seen[inner].all()
        assert 0.6 < seen.float().mean() <= 1
        moved += not torch.equal(image, image.round())
    assert 10 < moved < 30  # about half of the items


@settings(max_examples=30, deadline=None)
@given(shape=shapes, seed=st.integers(0, 1000), channels=st.integers(1, 3))
def test_no_label_appears_and_missing_stays_missing(shape, seed, channels):
    rng = np.random.default_rng(seed)
    image = torch.from_numpy(rng.normal(size=(channels, *shape)).astype(np.float32))
    labels = torch.from_numpy(rng.choice([0, 3, 254, 255], (4, *shape)).astype(np.uint8))
    labels[1] = 255
    labels[3] = 0
    other, moved = augment_one(image, labels, rng)
    assert other.dtype == torch.float32
    assert moved.dtype == torch.uint8
    assert other.shape == image.shape
    assert moved.shape == labels.shape
    assert other.isfinite().all()
    assert set(moved.unique().tolist()) <= {0, 3, 254, 255}
    assert (moved[1] == 255).all()
    assert set(moved[3].unique().tolist()) <= {0, 255}
    assert (moved[2][moved[3] == 255] == 255).all()  # what comes from outside is nobody's


def test_every_mirror_image_occurs(monkeypatch):
    monkeypatch.setattr(module, "MOVED", 0.0)
    image, labels = coordinates((3, 4))
    seen = set()
    for seed in range(60):
        other, moved = augment_one(image, labels, np.random.default_rng(seed))
        seen.add(tuple(moved.flatten().tolist()))
        assert torch.corrcoef(torch.stack([other[0].flatten(), moved[0].flatten().float()]))[0, 1] > 0.9999
    assert seen == {tuple(labels.flip(axes).flatten().tolist()) for axes in ([], [1], [2], [1, 2])}


def test_no_other_axis_is_mirrored(monkeypatch):
    monkeypatch.setattr(module, "MOVED", 0.0)
    image, labels = coordinates((3, 4))
    seen = {
        tuple(augment_one(image, labels, np.random.default_rng(seed), mirror=(1,))[1].flatten().tolist())
        for seed in range(40)
    }
    assert seen == {tuple(labels.flip(axes).flatten().tolist()) for axes in ([], [2])}


@pytest.mark.parametrize("size", [(7, 10), (5, 6, 4)])
def test_items_that_are_moved_together_look_as_each_would_alone(size):
    rng = np.random.default_rng(0)
    sizes = [size, size, tuple(length + 1 for length in size), size, size]
    images = [torch.from_numpy(rng.normal(size=(2, *one)).astype(np.float32)) for one in sizes]
    labels = [torch.from_numpy(rng.integers(0, 4, (3, *one)).astype(np.uint8)) for one in sizes]
    changes = [Change.draw(2, one, (0, 1), np.random.default_rng(seed)) for seed, one in enumerate(sizes)]
    assert sum(change.affine is not None for change in changes) >= 2
    for position, together in enumerate(zip(*augment(images, labels, changes))):
        alone = augment([images[position]], [labels[position]], [changes[position]])
        assert all(torch.equal(one, other[0]) for one, other in zip(together, alone))


@pytest.mark.parametrize("size", [(7, 10), (5, 6, 4)])
def test_pixels_come_from_where_torch_takes_them(size):
    affine = torch.from_numpy(module._affine(size, np.random.default_rng(1))).float()[None]
    wanted = torch.nn.functional.affine_grid(affine, [1, 1, *size], align_corners=False)
    torch.testing.assert_close(module._grid(affine, size), wanted, atol=1e-5, rtol=0)


def test_no_larger_than_said():
    """The matrix, brought back to pixels, turns and scales by no more than the constants at the top say."""
    for seed in range(50):
        sides = np.array([30.0, 20.0])  # last axis first
        affine = module._affine((20, 30), np.random.default_rng(seed))
        matrix = affine[:, :2] * sides[:, None] / sides
        scale = np.sqrt(np.linalg.det(matrix))
        np.testing.assert_allclose(matrix @ matrix.T, np.eye(2) * scale**2, atol=1e-6)  # no shear
        assert 1 / module.SCALE <= scale <= module.SCALE
        assert abs(np.arcsin(matrix[1, 0] / scale)) <= module.ANGLE
        assert (np.abs(affine[:, 2]) / 2 <= module.SHIFT).all()


def test_training_sees_each_item_anew_and_the_same_way_again():
    masks = np.random.default_rng(0).integers(0, 3, (4, 2, 16, 16)).astype(np.uint8)
    annotations = Annotations.from_masks(masks, images=masks[:, :1].astype(np.float32), classes=3)
    cases, again = (
        MaskDataset(annotations, augment=True, seed=5).standardise(Standard([0.0], [1.0])) for _ in range(2)
    )
    first = cases.__getitems__([0, 1, 2, 3])
    for one, other in zip(first[:2], again.__getitems__([3, 2, 1, 0])[:2]):
        assert torch.equal(one, other.flip(0))
    cases.epoch = 1
    assert not torch.equal(first.images, cases.__getitems__([0, 1, 2, 3]).images)


@pytest.mark.usefixtures("same_intensities")
@pytest.mark.parametrize("shape", [(16, 24), (8, 9, 32), (5, 40)])
def test_pictures_are_shifted_by_whole_pixels_and_mirrored_at_their_borders(shape):
    """Against NumPy's padding by reflection, and a crop."""
    rng = np.random.default_rng(0)
    pictures, chance = rng.normal(size=(6, 2, *shape)), rng.random((6, 2 + len(shape)))
    chance[0, 2:], chance[1, 2:] = 0, 1 - 1e-9  # as far as it goes either way
    moved = augment_pictures(torch.from_numpy(pictures), chance)
    most = [length // 8 for length in shape]
    for picture, drawn, result in zip(pictures, chance[:, 2:], moved):
        padded = np.pad(picture, [(0, 0), *[(m, m) for m in most]], mode="reflect")
        corner = [int(number * (2 * m + 1)) for number, m in zip(drawn, most)]
        window = (slice(None), *[slice(c, c + n) for c, n in zip(corner, shape)])
        np.testing.assert_array_equal(result, padded[window])


def test_pictures_change_contrast_and_brightness_within_bounds():
    pictures = torch.randn(200, 3, 4, 4)
    changed = augment_pictures(pictures, np.random.default_rng(0).random((200, 4)))
    brightness = changed.mean(dim=(1, 2, 3)) - pictures.mean(dim=(1, 2, 3)) * (
        changed.std((1, 2, 3)) / pictures.std((1, 2, 3))
    )
    contrast = changed.std(dim=(1, 2, 3)) / pictures.std(dim=(1, 2, 3))
    assert 0.12 < brightness.abs().max() <= module.BRIGHTNESS + 1e-5
    assert 1.1 < contrast.max() <= module.CONTRAST + 1e-5
    assert 0.9 > contrast.min() >= 1 / module.CONTRAST - 1e-5
