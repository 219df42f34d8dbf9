"""Shapes in, shapes out: axes, classes, channels, sizes, missing raters."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from annotruth import Annotations
from annotruth.errors import IdentifiabilityWarning, InputError

pytestmark = pytest.mark.filterwarnings(
    "ignore::annotruth.errors.IdentifiabilityWarning", "ignore::annotruth.errors.SmallImageWarning"
)


@pytest.mark.parametrize("method", ["mean", "pixel-cm"])
@pytest.mark.parametrize(
    ("shape", "classes", "channels"),
    [((12, 12), 2, 1), ((13, 7), 3, 2), ((8, 8, 8), 2, 1), ((5, 9, 6), 4, 3)],
)
def test_predictions(make_cases, tiny, method, shape, classes, channels):
    annotations = make_cases(6, shape, classes=classes, channels=channels, raters=("good", "over", "under"))
    model = tiny(method, max_epochs=1).fit(annotations)
    images = annotations.images[:3]
    probabilities = model.predict_proba(images)
    assert probabilities.shape == (3, classes, *shape)
    assert probabilities.dtype == np.float32
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    labels = model.predict(images)
    assert labels.dtype == np.uint8
    np.testing.assert_array_equal(labels, probabilities.argmax(axis=1))
    assert model.dims_ == len(shape)


@pytest.fixture(scope="module")
def sizes() -> list[tuple[int, int]]:
    return [(12, 12), (7, 15), (11, 4), (12, 12), (16, 9), (5, 5), (8, 8), (13, 3)]


@pytest.mark.parametrize("method", ["mean", "majority", "clean", "global-cm", "pixel-cm"])
def test_items_of_different_sizes(make_cases, tiny, sizes, method):
    annotations = make_cases(len(sizes), sizes)
    model = tiny(method).fit(annotations)
    images = [annotations.item_image(index) for index in range(len(annotations))]
    probabilities, labels = model.predict_proba(images), model.predict(images)
    assert isinstance(probabilities, list)
    assert isinstance(labels, list)
    assert [one.shape for one in probabilities] == [(2, *size) for size in sizes]
    assert [one.shape for one in labels] == sizes
    np.testing.assert_array_equal(probabilities[1], model.predict_proba([images[1]])[0])


def test_images_of_one_size_give_an_array_and_none_give_none(cases, tiny):
    model = tiny(max_epochs=1).fit(cases)
    as_array, as_list = model.predict(cases.images[:2]), model.predict(list(cases.images[:2]))
    np.testing.assert_array_equal(as_array, as_list)
    assert isinstance(as_list, np.ndarray)
    assert len(model.predict([])) == len(model.predict(cases.images[:0])) == 0


def test_wrong_images_are_named_by_their_position(cases, tiny):
    model = tiny(max_epochs=1).fit(cases)
    good = cases.item_image(0)
    with pytest.raises(InputError, match=r"Image 1 has shape \(2, 12, 12\).*1 channel"):
        model.predict([good, np.repeat(good, 2, axis=0)])
    with pytest.raises(InputError, match=r"Image 0 has shape"):
        model.predict(good)
    with pytest.raises(InputError, match=r"Image 1.*non-finite"):
        model.predict([good, np.full_like(good, np.nan)])


@pytest.mark.parametrize("method", ["mean", "majority", "global-cm", "pixel-cm"])
@pytest.mark.parametrize("keep", [1, 2])
def test_missing_raters_down_to_one_label_per_image(make_cases, tiny, method, keep):
    annotations = make_cases(keep=keep)
    assert (annotations.labelled().sum(axis=1) == keep).all()
    model = tiny(method).fit(annotations)
    assert np.isfinite(model.history_.train_loss).all()
    assert np.isfinite(model.confusion_).all()
    assert model.predict(annotations.images).shape == (12, 12, 12)


def test_a_rater_who_labelled_nothing(cases, tiny):
    masks = cases.masks.copy()
    masks[:, 1] = 255
    model = tiny().fit(Annotations.from_masks(masks, cases.images, raters=["ann", "bob", "cy"]))
    np.testing.assert_array_equal(model.annotators_["bob"].confusion, np.eye(2))  # nothing speaks against bob


@pytest.mark.parametrize("method", ["mean", "majority", "global-cm", "pixel-cm"])
def test_one_rater_works_with_a_warning(make_cases, tiny, method):
    with pytest.warns(IdentifiabilityWarning, match="Only one rater"):
        model = tiny(method, max_epochs=1).fit(make_cases(raters=["good"]))
    assert any("one rater" in warning for warning in model.warnings_)
    assert model.predict(np.zeros((2, 1, 12, 12), np.float32)).shape == (2, 12, 12)


def test_the_clean_bound_does_not_depend_on_raters(make_cases, tiny, weights, same):
    """The truth teaches, so one rater is no reason to warn, and other raters change nothing."""
    one, three = make_cases(raters=["blank"]), make_cases()
    with warnings.catch_warnings():
        warnings.simplefilter("error", IdentifiabilityWarning)
        alone = tiny("clean").fit(one)
    assert alone.warnings_ == []
    assert same(weights(alone), weights(tiny("clean").fit(three)))


@pytest.mark.parametrize("items", [1, 2, 3])
def test_very_few_items(make_cases, tiny, items):
    model = tiny("pixel-cm", max_epochs=1).fit(make_cases(items))
    assert model.history_.val_loss.isna().all()  # too few to hold any out


def test_groups_are_never_torn_apart(make_cases, tiny):
    annotations = make_cases(12, groups=["large"] * 8 + ["a", "b", "c", "d"])
    nothing_held_out = 0
    for seed in range(20):
        train, held_out = tiny(validation=0.2, seed=seed)._split(annotations)
        if held_out is None:  # the large group was dealt last and left nothing
            nothing_held_out += 1
            assert len(train) == 12
        else:
            assert len(held_out) > 0
            assert not set(train.groups) & set(held_out.groups)
    assert 0 < nothing_held_out < 20


def test_a_single_group_is_trained_on(make_cases, tiny):
    model = tiny(max_epochs=1, validation=0.5).fit(make_cases(4, groups=["only"] * 4))
    assert model.history_.val_loss.isna().all()


def test_mirrored_and_read_only_arrays(cases, tiny, weights, same):
    masks, images, truth = cases.masks[..., ::-1].copy(), cases.images[..., ::-1].copy(), cases.truth[..., ::-1].copy()
    for array in (masks, images, truth):
        array.setflags(write=False)
    mirrored = Annotations.from_masks(masks[..., ::-1], images[..., ::-1], cases.raters, truth=truth[..., ::-1])
    for method in ("mean", "majority", "clean"):
        from_views = tiny(method, max_epochs=1, validation=0).fit(mirrored)
        assert same(weights(from_views), weights(tiny(method, max_epochs=1, validation=0).fit(cases)))
        from_views.predict(images[..., ::-1])
