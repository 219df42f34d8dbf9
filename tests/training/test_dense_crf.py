"""The dense CRF against mean-field inference over all pairs of pixels, and what it mends."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from torch import nn

from annotruth import Classifier, Ensemble, Segmenter
from annotruth.errors import InputError
from annotruth.simulate import noisy_digits, simulate_masks
from annotruth.training import DenseCRF


def over_all_pairs(crf: DenseCRF, probabilities: np.ndarray, image: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Mean field pixel by pixel, every pair of pixels with a weight of its own."""
    places = [np.array(place) * steps for place in product(*map(range, image.shape[1:]))]
    looks = (image / image.std(axis=tuple(range(1, image.ndim)), keepdims=True)).reshape(len(image), -1).T
    count = len(places)
    near, alike = np.zeros((count, count)), np.zeros((count, count))
    for i, j in product(range(count), repeat=2):
        if i != j:
            apart, differ = ((places[i] - places[j]) ** 2).sum(), ((looks[i] - looks[j]) ** 2).sum()
            near[i, j] = np.exp(-apart / (2 * crf.near**2))
            alike[i, j] = np.exp(-apart / (2 * crf.far**2) - differ / (2 * crf.alike**2))
    weights = sum(
        weight * kernel / np.sqrt(np.outer(kernel.sum(axis=1), kernel.sum(axis=1)))
        for weight, kernel in ((crf.smoothness, near), (crf.appearance, alike))
    )
    unary = np.log(probabilities.reshape(len(probabilities), -1))
    belief = np.exp(unary)
    for _ in range(crf.steps):
        scores = np.array([[unary[k, i] + weights[i] @ belief[k] for i in range(count)] for k in range(len(unary))])
        belief = np.exp(scores) / np.exp(scores).sum(axis=0)
    return belief.reshape(probabilities.shape)


@pytest.mark.parametrize(
    ("size", "channels", "spacing"), [((7, 8), 1, None), ((7, 6), 2, (2, 1)), ((4, 5, 3), 1, (1, 1, 3))]
)
def test_it_is_mean_field_inference_over_all_pairs_of_pixels(size, channels, spacing):
    rng = np.random.default_rng(0)
    image = rng.normal(size=(channels, *size))
    probabilities = np.moveaxis(rng.dirichlet(np.ones(3), size=size), -1, 0)
    crf = DenseCRF(smoothness=0.7, appearance=1.5, near=1.2, far=3.0, alike=0.8, steps=4)
    expected = over_all_pairs(crf, probabilities, image, np.ones(len(size)) if spacing is None else np.array(spacing))
    found = crf.refine(probabilities, image, spacing)
    np.testing.assert_allclose(found, expected, atol=2e-3)
    assert np.abs(found - probabilities).max() > 0.05  # it did something


def test_lone_pixels_go_and_borders_follow_the_image():
    rng = np.random.default_rng(0)
    truth = np.zeros((32, 32), dtype=int)
    truth[8:22, 10:24] = 1
    image = (truth + rng.normal(0, 0.15, truth.shape))[None]
    inside = np.where(np.roll(truth, 2, axis=0), 0.75, 0.25)  # drawn two rows too low, and with specks
    inside = np.where(rng.random(truth.shape) < 0.04, 1 - inside, inside)
    maps = np.stack([1 - inside, inside])
    refined = DenseCRF(smoothness=1.0, appearance=2.0, far=5.0).refine(maps, image)
    wrong = [(found.argmax(axis=0) != truth).sum() for found in (maps, refined)]
    assert wrong[0] > 80
    assert wrong[1] < 20


def test_an_image_without_any_contrast_leaves_neighbours_to_count():
    maps = np.full((2, 9, 9), 0.1)
    maps[0] = 0.9
    maps[:, 4, 4] = 0.4, 0.6
    assert DenseCRF().refine(maps, np.ones((1, 9, 9))).argmax(axis=0).sum() == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [({"steps": 0}, "at least 1"), ({"near": 0.0}, "greater than 0"), ({"appearance": -1.0}, "negative")],
)
def test_options_are_checked(options, words):
    with pytest.raises(InputError, match=words):
        DenseCRF(**options)


def test_an_image_of_another_size_is_refused():
    with pytest.raises(InputError, match=r"size \(4, 5\), but the image has \(4, 4\)"):
        DenseCRF().refine(np.full((2, 4, 5), 0.5), np.zeros((1, 4, 4)))


@pytest.mark.filterwarnings("ignore::annotruth.errors.AnnotruthWarning")
def test_predictions_and_ensembles_are_refined_once_at_the_end():
    images, truth, _ = noisy_digits(8)
    annotations = simulate_masks(truth).annotations(images=images)
    settings = {"network": nn.Conv2d(1, 2, 3, padding=1), "max_epochs": 1, "validation": 0, "progress": False}
    models = [Segmenter("mean", seed=seed, **settings).fit(annotations) for seed in (0, 1)]
    field = DenseCRF(steps=2)
    plain = [model.predict_proba(images[:2]) for model in models]
    refined = models[0].predict_proba(images[:2], crf=field)
    np.testing.assert_array_equal(refined[1], field.refine(plain[0][1], images[1]))
    np.testing.assert_array_equal(models[0].predict(images[:2], crf=field), refined.argmax(axis=1))
    together = Ensemble(models).predict_proba(images[:2], crf=True)
    np.testing.assert_allclose(together[0], DenseCRF().refine(np.mean(plain, axis=0)[0], images[0]), atol=1e-6)
    np.testing.assert_array_equal(Ensemble(models).predict_proba(annotations.take([0, 1]), crf=True), together)
    with pytest.raises(InputError, match="crf must be True, False or a DenseCRF"):
        models[0].predict_proba(images[:2], crf="much")


@pytest.mark.filterwarnings("ignore::annotruth.errors.AnnotruthWarning")
def test_whole_items_have_no_pixels_to_listen():
    answers = np.array([[0, 0], [1, 1], [0, 1], [1, 1]])
    model = Classifier("mean", max_epochs=1, validation=0, progress=False).fit(np.eye(4), answers)
    with pytest.raises(InputError, match="models of masks"):
        Ensemble([model]).predict_proba(np.eye(4), crf=True)
