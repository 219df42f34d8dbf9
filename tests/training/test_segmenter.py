"""Segmenter: shapes in and out, odd cases that are worked with, and what is refused before any training."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError

from annotruth import Annotations, Segmenter
from annotruth.errors import IdentifiabilityWarning, InputError, SmallImageWarning
from annotruth.training.resample import interpolate

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")


@pytest.mark.parametrize("method", ["pixel-cm", "global-cm", "staple", "majority", "oracle-cm"])
@pytest.mark.parametrize("label", [0, 1])
def test_a_rater_who_gives_one_class_only(cases, tiny, method, label):
    masks = cases.masks.copy()
    masks[:, 2] = label
    model = tiny(method, max_epochs=1).fit(Annotations.from_masks(masks, cases.images, truth=cases.truth))
    assert np.isfinite(model.confusion_).all()
    assert model.annotators_["rater_3"].labelled > 0


def test_a_class_nobody_gives(cases, tiny):
    """Three classes are named, two are used."""
    model = tiny("pixel-cm", max_epochs=1).fit(Annotations.from_masks(cases.masks, cases.images, classes=3))
    assert model.predict_proba(cases.images).shape == (12, 3, 12, 12)
    assert np.isfinite(model.confusion_).all()


def test_different_numbers_of_raters_per_case(cases, tiny):
    """From one to all; and a case that nobody labelled teaches nothing."""
    masks = cases.masks.copy()
    for item in range(len(cases)):
        masks[item, 3 - item % 4 :] = 255
    some = Annotations.from_masks(masks, cases.images)
    assert set(some.labelled().sum(axis=1)) == {0, 1, 2, 3}
    for method in ("pixel-cm", "global-cm", "majority", "staple", "separate"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = tiny(method, validation=0).fit(some)
        assert np.isfinite(model.history_.train_loss).all()
        assert [model.annotators_[name].labelled for name in some.raters] == some.labelled().sum(axis=0).tolist()


def test_small_images_are_padded_and_this_is_said_once(make_cases, tiny):
    cases = make_cases(4, [(12, 12), (5, 20), (12, 12), (3, 3)])
    with pytest.warns(SmallImageWarning, match=r"4×8 pixels .*padded: item_3 \(3×3\)\.") as said:
        model = tiny(max_epochs=2, validation=0).fit(cases)
    assert sum(issubclass(warning.category, SmallImageWarning) for warning in said) == 1
    assert said[-1].filename == __file__ or any(warning.filename == __file__ for warning in said)
    with pytest.warns(SmallImageWarning, match=r"padded: image 1 \(2×9\)\."):
        labels = model.predict([np.zeros((1, 8, 8), np.float32), np.zeros((1, 2, 9), np.float32)])
    assert labels[1].shape == (2, 9)


@pytest.mark.filterwarnings("ignore::annotruth.errors.SmallImageWarning")
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


@pytest.mark.filterwarnings("ignore::annotruth.errors.SmallImageWarning")
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


def test_mirrored_and_read_only_arrays(cases, tiny, weights, same):
    masks, images, truth = cases.masks[..., ::-1].copy(), cases.images[..., ::-1].copy(), cases.truth[..., ::-1].copy()
    for array in (masks, images, truth):
        array.setflags(write=False)
    mirrored = Annotations.from_masks(masks[..., ::-1], images[..., ::-1], cases.raters, truth=truth[..., ::-1])
    for method in ("mean", "majority", "clean"):
        from_views = tiny(method, max_epochs=1, validation=0).fit(mirrored)
        assert same(weights(from_views), weights(tiny(method, max_epochs=1, validation=0).fit(cases)))
        from_views.predict(images[..., ::-1])


def refused(model: Segmenter, annotations: Annotations, words: str, folder: Path) -> None:
    with pytest.raises(InputError, match=words):
        model.fit(annotations, run_folder=folder / "run")
    assert not (folder / "run").exists()


def test_unknown_method_lists_the_known_ones(cases, tiny, tmp_path):
    refused(tiny("pixel-cmm"), cases, r"Unknown method 'pixel-cmm'.*Known: .*majority.*pixel-cm", tmp_path)


def test_unknown_option_lists_the_methods_own(cases, tiny, tmp_path):
    refused(tiny("pixel-cm", trace_wieght=0.1), cases, r"pixel-cm has no option 'trace_wieght'.*trace_weight", tmp_path)
    refused(tiny("mean", trace_weight=0.1), cases, r"mean has no option 'trace_weight'.*none", tmp_path)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"validation": 1.0}, "validation"),
        ({"validation": -0.1}, "validation"),
        ({"max_epochs": 0}, "max_epochs must be positive, not 0"),
        ({"max_epochs": -1}, "max_epochs"),
        ({"batch_size": 0}, "batch_size"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"patch_size": (8,)}, "patch_size needs a positive number for each of the 2 axes"),
        ({"patch_size": 8}, "patch_size"),
        ({"patch_size": (8, 0)}, "patch_size"),
    ],
)
def test_wrong_settings(cases, tiny, tmp_path, params, words):
    refused(tiny(**params), cases, words, tmp_path)


def test_label_table(tiny, tmp_path):
    table = Annotations.from_answers(np.array([[0, 1], [1, 1]]), images=np.zeros((2, 1, 4, 4)))
    refused(tiny(), table, "label table", tmp_path)


def test_missing_images(cases, tiny, tmp_path):
    refused(tiny(), Annotations.from_masks(cases.masks), "needs the images", tmp_path)


def test_clean_needs_the_truth(cases, tiny, tmp_path):
    refused(tiny("clean"), Annotations.from_masks(cases.masks, cases.images), "clean.*truth", tmp_path)


@pytest.mark.parametrize("shape", [(9,), (2, 3, 4, 5)])
def test_axes_other_than_two_or_three(tiny, tmp_path, shape):
    flat = Annotations.from_masks(np.zeros((4, 3, *shape), np.uint8), images=np.zeros((4, 1, *shape), np.float32))
    refused(tiny(), flat, "2 or 3 spatial axes", tmp_path)


def test_items_with_different_numbers_of_axes(make_cases, tiny, tmp_path):
    refused(tiny(), make_cases(2, [(8, 8), (8, 8, 8)]), r"all the same; these have \[2, 3\]", tmp_path)


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("channels", [1, 2])
def test_an_image_with_other_channels_is_named(cases, tiny, tmp_path, held_out, channels):
    """A channel too many or too few must not be broadcast silently, among the held-out items either."""
    model = tiny(validation=0.25)
    parts = cases.split([0.75, 0.25], seed=model.seed)
    item = parts[held_out].items[1]
    images = [np.repeat(image, channels, axis=0) for image in cases.images]
    position = cases.items.index(item)
    images[position] = np.repeat(cases.images[position], 3 - channels, axis=0)
    odd = Annotations.from_masks(cases.masks, images)
    refused(model, odd, f"Item {item} has {3 - channels} channels, but other items {channels}", tmp_path)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_non_finite_image_is_named(cases, tiny, tmp_path, value):
    for position in range(len(cases)):  # whether it is trained on or held out
        images = cases.images.copy()
        images[position, 0, 3, 3] = value
        broken = Annotations.from_masks(cases.masks, images)
        refused(tiny(), broken, rf"Item item_{position}: .*1 non-finite", tmp_path)


def test_prediction_before_training(cases, tiny, tmp_path):
    with pytest.raises(NotFittedError):
        tiny().predict(cases.images)
    with pytest.raises(NotFittedError):
        tiny().save(tmp_path / "model.annotruth")
    assert not any(tmp_path.iterdir())


def test_prediction_is_the_mean_over_mirror_images_where_the_plan_allows(make_cases, tiny):
    annotations = make_cases(8, (12, 9))
    model = tiny(patch_size=(8, 9), augment=True).fit(annotations)
    assert model.plan_.mirror == (0, 1)
    images = annotations.images[:2]
    mirrored = model.predict_proba(images)
    model.augment = False
    assert not np.allclose(model.predict_proba(images), mirrored, atol=1e-4)
    whole = model.plan_
    model.plan_ = replace(whole, patch_size=None)
    by_hand = [np.flip(model.predict_proba(np.flip(images, axes).copy()), axes) for axes in ((), 2, 3, (2, 3))]
    model.augment = True
    np.testing.assert_allclose(model.predict_proba(images), np.mean(by_hand, axis=0), atol=1e-5)
    model.plan_ = replace(whole, patch_size=None, mirror=(1,))
    np.testing.assert_allclose(model.predict_proba(images), np.mean([by_hand[0], by_hand[2]], axis=0), atol=1e-5)


def test_classes_that_lie_in_one_order_are_never_mirrored(make_cases, tiny, tmp_path):
    masks = np.zeros((8, 2, 12, 12), np.uint8)
    masks[:, :, 2:6, 1:5], masks[:, :, 2:6, 7:11] = 1, 2
    annotations = Annotations.from_masks(masks, images=(masks[:, :1] > 0).astype(np.float32))
    model = tiny(validation=0.25).fit(annotations)
    assert model.plan_.mirror == (0,)
    again = Segmenter.load(model.save(tmp_path / "m.annotruth"))
    assert again.plan_ == model.plan_
    given = tiny(plan=replace(model.plan_, mirror=()), batch_size=None).fit(annotations)
    assert given.plan_.mirror == ()


@pytest.fixture(scope="module")
def apart() -> Annotations:
    """The same kind of box, seen by fine and by coarse pixels along the first axis: 1 and 2 mm."""
    rng, masks, images = np.random.default_rng(0), [], []
    for item in range(9):
        truth = np.zeros((16, 12), np.uint8)
        top, left = rng.integers(1, 8), rng.integers(1, 6)
        truth[top : top + 6, left : left + 5] = 1
        image = 2.0 * truth + rng.normal(0, 0.2, truth.shape)
        step = 1 if item % 3 else 2
        masks.append(np.repeat(truth[None, ::step], 2, axis=0))
        images.append(image[None, ::step].astype(np.float32))
    spacing = [(1.0, 1.0) if item % 3 else (2.0, 1.0) for item in range(9)]
    return Annotations.from_masks(masks, images=images, spacing=spacing)


@pytest.fixture(scope="module")
def at_one_spacing(apart, tiny) -> Segmenter:
    return tiny("pixel-cm", patch_size=(12, 12), max_epochs=8, learning_rate=0.02, validation=0.2).fit(apart)


def test_images_of_different_spacing_are_trained_at_the_median_and_predicted_on_their_own_grid(
    apart, at_one_spacing, tmp_path
):
    model = at_one_spacing
    assert model.plan_.spacing == (1.0, 1.0)
    coarse, fine = apart.item_image(0), apart.item_image(1)
    found = model.predict_proba([coarse, fine], spacing=[apart.spacing(0), apart.spacing(1)])
    assert [one.shape for one in found] == [(2, 8, 12), (2, 16, 12)]
    by_hand = model.predict_proba(interpolate(torch.from_numpy(coarse), (16, 12)).numpy()[None])[0]
    np.testing.assert_allclose(found[0], interpolate(torch.from_numpy(by_hand), (8, 12)), atol=1e-5)
    np.testing.assert_array_equal(found[1], model.predict_proba(fine[None])[0])  # it is at that spacing already
    again = Segmenter.load(model.save(tmp_path / "m.annotruth"))
    np.testing.assert_array_equal(again.predict_proba(coarse[None], spacing=(2, 1))[0], found[0])
    assert model.predict(coarse[None], spacing=(2, 1)).shape == (1, 8, 12)


def test_annotations_give_their_images_and_spacing(apart, at_one_spacing):
    model, cases = at_one_spacing, apart.take([0, 1])
    images, spacing = [cases.item_image(0), cases.item_image(1)], [cases.spacing(0), cases.spacing(1)]
    for ask in (model.predict_proba, model.predict, lambda *given, **more: model.sample(*given, n=2, **more)):
        for ours, theirs in zip(ask(cases), ask(images, spacing=spacing), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(model.confusion(cases), model.confusion(images, spacing=spacing))


def test_everything_a_model_is_asked_comes_on_the_images_own_grid(apart, at_one_spacing):
    model, coarse, spacing = at_one_spacing, apart.item_image(0), (2.0, 1.0)
    assert model.sample(coarse[None], 3, spacing=spacing).shape == (3, 1, 8, 12)
    assert model.confusion_maps(coarse, spacing=spacing).shape == (2, 2, 2, 8, 12)
    assert model.confusion(coarse[None], spacing=spacing).shape == (1, 2, 2, 2)
    rater = model.annotators_["rater_1"]
    np.testing.assert_allclose(rater.predict_proba(coarse, spacing=spacing).sum(axis=0), 1, atol=1e-5)
    assert rater.predict(coarse, spacing=spacing).shape == (8, 12)
    assert model.rater_confidences_(coarse, spacing=spacing).shape == (2, 8, 12)
    assert [one.shape for one in model.fuse(apart.take([0, 1]))] == [(2, 8, 12), (2, 16, 12)]


def test_spacings_that_cannot_be_are_refused(apart, at_one_spacing, tiny):
    image = apart.item_image(0)
    for spacing, words in (((0, 1), "must be positive"), ((1, 1, 1), "2 spatial axes"), ([(1, 1)] * 2, "2 spacings")):
        with pytest.raises(InputError, match=words):
            at_one_spacing.predict_proba(image[None], spacing=spacing)
    some = apart._with(spacing=[None, *apart._spacing[1:]])
    with pytest.raises(InputError, match="No spacing, or one of zero, is known of item_0"):
        tiny().fit(some)
    with pytest.raises(InputError, match="known of item_0, but images are resampled"):
        tiny(plan=at_one_spacing.plan_, batch_size=None).fit(some)
    as_they_are = replace(at_one_spacing.plan_, spacing=None, patch_size=None)
    assert tiny(plan=as_they_are, batch_size=None, max_epochs=1).fit(some).plan_.spacing is None


@pytest.mark.parametrize(("items", "batch", "epochs"), [(640, 10, 30), (64, 1, 30), (14, 1, 138), (14, 7, 960)])
def test_few_items_are_passed_over_more_often(cases, tiny, items, batch, epochs):
    model = tiny(max_epochs=None)
    model.plan_ = model.make_plan(cases)
    assert model._epochs(items, batch) == epochs
    assert tiny(max_epochs=7)._epochs(items, batch) == 7


def test_wide_values_are_clipped_as_the_plan_says(make_cases, tiny, tmp_path):
    cases = make_cases(6, (12, 12))
    images, masks = (cases.images * 100).round(), cases.masks.copy()
    images[:, :, 0], masks[:, :, 0] = -1000, 0
    wide = Annotations.from_masks(masks, images=images)
    model = tiny(max_epochs=1).fit(wide)
    ((low, high),) = model.plan_.clip
    assert -200 < low < high
    again = Segmenter.load(model.save(tmp_path / "m.annotruth"))
    beyond = np.where(images[:2] < low, low - 500, images[:2])
    np.testing.assert_array_equal(again.predict_proba(beyond), model.predict_proba(images[:2]))
    assert tiny(max_epochs=1).fit(cases).plan_.clip is None
    wrong = replace(model.plan_, clip=((0, 1), (0, 1)))
    with pytest.raises(InputError, match="clip has values for 2 channels"):
        tiny(plan=wrong, batch_size=None).fit(wide)


def test_one_case_of_computed_tomography_is_enough(tiny):
    mask = np.zeros((1, 2, 12, 12), np.uint8)
    mask[:, :, 3:9, 3:9] = 1
    images = np.where(mask[:, :1] > 0, 40.0, -1000.0) + np.arange(12)
    model = tiny(max_epochs=1).fit(Annotations.from_masks(mask, images=images, spacing=(0.7, 0.7)))
    assert model.plan_.clip is not None
    assert model.plan_.spacing is None
