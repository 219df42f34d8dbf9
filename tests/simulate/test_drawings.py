"""Simulated coarse drawings keep to what they mark, have the size asked for, and are repeatable."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from annotruth.errors import ContradictionWarning, InputError
from annotruth.simulate import simulate_boxes, simulate_drawings

RATIOS = (1.0, 0.8, 0.5, 0.3, 0.01)
truths = hnp.arrays(np.uint8, (1, 12, 14), elements=st.sampled_from([0, 0, 1, 2, 255]))


@given(truths, st.sampled_from(RATIOS), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_careful_drawings_never_leave_what_they_mark(truth, ratio, seed):
    drawn = simulate_drawings(truth, positive=ratio, negative=ratio, strength=0, n_classes=3, seed=seed)
    positive, negative = drawn.masks[0, 0], drawn.negatives[0, 0]
    marked = positive != 255
    np.testing.assert_array_equal(positive[marked], truth[0][marked])
    assert not (negative == truth[0])[negative != 255].any()
    assert (positive[truth[0] == 255] == 255).all()
    assert (negative[truth[0] == 255] == 255).all()


@given(hnp.arrays(bool, (1, 12, 14)), st.sampled_from(RATIOS), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_the_share_of_pixels_is_as_asked(region, ratio, seed):
    truth = region.astype(np.uint8)
    drawn = simulate_drawings(truth, positive=ratio, negative=ratio, strength=0, seed=seed)
    for drawing, area in ((drawn.masks, int(truth.sum())), (drawn.negatives, int((1 - truth).sum()))):
        assert (drawing == 1).sum() == (max(1, round(ratio * area)) if area else 0)


@pytest.mark.parametrize("shape", [(24, 24), (12, 13, 14)])
def test_careless_drawings_err_both_ways(shape):
    truth = np.zeros((4, *shape), dtype=np.uint8)
    truth[(slice(None), slice(2, 11), *[slice(4, 8)] * (len(shape) - 1))] = 1
    drawn = simulate_drawings(truth, strength=1, raters=["ann", "bob"])
    assert drawn.masks.shape == (4, 2, *shape)
    assert ((drawn.masks[:, 0] == 1) & (truth == 0)).any()
    assert ((drawn.masks[:, 0] == 255) & (truth == 1)).any()
    assert ((drawn.negatives[:, 0] == 1) & (truth == 1)).any()
    assert (drawn.masks[:, 0] != drawn.masks[:, 1]).any()
    with pytest.warns(ContradictionWarning):
        ann = drawn.annotations(classes=["background", "object"])
    assert ann.raters == ("ann", "bob")


def test_a_smaller_ratio_is_a_part_of_a_larger_one():
    truth = np.zeros((3, 20, 20), dtype=np.uint8)
    truth[:, 5:15, 4:12] = 1
    areas = [simulate_drawings(truth, positive=ratio, negative=None, seed=4).masks == 1 for ratio in RATIOS]
    for larger, smaller in pairwise(areas):
        assert not (smaller & ~larger).any()


def test_items_do_not_depend_on_each_other():
    truth = np.zeros((3, 16, 16), dtype=np.uint8)
    truth[:, 4:12, 4:12] = 1
    whole, first = simulate_drawings(truth, seed=1), simulate_drawings(truth[:1], seed=1)
    np.testing.assert_array_equal(whole.masks[:1], first.masks)
    np.testing.assert_array_equal(whole.negatives[:1], first.negatives)


def test_one_kind_only():
    truth = np.eye(8, dtype=np.uint8)[None]
    assert simulate_drawings(truth, negative=None).negatives is None
    assert (simulate_drawings(truth, positive=None).masks == 255).all()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"positive": 0.0}, "above 0"),
        ({"negative": 1.5}, "at most 1"),
        ({"positive": None, "negative": None}, "Nothing is drawn"),
        ({"strength": -1.0}, "strength"),
        ({"raters": 0}, "Nothing is drawn"),
    ],
)
def test_wrong_use_is_refused(wrong, words):
    with pytest.raises(InputError, match=words):
        simulate_drawings(np.eye(8, dtype=np.uint8)[None], **wrong)


@given(truths)
@settings(max_examples=20, deadline=None)
def test_boxes_cover_their_objects(truth):
    boxes = simulate_boxes(truth, n_classes=3).masks[0, 0]
    assert not ((boxes == 0) & (truth[0] > 0)).any()
    assert ((boxes == 255) == (truth[0] == 255)).all()
