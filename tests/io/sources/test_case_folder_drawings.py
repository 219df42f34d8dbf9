"""Coarse drawings of what is there and what is not, in every format of masks."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth.errors import ContradictionWarning, InputError
from annotruth.io import check, load, write_case_folder

UNMARKED = 255


@pytest.fixture
def strokes():
    """A positive drawing with strokes of both classes, and a negative one elsewhere."""
    positive, negative = np.full((2, 8, 9), UNMARKED, dtype=np.uint8)
    positive[1, 1:4] = 1
    positive[6, :] = 0
    negative[3, 2:8] = 1
    return positive, negative


@pytest.mark.parametrize("suffix", ["png", "tiff", "npy", "nii.gz"])
def test_both_kinds_are_read_in_every_format(tmp_path, put, describe, strokes, suffix):
    positive, negative = strokes
    put(tmp_path / f"images/a.{suffix}", np.zeros((8, 9), np.uint8))
    put(tmp_path / f"images/b.{suffix}", np.zeros((8, 9), np.uint8))
    put(tmp_path / f"raters/ann/a.{suffix}", positive)
    put(tmp_path / f"raters/ann.negative/a.{suffix}", negative)
    put(tmp_path / f"raters/bob.negative/a.{suffix}", negative)
    describe(tmp_path, classes=["background", "lesion"])
    ann = load(tmp_path)
    assert ann.raters == ("ann", "bob")
    assert ann.has_negatives
    np.testing.assert_array_equal(ann.item_masks(0), [positive, np.full_like(positive, UNMARKED)])
    np.testing.assert_array_equal(ann.item_negatives(0), [negative, negative])
    assert (ann.item_negatives(1) == UNMARKED).all()
    assert [str(problem.message) for problem in check(tmp_path)] == ["no rater labelled this image."]
    part = ann.take([1, 0])
    np.testing.assert_array_equal(part.item_negatives(1), [negative, negative])


def test_one_file_with_codes(tmp_path, put, describe, strokes):
    positive, negative = strokes
    put(tmp_path / "images/a.png", np.zeros((8, 9), np.uint8))
    put(tmp_path / "raters/ann/a.png", np.where(negative == 1, 101, positive).astype(np.uint8))
    describe(tmp_path, classes=["background", "lesion"], negative={"lesion": 101})
    ann = load(tmp_path)
    np.testing.assert_array_equal(ann.item_masks(0)[0], positive)
    np.testing.assert_array_equal(ann.item_negatives(0)[0], negative)


@pytest.mark.parametrize(
    ("negative", "words"),
    [({"tumour": 101}, "which classes does not name"), ({"lesion": 1}, "of its own"), ({"lesion": 255}, "of its own")],
)
def test_bad_codes_are_refused(tmp_path, put, describe, strokes, negative, words):
    put(tmp_path / "raters/ann/a.png", strokes[0])
    describe(tmp_path, classes=["background", "lesion"], negative=negative)
    with pytest.raises(InputError, match=words):
        load(tmp_path)


def test_what_is_drawn_both_ways_is_counted_reported_and_ignored(tmp_path, put, describe, strokes):
    positive, negative = strokes
    negative[1, 2:5] = 1
    put(tmp_path / "raters/ann/a.png", positive)
    put(tmp_path / "raters/ann.negative/a.png", negative)
    describe(tmp_path, classes=["background", "lesion"])
    (problem,) = check(tmp_path)
    assert (problem.severity, problem.case, problem.rater) == ("warning", "a", "ann")
    assert problem.message.startswith("2 pixels are drawn both")
    ann = load(tmp_path)
    with pytest.warns(ContradictionWarning, match="2 pixels"):
        said_not = ann.item_negatives(0)
    assert (ann.item_masks(0)[0, 1, 2:4] == UNMARKED).all()
    assert (said_not[0, 1, 2:4] == UNMARKED).all()
    assert said_not[0, 1, 4] == 1


def test_drawings_outside_the_image_are_refused(tmp_path, put, strokes):
    positive, negative = strokes
    put(tmp_path / "images/a.png", np.zeros((8, 9), np.uint8))
    put(tmp_path / "raters/ann/a.png", positive)
    put(tmp_path / "raters/ann.negative/a.png", np.pad(negative, 2, constant_values=1))
    with pytest.raises(InputError, match=r"ann.negative.*12×13 but the image has 8×9"):
        load(tmp_path)


def test_check_tells_of_suspicious_drawings(tmp_path, put, describe, strokes):
    positive, negative = strokes
    for case in "ab":
        put(tmp_path / f"images/{case}.png", np.zeros((8, 9), np.uint8))
        put(tmp_path / f"raters/ann/{case}.png", positive)
    put(tmp_path / "raters/ann.negative/a.png", np.where(negative == UNMARKED, 0, negative).astype(np.uint8))
    put(tmp_path / "raters/ann.negative/b.png", np.full_like(negative, UNMARKED))
    describe(tmp_path, classes=["background", "lesion", "vessel"])
    messages = {problem.message for problem in check(tmp_path)}
    assert "the negative drawing says of every pixel that it is not some class." in messages
    assert "the negative drawing is empty." in messages
    assert "no mask holds the classes vessel." in messages


def test_written_and_read_back(tmp_path, put, describe, strokes):
    positive, negative = strokes
    put(tmp_path / "in/raters/ann/a.npy", positive)
    put(tmp_path / "in/raters/ann.negative/a.npy", negative)
    describe(tmp_path / "in", classes=["background", "lesion"])
    again = load(write_case_folder(tmp_path / "out", load(tmp_path / "in")))
    np.testing.assert_array_equal(again.item_masks(0)[0], positive)
    np.testing.assert_array_equal(again.item_negatives(0)[0], negative)
