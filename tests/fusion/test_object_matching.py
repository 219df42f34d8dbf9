"""Overlaps against counted pixels, assignments against trying all, groups against known things."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from annotruth.data import Objects
from annotruth.errors import InputError
from annotruth.fusion.object_matching import box_iou, group_objects, match, overlaps

corner = st.integers(0, 12)
box = st.tuples(corner, corner, corner, corner).map(
    lambda c: [min(c[0], c[2]), min(c[1], c[3]), max(c[0], c[2]), max(c[1], c[3])]
)


def painted(one: list[int]) -> np.ndarray:
    mask = np.zeros((12, 12), dtype=bool)
    mask[one[1] : one[3], one[0] : one[2]] = True
    return mask


@given(box, box)
def test_overlap_of_boxes_is_that_of_their_pixels(one: list[int], other: list[int]) -> None:
    first, second = painted(one), painted(other)
    either = (first | second).sum()
    expected = (first & second).sum() / either if either else 0
    assert box_iou(np.array([one]), np.array([other]))[0, 0] == pytest.approx(expected)


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 4)), elements=st.floats(0, 1)))
def test_no_other_assignment_has_more_in_common(overlap: np.ndarray) -> None:
    wide = overlap if overlap.shape[0] <= overlap.shape[1] else overlap.T
    allowed = np.where(wide >= 0.3, wide, 0)
    best = max(
        sum(allowed[row, column] for row, column in enumerate(order))
        for order in permutations(range(wide.shape[1]), wide.shape[0])
    )
    pairs = match(overlap, 0.3)
    assert sum(overlap[pair] for pair in pairs) == pytest.approx(best)
    assert all(overlap[pair] >= 0.3 for pair in pairs)


def make(rows: list[tuple[str, str, list[float]]], areas: tuple[np.ndarray | None, ...] | None = None) -> Objects:
    frame = pd.DataFrame(
        [{"item": item, "rater": rater, "label": "x", **dict(zip(("x1", "y1", "x2", "y2"), place))}
         for item, rater, place in rows]
    )  # fmt: skip
    objects = Objects.from_table(frame)
    if areas is None:
        return objects
    return Objects(
        objects.items, objects.raters, objects.classes, objects.item, objects.rater, objects.label, objects.boxes,
        objects.labelled, areas,
    )  # fmt: skip


def test_pixels_count_where_they_are_known() -> None:
    triangle = np.tril(np.ones((10, 10), dtype=bool))
    objects = make([("a", "ann", [0, 0, 10, 10]), ("a", "bob", [0, 0, 10, 10])], (triangle, triangle.T))
    assert overlaps(objects, np.array([0]), np.array([1]))[0, 0] == pytest.approx(10 / 100)
    shifted = make([("a", "ann", [0, 0, 10, 10]), ("a", "bob", [3, 2, 13, 12])], (triangle, triangle))
    first, second = np.zeros((12, 13), dtype=bool), np.zeros((12, 13), dtype=bool)
    first[:10, :10], second[2:, 3:] = triangle, triangle
    assert overlaps(shifted, np.array([0]), np.array([1]))[0, 0] == pytest.approx(
        (first & second).sum() / (first | second).sum()
    )


def test_points_that_are_near_are_the_same() -> None:
    objects = make([("a", "ann", [5, 5, 5, 5]), ("a", "bob", [8, 5, 8, 5]), ("a", "bob", [30, 5, 30, 5])])
    np.testing.assert_array_equal(group_objects(objects, max_distance=10), [0, 0, 1])
    np.testing.assert_array_equal(group_objects(objects, max_distance=5), [0, 1, 2])


def test_things_are_found_again_whoever_marked_them_in_whatever_order() -> None:
    rng = np.random.default_rng(0)
    rows, things = [], []
    for item in range(6):
        for thing in range(8):
            corner = np.array([40 * (thing % 4), 40 * (thing // 4)])
            for rater in "abcd":
                if rng.random() < 0.8:
                    low = corner + rng.integers(-1, 2, 2)
                    rows.append((f"i{item}", rater, [*low, *(low + 20 + rng.integers(-2, 3, 2))]))
                    things.append((item, thing))
    order = rng.permutation(len(rows))
    groups = group_objects(make([rows[number] for number in order]))
    assert len(set(groups)) == len(set(things))
    assert len(set(zip(groups, [things[number] for number in order]))) == len(set(things))


def test_a_rater_has_one_object_in_a_group_and_thresholds_are_checked() -> None:
    objects = make([("a", "ann", [0, 0, 10, 10]), ("a", "ann", [0, 0, 10, 11]), ("a", "bob", [0, 0, 10, 10])])
    groups = group_objects(objects)
    assert groups[0] != groups[1]
    assert groups[2] == groups[0]
    for wrong in ({"min_overlap": 0.0}, {"min_overlap": 1.5}, {"max_distance": 0.0}):
        with pytest.raises(InputError):
            group_objects(objects, **wrong)
