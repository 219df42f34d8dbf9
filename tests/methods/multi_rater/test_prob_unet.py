"""prob-unet: options, and both ways of drawing come out where two raters differ."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from annotruth import Annotations, Segmenter, load_model
from annotruth.errors import InputError
from annotruth.methods import DataSpec, make_method
from annotruth.metrics import dice, ged

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")


def squares(items: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy images of a square, (items, 1, 16, 16), that one rater draws as it is and one much too large."""
    rng = np.random.default_rng(seed)
    images = rng.normal(0, 0.2, (items, 1, 16, 16)).astype(np.float32)
    masks = np.zeros((items, 2, 16, 16), dtype=np.uint8)
    for image, (small, large) in zip(images[:, 0], masks):
        top, left = rng.integers(3, 6, 2)
        image[top : top + 4, left : left + 4] += 1
        small[top : top + 4, left : left + 4] = 1
        large[top - 2 : top + 8, left - 2 : left + 8] = 1
    return images, masks


Fit = Callable[..., Segmenter]


@pytest.fixture(scope="module")
def fit() -> Fit:
    def fitted(masks: np.ndarray, images: np.ndarray, method: str = "prob-unet") -> Segmenter:
        model = Segmenter(method, max_epochs=25, batch_size=4, validation=0, progress=False)
        return model.fit(Annotations.from_masks(masks, images, raters=["small", "large"]))

    return fitted


@pytest.fixture(scope="module")
def model(fit) -> Segmenter:
    images, masks = squares(24, seed=0)
    return fit(masks, images)


def shares(model: Segmenter, images: np.ndarray, masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How well samples fit the rater they are closer to, and whether that is the second: each (16, items)."""
    samples = model.sample(images, 16)
    scores = np.array([[[dice(s[[i]], masks[[i], r]) for r in (0, 1)] for i in range(len(masks))] for s in samples])
    return scores.max(axis=2), scores.argmax(axis=2)


def test_samples_show_both_ways_of_drawing(model):
    images, masks = squares(8, seed=1)
    fit, large = shares(model, images, masks)
    assert fit.mean() > 0.75
    assert (np.sort(fit.ravel())[16:] > 0.5).all()  # hardly anything in between
    assert 0.2 < large.mean() < 0.8
    assert (large.any(axis=0) & (1 - large).any(axis=0)).mean() > 0.7  # most images are drawn in both ways


def test_samples_are_closer_to_the_raters_than_one_mask_can_be(model, fit):
    images, masks = squares(8, seed=1)
    one_mask = model.predict(images)[:, None]
    best_single = min(ged(one_mask, masks), ged(masks[:, :1], masks), ged(masks[:, 1:], masks))
    assert ged(model.sample(images, 16).swapaxes(0, 1), masks) < best_single / 2


def test_one_label_per_image_is_enough_to_learn_both_ways(fit):
    images, masks = squares(48, seed=0)
    masks[::2, 0], masks[1::2, 1] = 255, 255
    learnt = fit(masks, images)
    assert np.isfinite(learnt.history_.train_loss).all()
    _, large = shares(learnt, *squares(8, seed=1))
    assert 0.1 < large.mean() < 0.9


def test_saved_and_loaded(model, tmp_path):
    images, _ = squares(3, seed=2)
    again = load_model(model.save(tmp_path / "model.annotruth"))
    np.testing.assert_array_equal(again.sample(images, 5, seed=3), model.sample(images, 5, seed=3))
    np.testing.assert_array_equal(again.predict_proba(images), model.predict_proba(images))
    assert again.settings_["options"] == {"latent": 6, "beta": 1.0, "samples": 16}


def test_options_reach_the_network():
    model = make_method("prob-unet", "masks", {"latent": 3, "samples": 5}).build(
        DataSpec(channels=1, raters=2, classes=2, dims=2)
    )
    assert model.truth.noise.shape == (5, 3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"latent": 0}, "latent must be at least 1, not 0"),
        ({"samples": 0}, "samples must be at least 1, not 0"),
        ({"samples": 1.5}, "must be a whole number"),
        ({"beta": -1.0}, "beta must not be negative"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        make_method("prob-unet", "masks", options)
