"""Annotations know how far apart pixels lie, where somebody told, and keep it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from annotruth import Annotations
from annotruth.errors import InputError

MASKS = np.zeros((3, 2, 8, 6, 4), dtype=np.uint8)


def test_nobody_told():
    assert Annotations.from_masks(MASKS).spacing(0) is None
    assert Annotations.from_answers(np.array([[0, 1]])).spacing(0) is None


@pytest.mark.parametrize("spacing", [(1, 0.5, 3), [1, 0.5, 3], np.array([1, 0.5, 3])])
def test_one_for_all(spacing):
    found = Annotations.from_masks(MASKS, spacing=spacing)
    assert [found.spacing(index) for index in range(3)] == [(1.0, 0.5, 3.0)] * 3
    assert all(isinstance(step, float) for step in found.spacing(0))


def test_one_per_item():
    found = Annotations.from_masks(MASKS, spacing=[(1, 1, 1), None, (2, 2, 5)])
    assert [found.spacing(index) for index in range(3)] == [(1, 1, 1), None, (2, 2, 5)]


def test_it_is_kept():
    found = Annotations.from_masks(MASKS, spacing=[(1, 1, 1), None, (2, 2, 5)])
    assert [found.take([2, 0]).spacing(index) for index in (0, 1)] == [(2, 2, 5), (1, 1, 1)]
    parts = found.split([0.5, 0.5], seed=3)
    told = {item: part.spacing(index) for part in parts for index, item in enumerate(part.items)}
    assert told == {"item_0": (1, 1, 1), "item_1": None, "item_2": (2, 2, 5)}
    assert found.with_truth(MASKS[:, 0]).spacing(2) == (2, 2, 5)
    assert found.with_images(np.zeros((3, 1, 8, 6, 4))).spacing(2) == (2, 2, 5)
    assert pickle.loads(pickle.dumps(found)).spacing(2) == (2, 2, 5)


@pytest.mark.parametrize(
    ("spacing", "message"),
    [
        ((1, 1), r"Item item_0: the spacing \(1\.0, 1\.0\) has 2 numbers, but there are 3 spatial axes"),
        ((), "has 0 numbers, but there are 3"),
        ((1, 1, 0), r"Item item_0: the spacing .* must be positive and finite, in mm"),
        ((1, -1, 1), "must be positive and finite"),
        ((1, np.nan, 1), "must be positive and finite"),
        ((1, 1, np.inf), "must be positive and finite"),
        (1.5, "one number of mm per spatial axis, not 1.5"),
        ("mm", "one number of mm per spatial axis"),
        ([(1, 1, 1), (1, 1, "x"), (1, 1, 1)], "Item item_1: the spacing is one number of mm per spatial axis"),
        ([(1, 1, 1), (1, 1, 1), (1, 1)], r"Item item_2: the spacing \(1\.0, 1\.0\) has 2 numbers"),
        ([(1, 1, 1), (1, 1, 1)], "3 items but 2 spacing"),
    ],
)
def test_what_is_no_spacing(spacing, message):
    with pytest.raises(InputError, match=message):
        Annotations.from_masks(MASKS, spacing=spacing)
