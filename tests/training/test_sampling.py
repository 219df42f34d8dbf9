"""Segmenter.sample: what each method gives, its shapes, and that chance is a matter of the seed alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from annotruth.errors import InputError
from annotruth.methods import DataSpec, make_method, methods_for
from annotruth.methods.inference import in_rounds, sample_drawings
from annotruth.metrics import ged, ged_per_item

pytestmark = pytest.mark.filterwarnings(
    "ignore::annotruth.errors.IdentifiabilityWarning", "ignore::annotruth.errors.SmallImageWarning"
)

ONE_WAY = ("mean", "majority", "clean", "staple")


@pytest.fixture(scope="module", params=[name for name in methods_for("masks") if name != "diag"])  # needs a diagnosis
def model(request, cases, tiny):
    return tiny(request.param, max_epochs=1).fit(cases)


def test_shape_seed_and_manners(model, cases):
    state = torch.random.get_rng_state()
    samples = model.sample(cases.images[:3], 5)
    assert samples.shape == (5, 3, 12, 12)
    assert samples.dtype == np.uint8
    assert set(np.unique(samples)) <= {0, 1}
    np.testing.assert_array_equal(model.sample(cases.images[:3], 5, seed=0), samples)
    assert torch.equal(torch.random.get_rng_state(), state)  # the user's own random numbers are left alone


@pytest.mark.parametrize("method", ONE_WAY)
def test_methods_that_know_no_variety_give_their_prediction(cases, tiny, method):
    model = tiny(method, max_epochs=1).fit(cases)
    np.testing.assert_array_equal(model.sample(cases.images, 3), np.stack([model.predict(cases.images)] * 3))


@pytest.fixture(scope="module")
def learnt(make_cases, tiny):
    """Models that have learnt how raters differ, by name, and what they learnt from."""
    annotations = make_cases(16, raters=("good", "over", "blank"))
    rows = [[[0.95, 0.05], [0.05, 0.95]], [[0.2, 0.8], [0.1, 0.9]], [[0.99, 0.01], [0.9, 0.1]]]
    matrices = dict(zip(annotations.raters, rows))
    options = {"oracle-cm": {"matrices": matrices}}
    names = ("pixel-cm", "pixel-cm-lowrank", "global-cm", "oracle-cm", "separate")
    fitted = {name: tiny(name, max_epochs=4, **options.get(name, {})).fit(annotations) for name in names}
    return fitted, annotations


@pytest.mark.parametrize("method", ["pixel-cm", "pixel-cm-lowrank", "global-cm", "oracle-cm"])
def test_labels_are_drawn_as_often_as_raters_would_give_them(learnt, method):
    fitted, annotations = learnt
    model, image = fitted[method], annotations.images[0]
    maps = model.confusion_maps(image)
    if maps is None:
        maps = np.stack([rater.confusion for rater in model.annotators_.values()])[..., None, None]
    expected = (
        np.einsum("iyx,riyx->yx", model.predict_proba(image[None])[0], np.broadcast_to(maps[:, :, 1], (3, 2, 12, 12)))
        / 3
    )  # of class 1, whoever of the three draws
    samples = model.sample(image[None], 900)[:, 0]
    np.testing.assert_allclose((samples == 1).mean(axis=0), expected, atol=0.07)


def test_a_person_draws_generously_or_sparingly_throughout(learnt):
    """Chance decides once: of two drawings by the same person, one lies within the other."""
    fitted, annotations = learnt
    method, model = make_method("oracle-cm", "masks", fitted["oracle-cm"].options), fitted["oracle-cm"].module_
    image = torch.as_tensor(annotations.images[:1])
    spec = DataSpec(1, 3, 2, 2)
    drawn = sample_drawings(method, model, image, 30, torch.Generator().manual_seed(0), spec).argmax(dim=2)[:, 0]
    who = in_rounds(3, 30, torch.Generator().manual_seed(0))
    for rater in range(3):
        own = drawn[who == rater]
        own = own[own.sum(dim=(1, 2)).argsort()]
        assert (own[1:] >= own[:-1]).all()


def test_separate_gives_what_one_network_draws(learnt):
    fitted, annotations = learnt
    model, image = fitted["separate"], annotations.images[:1]
    with torch.no_grad():
        scores = model.module_.log_networks(model._standardised(image[0], "")[None])
    networks = np.stack([one.argmax(dim=1)[0].numpy() for one in scores])
    samples = model.sample(image, 40)[:, 0]
    same = (samples[:, None] == networks).all(axis=(2, 3))
    assert same.any(axis=1).all()
    assert same.any(axis=0).all()


def test_chance_decides_anew_for_each_image_and_seed(learnt):
    fitted, annotations = learnt
    model, image = fitted["oracle-cm"], annotations.images[0]
    samples = model.sample(np.stack([image, image]), 30)
    assert (samples[:, 0] != samples[:, 1]).any()
    assert (model.sample(image[None], 30, seed=1) != samples[:, :1]).any()


def test_images_of_different_sizes_give_a_list_fit_for_the_energy_distance(make_cases, tiny):
    sizes = [(12, 12), (7, 15), (11, 4), (16, 9)]
    annotations = make_cases(len(sizes), sizes)
    model = tiny("prob-unet", max_epochs=1).fit(annotations)
    images = [annotations.item_image(index) for index in range(len(annotations))]
    samples = model.sample(images, 3)
    assert [one.shape for one in samples] == [(3, *size) for size in sizes]
    masks = [annotations.item_masks(index) for index in range(len(annotations))]
    assert ged(samples, masks) == pytest.approx(ged_per_item(samples, annotations).mean())
    assert len(model.sample([], 3)) == 0


def test_energy_distance_of_samples_to_raters_of_whom_some_are_missing(make_cases, tiny):
    annotations = make_cases(keep=2)
    model = tiny("prob-unet", max_epochs=1).fit(annotations)
    samples = model.sample(annotations.images, 4).swapaxes(0, 1)
    each = ged_per_item(samples, annotations.masks)
    for index, given in enumerate(annotations.labelled()):
        alone = ged_per_item(samples[[index]], annotations.masks[[index]][:, given])
        assert each[index] == pytest.approx(alone[0])


@pytest.mark.parametrize(("shape", "patch"), [((20, 21), (8, 8)), ((9, 10, 11), (8, 8, 8))])
@pytest.mark.parametrize("method", ["prob-unet", "pixel-cm", "separate", "mean"])
def test_large_images_are_drawn_window_by_window(make_cases, tiny, method, shape, patch):
    annotations = make_cases(4, shape)
    model = tiny(method, max_epochs=1, patch_size=patch).fit(annotations)
    samples = model.sample(annotations.images[:2], 3)
    assert samples.shape == (3, 2, *shape)
    np.testing.assert_array_equal(model.sample(annotations.images[:2], 3), samples)


def test_all_windows_of_a_sample_are_one_persons(make_cases, tiny):
    """A pixel-wise network draws the same by windows as in one go only if every window has the same rater."""
    annotations = make_cases(8, (20, 21))
    model = tiny("separate", network=nn.Conv2d(1, 2, 1), patch_size=(8, 6)).fit(annotations)
    by_windows = model.sample(annotations.images, 6)
    model._patch = None
    whole = model.sample(annotations.images, 6)
    assert (by_windows != whole).mean() < 0.001  # rounding, at most


def test_a_network_of_ones_own(cases, tiny):
    network = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 2, 1))
    model = tiny("prob-unet", network=network, max_epochs=1).fit(cases)
    assert model.sample(cases.images[:2], 3).shape == (3, 2, 12, 12)
    with pytest.raises(InputError, match="network fails on images"):
        tiny("prob-unet", network=nn.Conv2d(1, 3, 1)).fit(cases)


@pytest.mark.parametrize("n", [0, -1])
def test_too_few_are_refused(cases, tiny, n):
    model = tiny(max_epochs=1).fit(cases)
    with pytest.raises(InputError, match=f"at least 1, not {n}"):
        model.sample(cases.images, n)


def test_wrong_images_are_named_by_their_position(cases, tiny):
    model = tiny("prob-unet", max_epochs=1).fit(cases)
    with pytest.raises(InputError, match=r"Image 1 has shape \(2, 12, 12\)"):
        model.sample([cases.item_image(0), np.zeros((2, 12, 12), np.float32)], 2)
