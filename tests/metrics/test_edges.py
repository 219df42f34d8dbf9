"""How well borders lie on edges of images, and classes tell what is bright."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage
from sklearn.metrics import mutual_info_score

from annotruth.metrics.edges import BLUR, NEAR, SHADES, blurred, edge_information, near_borders, shade_lengths


def _squares(seed=0):
    rng = np.random.default_rng(seed)
    truth = np.zeros((12, 24, 24), dtype=np.uint8)
    for item, (top, left, side) in enumerate(rng.integers(5, 10, (12, 3))):
        truth[item, top : top + side, left : left + side] = 1
    return truth, truth[:, None] + 0.3 * rng.standard_normal((12, 1, 24, 24))


def _moved(truth, pixels):
    """Squares larger by some pixels on each side, or smaller."""
    move = ndimage.grey_dilation if pixels > 0 else ndimage.grey_erosion
    return move(truth, (1, 2 * abs(pixels) + 1, 2 * abs(pixels) + 1))


@pytest.mark.parametrize("seed", range(3))
def test_true_borders_are_known_best(seed):
    truth, images = _squares(seed)
    known = {0: edge_information([truth], [images], 2)}
    known |= {pixels: edge_information([_moved(truth, pixels)], [images], 2) for pixels in (-2, -1, 1, 2)}
    assert known[-2] < known[-1] < 0.85 * known[0]
    assert known[2] < known[1] < 0.85 * known[0]


def test_it_is_the_mutual_information_over_the_entropy():
    truth, images = _squares()
    within, bright = [], []
    for item, image in zip(truth, images[:, 0]):
        inside, outside = np.argwhere(item == 1), np.argwhere(item == 0)
        for place in np.ndindex(item.shape):
            others = outside if item[place] else inside
            if np.sqrt(((others - place) ** 2).sum(axis=1)).min() - 0.5 < NEAR:
                within.append(item[place])
                bright.append(image[place])
    shade = np.searchsorted(np.quantile(bright, np.linspace(0, 1, SHADES + 1)[1:-1]), bright, side="right")
    expected = mutual_info_score(within, shade) / mutual_info_score(within, within)
    assert edge_information([truth], [images], 2) == pytest.approx(expected, rel=1e-5)


def test_batches_classes_and_channels():
    truth, images = _squares()
    whole = edge_information([truth], [images], 2)
    assert edge_information([truth[:5], truth[5:]], [images[:5], images[5:]], 2) == pytest.approx(whole)
    noise = np.random.default_rng(1).standard_normal(images.shape)
    assert edge_information([truth], [np.concatenate([noise, images], axis=1)], 2) == pytest.approx(whole)
    assert edge_information([truth], [images], 3) == pytest.approx(whole / 2)  # nobody drew the second class


def test_items_without_a_border_tell_nothing():
    truth, images = _squares()
    half = truth.copy()
    half[:6] = 0
    part = edge_information([truth[6:]], [images[6:]], 2)
    assert edge_information([half], [images], 2) == pytest.approx(part / 2)
    assert edge_information([np.zeros_like(truth)], [images], 2) == 0
    assert edge_information([np.full_like(truth, 255)], [images], 2) == 0


def test_volumes():
    truth = np.zeros((2, 10, 10, 10), dtype=np.uint8)
    truth[:, 3:7, 3:7, 3:7] = 1
    images = truth[:, None].astype(float)
    assert edge_information([truth], [images], 2) == pytest.approx(1.0)
    assert blurred(images).shape == images.shape


def test_blur_keeps_what_is_even_and_lessens_noise():
    noise = np.random.default_rng(0).standard_normal((3, 2, 30, 30))
    assert blurred(noise).std() < noise.std() / (2 * BLUR)
    even = np.ones((1, 1, 8, 8))
    np.testing.assert_allclose(blurred(even), even)


def test_pixels_near_a_border_of_any_labelling_are_looked_at():
    truth, _ = _squares()
    larger = _moved(truth, 2)
    both = near_borders([truth, larger], 2)
    np.testing.assert_array_equal(both, near_borders([truth], 2) | near_borders([larger], 2))
    for item, near in zip(truth, near_borders([truth], 2)):
        away = ndimage.distance_transform_edt(item) + ndimage.distance_transform_edt(1 - item) - 0.5
        np.testing.assert_array_equal(near, away < NEAR)
    assert not near_borders([np.zeros_like(truth)], 2).any()


@pytest.mark.parametrize("seed", range(3))
def test_shades_are_told_most_shortly_by_true_classes(seed):
    truth, images = _squares(seed)
    at = near_borders([truth, _moved(truth, -2)], 2)
    lengths = {
        pixels: shade_lengths([truth if pixels == 0 else _moved(truth, pixels)], [images], [at], 2).mean()
        for pixels in range(-2, 3)
    }
    assert lengths[0] < lengths[-1] < lengths[-2]
    assert lengths[0] < lengths[1] < lengths[2]


def test_lengths_of_shades_are_entropies():
    """On average over all items, with half a pixel of each shade added to what is counted."""
    truth, images = _squares()
    everywhere = np.ones_like(truth, dtype=bool)
    found = shade_lengths([truth[:4], truth[4:]], [images[:4], images[4:]], [everywhere[:4], everywhere[4:]], 2)
    bright = images.ravel()
    shade = np.searchsorted(np.quantile(bright, np.linspace(0, 1, SHADES + 1)[1:-1]), bright, side="right")
    of_class = np.stack([np.bincount(shade[truth.ravel() == each], minlength=SHADES) for each in (0, 1)]) + 0.5
    nats = -np.log(of_class / of_class.sum(axis=1, keepdims=True))[truth.ravel(), shade]
    np.testing.assert_allclose(found, nats.reshape(12, -1).sum(axis=1), rtol=1e-6)
    twice = shade_lengths([truth], [np.concatenate([images, images], axis=1)], [everywhere], 2)
    np.testing.assert_allclose(twice, found, rtol=1e-6)
    assert not shade_lengths([truth], [images], [~everywhere], 2).any()
