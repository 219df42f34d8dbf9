"""Learning from coarse drawings: every kind of them, missing ones, known masks besides, and bad input."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth import Annotations, Segmenter, load_model
from annotruth.errors import IdentifiabilityWarning, InputError, UnansweredClassWarning
from annotruth.metrics import dice
from annotruth.simulate import simulate_drawings

CLASSES = ["background", "box", "bar"]


@pytest.fixture(scope="module")
def scenes():
    """Bright boxes and brighter bars on a noisy ground: images (items, 1, 20, 20) and truth."""
    rng = np.random.default_rng(0)
    truth = np.zeros((24, 20, 20), dtype=np.uint8)
    for mask in truth:
        y, x = rng.integers(1, 7, size=2)
        mask[y : y + 7, x : x + 6] = 1
        mask[16:19, x : x + 9] = 2
    images = truth[:, None] * 2.0 + 0.3 * rng.standard_normal((24, 1, 20, 20))
    return images.astype(np.float32), truth


def drawn(scenes, **options):
    images, truth = scenes
    simulation = simulate_drawings(truth, strength=0, **options)
    return Annotations.from_masks(
        simulation.masks, images=images, negatives=simulation.negatives, classes=CLASSES, raters=simulation.raters
    )


def fit(annotations, truth=None, max_epochs=12, **options):
    model = Segmenter("coarse-cm", max_epochs=max_epochs, batch_size=4, validation=0.25, progress=False, **options)
    return model.fit(annotations, truth=truth)


@pytest.mark.parametrize("options", [{}, {"complement": "learnt", "matrices": "separate", "trace": "plain"}])
def test_small_strokes_of_both_kinds_are_enough(scenes, options, tmp_path):
    annotations = drawn(scenes, positive=0.3, negative=0.3, raters=["ann", "bob"])
    model = fit(annotations, **options)
    assert dice(model.predict(scenes[0]), scenes[1], 3) > 0.9
    assert model.annotators_["bob"].confusion.shape == (3, 3)
    again = load_model(model.save(tmp_path / "m.annotruth"))
    np.testing.assert_array_equal(again.predict(scenes[0][:2]), model.predict(scenes[0][:2]))


def test_a_learnt_m_finds_what_people_say(scenes):
    # Nobody ever says that a pixel is not background: on boxes they say "not a bar", on bars "not a box".
    model = fit(drawn(scenes, positive=0.3, negative=0.5), max_epochs=20, complement="learnt")
    said = model.complement_
    assert said[1, 2] > 0.65
    assert said[2, 1] > 0.65
    np.testing.assert_allclose(said.sum(axis=1), 1, rtol=1e-5)


def test_either_kind_may_be_missing_on_any_image(scenes):
    annotations = drawn(scenes, positive=0.5, negative=0.5)
    masks, negatives = annotations.masks.copy(), np.stack([annotations.item_negatives(i) for i in range(24)])
    masks[:8], negatives[8:14], masks[14:16], negatives[14:16] = 255, 255, 255, 255
    annotations = Annotations.from_masks(masks, images=scenes[0], negatives=negatives, classes=CLASSES)
    assert dice(fit(annotations).predict(scenes[0]), scenes[1], 3) > 0.85


def test_what_is_unmarked_may_be_background(scenes):
    annotations = drawn(scenes, positive=1.0, negative=None)
    model = fit(annotations, unmarked="background")
    assert dice(model.predict(scenes[0]), scenes[1], 3) > 0.9


def test_strokes_in_volumes():
    truth = np.zeros((6, 12, 12, 8), dtype=np.uint8)
    truth[:, 3:9, 3:9, 2:6] = 1
    images = (2.0 * truth[:, None] + 0.3 * np.random.default_rng(0).standard_normal((6, 1, 12, 12, 8))).astype("f4")
    strokes = simulate_drawings(truth, positive=0.3, negative=0.3, strength=0)
    annotations = Annotations.from_masks(
        strokes.masks, images=images, negatives=strokes.negatives, classes=["background", "box"]
    )
    model = fit(annotations, max_epochs=1)
    assert model.predict(images).shape == truth.shape
    assert model.confusion_maps(images[0]).shape == (1, 2, 2, 12, 12, 8)


def test_known_masks_help_where_nothing_is_drawn(scenes):
    images, truth = scenes
    masks = np.full((24, 1, 20, 20), 255, dtype=np.uint8)
    masks[12:] = drawn(scenes, positive=0.1, negative=None).masks[12:]
    annotations = Annotations.from_masks(masks, images=images, classes=CLASSES)
    model = fit(annotations, truth={f"item_{index}": truth[index] for index in range(12)})
    assert dice(model.predict(images), truth, 3) > 0.9


def test_only_methods_that_can_take_known_masks(scenes):
    annotations = drawn(scenes, positive=1.0, negative=None)
    with pytest.raises(InputError, match=r"majority does not learn from true masks.*coarse-cm"):
        Segmenter("majority", progress=False).fit(annotations, truth=scenes[1])
    with pytest.raises(InputError, match="no known pixel"):
        fit(annotations, truth=np.full_like(scenes[1], 255))


def test_a_class_nobody_draws_is_told(scenes):
    annotations = drawn(scenes, positive=0.5, negative=0.5)
    masks = np.where(annotations.masks == 2, 255, annotations.masks)
    masks[:, :, 0] = 0
    lacking = Annotations.from_masks(masks, images=scenes[0], classes=CLASSES)
    with pytest.warns(UnansweredClassWarning, match="Nobody drew a stroke of bar"):
        fit(lacking, max_epochs=1)


def test_a_single_class_without_anything_beside_it_is_told(scenes):
    masks = np.where(scenes[1] == 1, 1, 255).astype(np.uint8)[:, None]
    with pytest.warns(IdentifiabilityWarning, match="nothing says where it is not"):
        fit(Annotations.from_masks(masks, images=scenes[0], classes=CLASSES), max_epochs=1)


def test_no_stroke_at_all_is_refused(scenes):
    masks = np.full((24, 1, 20, 20), 255, dtype=np.uint8)
    with pytest.raises(InputError, match="not a single stroke"):
        fit(Annotations.from_masks(masks, images=scenes[0], classes=CLASSES))


def test_strokes_outside_the_image_are_refused(scenes):
    images, truth = scenes
    drawn_beyond = np.pad(truth, ((0, 0), (0, 3), (0, 3)), constant_values=1)[:, None]
    with pytest.raises(InputError, match=r"item_0.*23.*20"):
        Annotations.from_masks(drawn_beyond, images=images, classes=CLASSES)


@pytest.mark.parametrize("wrong", [{"unmarked": "guess"}, {"warmup": 2.0}, {"smoothness": -1.0}, {"matrices": "none"}])
def test_wrong_options_are_refused(scenes, wrong):
    with pytest.raises(InputError):
        fit(drawn(scenes), **wrong)
