"""Annotations with drawings of what is not there."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth import Annotations
from annotruth.errors import ContradictionWarning, InputError


@pytest.fixture
def drawn():
    positive = np.full((2, 1, 4, 4), 255, dtype=np.uint8)
    negative = positive.copy()
    positive[:, 0, 0] = 1
    negative[:, 0, 3] = 1
    return positive, negative


def test_negatives_follow_their_items(drawn):
    positive, negative = drawn
    negative[1, 0, 2] = 2
    ann = Annotations.from_masks(positive, negatives=negative)
    assert len(ann.classes) == 3
    np.testing.assert_array_equal(ann.take([1]).item_negatives(0), negative[1])
    assert not Annotations.from_masks(positive).has_negatives


@pytest.mark.parametrize("as_list", [False, True])
def test_contradictions_are_ignored_and_counted(drawn, as_list):
    positive, negative = drawn
    negative[0, 0, 0, :3] = 1
    before = positive.copy()
    if as_list:
        positive, negative = list(positive), list(negative)
    with pytest.warns(ContradictionWarning, match=r"3 pixels .*\(rater_1 3\)"):
        ann = Annotations.from_masks(positive, negatives=negative)
    np.testing.assert_array_equal(ann.item_masks(0)[0, 0], [255, 255, 255, 1])
    np.testing.assert_array_equal(ann.item_negatives(0)[0, 0], [255] * 4)
    np.testing.assert_array_equal(np.stack(positive), before)  # the user's own arrays stay as they are


def test_negatives_of_another_shape_are_refused(drawn):
    positive, negative = drawn
    with pytest.raises(InputError, match="Item item_0: positive drawings have the shape"):
        Annotations.from_masks(positive, negatives=negative[..., :3])
    with pytest.raises(InputError, match="outside the classes"):
        Annotations.from_masks(positive, negatives=np.where(negative == 1, 7, negative), classes=2)
