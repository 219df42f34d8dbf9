"""Masks saved in many ways come to the classes that were drawn, and what was done is said."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage
from skimage.transform import resize

from annotruth.errors import InputError
from annotruth.io.masks.planes import Planes
from annotruth.io.masks.rules import read_colours, settle_rule
from annotruth.io.masks.tally import Tally

SQUARE = np.zeros((24, 30), dtype=np.uint8)
SQUARE[6:18, 8:22] = 1
NESTED = SQUARE.copy()
NESTED[10:14, 12:18] = 2


def settle(*all_planes, lossy=False, **options):
    tally = Tally()
    for planes in all_planes:
        tally.add(planes, "here", lossy)
    return settle_rule(tally, **options)


def grey(plane):
    return Planes(np.asarray(plane)[None])


def colour(plane):
    return Planes(np.moveaxis(np.asarray(plane), -1, 0), coloured=True)


def test_class_numbers_stay_as_they_are():
    drawn = np.where(np.arange(24)[:, None] < 2, 255, NESTED)
    rule = settle(grey(drawn))
    assert (rule.kind, rule.classes, rule.notes) == ("numbers", ("0", "1", "2"), ())
    np.testing.assert_array_equal(rule.apply(grey(drawn), "here"), drawn)


@pytest.mark.parametrize("high", [255, 128, 1000, 0.7])
def test_two_values_are_background_and_marked(high):
    saved = grey(np.where(SQUARE, high, 0))
    rule = settle(saved)
    np.testing.assert_array_equal(rule.apply(saved, "here"), SQUARE)
    assert rule.notes == (f"Masks hold 0 and {high:g}: {high:g} is taken as marked.",)


def test_equal_channels_are_one():
    planes = Planes(np.repeat(SQUARE[None] * 255, 3, axis=0), coloured=True)
    rule = settle(planes, grey(SQUARE * 255))
    assert rule.notes[0] == "1 of 2 masks are in colour with equal channels: one of them is read."
    np.testing.assert_array_equal(rule.apply(planes, "here"), SQUARE)


@pytest.mark.parametrize("order", [1, 3])
@pytest.mark.parametrize("factor", [2, 3.7])
def test_soft_edges_are_cut_in_the_middle(order, factor):
    large = (resize(SQUARE * 1.0, [int(size * factor) for size in SQUARE.shape], order=order) * 255).clip(0, 255)
    rule = settle(grey(large.astype(np.uint8)))
    assert rule.kind == "threshold"
    assert "soft edges among them: pixels above 127.5 are taken as marked" in rule.notes[0]
    np.testing.assert_array_equal(rule.apply(grey(large), "here"), large > 127.5)


def test_soft_edges_in_all_shades_are_no_class_numbers():
    rows, columns = np.mgrid[:96, :96]
    discs = [255.0 * (np.hypot(rows - 48, columns - 50) < radius) for radius in range(20, 36)]
    masks = [ndimage.gaussian_filter(disc, 0.8 + 0.05 * number) for number, disc in enumerate(discs)]
    masks = [grey(np.rint(mask).astype(np.uint8)) for mask in masks]
    assert len(np.unique(np.stack([mask.pixels for mask in masks]))) > 200, "else there is nothing to test"
    assert settle(*masks).kind == "threshold"
    many = grey(np.kron(np.arange(64).reshape(8, 8), np.ones((6, 6))).astype(np.uint8))
    assert settle(many).kind == "numbers"


def test_a_jpeg_of_a_mask_comes_back_as_it_was_drawn():
    file = io.BytesIO()
    Image.fromarray(SQUARE * 255).save(file, format="JPEG", quality=60)
    saved = grey(np.array(Image.open(file)))
    assert len(np.unique(saved.pixels)) > 2, "else there is nothing to test"
    rule = settle(saved, lossy=True)
    assert "saved in a format that changes values (JPEG)" in rule.notes[0]
    np.testing.assert_array_equal(rule.apply(saved, "here"), SQUARE)


def test_a_few_values_that_fill_areas_are_classes():
    values = np.array([0, 128, 255])
    rule = settle(grey(values[NESTED]))
    assert (rule.classes, rule.notes) == (("0", "128", "255"), ("Each value is a class: 0, 128, 255.",))
    np.testing.assert_array_equal(rule.apply(grey(values[NESTED]), "here"), NESTED)
    with pytest.raises(InputError, match=r"here: 77 means nothing here \(known are 0, 128, 255\)"):
        rule.apply(grey(np.full((2, 2), 77)), "here")


def test_probabilities_are_refused_unless_a_threshold_is_given():
    ramp = grey(np.linspace(0, 1, 400).reshape(20, 20)[:, :, None].repeat(20, axis=2))
    steps = grey(np.kron(np.arange(0, 1, 0.001).reshape(20, 50), np.ones((2, 2))))
    with pytest.raises(InputError, match="Are these probabilities"):
        settle(grey(np.concatenate([steps.pixels[0], np.full((9, 100), 0.5)])))
    assert settle(ramp, threshold=0.25).apply(ramp, "here").mean() == pytest.approx(0.75, abs=0.01)


def test_each_colour_is_a_class_black_the_background():
    colours = np.array([[0, 0, 0], [255, 0, 0], [0, 0, 255]], dtype=np.uint8)
    empty = grey(np.zeros((24, 30), dtype=np.uint8))  # a mask in grey among coloured ones
    rule = settle(colour(colours[NESTED]), empty)
    assert rule.classes == ("background", "#0000ff", "#ff0000")
    np.testing.assert_array_equal(rule.apply(colour(colours[NESTED]), "here"), np.array([0, 2, 1])[NESTED])
    assert not rule.apply(empty, "here").any()


def test_colours_can_be_named_and_a_colour_without_a_name_is_refused():
    colours = np.array([[0, 0, 0], [255, 0, 0], [0, 0, 255]], dtype=np.uint8)
    named = read_colours(["#ff0000=organ", "#0000FF=tumour"])
    rule = settle(colour(colours[NESTED]), colours=named)
    assert rule.classes == ("background", "organ", "tumour")
    np.testing.assert_array_equal(rule.apply(colour(colours[NESTED]), "here"), NESTED)
    with pytest.raises(InputError, match="#0000ff fills areas and has no class"):
        settle(colour(colours[NESTED]), colours=read_colours(["#ff0000=organ"]))
    same = settle(colour(colours[NESTED]), colours=read_colours(["#ff0000=organ", "#0000ff=organ"]))
    np.testing.assert_array_equal(same.apply(colour(colours[NESTED]), "here"), NESTED > 0)
    for wrong in ("red=organ", "#ff0000"):
        with pytest.raises(InputError, match="written"):
            read_colours([wrong])


def test_blended_edges_between_colours_go_to_the_nearest():
    colours = np.array([[0, 0, 0], [255, 0, 0]], dtype=np.uint8)
    soft = resize(colours[SQUARE] / 255, (48, 60), order=1)
    rule = settle(colour((soft * 255).astype(np.uint8)))
    assert "Along soft edges" in rule.notes[0]
    np.testing.assert_array_equal(rule.apply(colour((soft * 255).astype(np.uint8)), "here"), soft[..., 0] > 0.5)


def test_transparency_is_the_mask_where_it_is_all_that_differs():
    brush = Planes(np.full((3, 24, 30), 200), alpha=SQUARE * 255, coloured=True)
    rule = settle(brush)
    assert "opaqueness is taken as the mask" in rule.notes[0]
    np.testing.assert_array_equal(rule.apply(brush, "here"), SQUARE)
    opaque = Planes(SQUARE[None] * 255, alpha=np.full((24, 30), 255))
    rule = settle(opaque)
    assert "transparency that says nothing" in rule.notes[0]
    np.testing.assert_array_equal(rule.apply(opaque, "here"), SQUARE)


def test_one_layer_for_each_class():
    layers = Planes(np.stack([number == NESTED for number in range(3)]).astype(np.uint8))
    rule = settle(layers)
    assert rule.classes == ("0", "1", "2")
    np.testing.assert_array_equal(rule.apply(layers, "here"), NESTED)


def test_layers_over_each_other_lie_with_the_smaller_on_top():
    layers = Planes(np.stack([NESTED == 2, NESTED > 0]).astype(np.uint8) * 255)
    rule = settle(layers, classes=["background", "cup", "disc"])
    assert "24 pixels are marked by several" in rule.notes[0]
    np.testing.assert_array_equal(rule.apply(layers, "here"), np.array([0, 2, 1])[NESTED])
    with pytest.raises(InputError, match="here: the mask has 3 layers, most have 2"):
        rule.apply(Planes(np.zeros((3, 4, 4))), "here")


def test_photographs_mixed_kinds_and_wrong_numbers_of_names_are_refused():
    photograph = np.random.default_rng(0).integers(0, 256, (200, 200, 3)).astype(np.uint8)
    with pytest.raises(InputError, match="this is a picture, no mask"):
        settle(colour(photograph))
    with pytest.raises(InputError, match="most masks have 3 layers, 1 have one"):
        settle(Planes(np.zeros((3, 4, 4))), grey(SQUARE))
    with pytest.raises(InputError, match=r"1 classes are named \(a\), but masks show 2"):
        settle(grey(SQUARE * 255), classes=["a"])
    with pytest.raises(InputError, match="NaN"):
        settle(grey(np.full((4, 4), np.nan)))
    rule = settle(grey(SQUARE * 255))
    with pytest.raises(InputError, match="coloured, others are not"):
        rule.apply(colour(photograph), "here")
    with pytest.raises(InputError, match="3 layers, others have one"):
        rule.apply(Planes(np.zeros((3, 4, 4))), "here")
    with pytest.raises(InputError, match="no mask to read"):
        settle_rule(Tally())
