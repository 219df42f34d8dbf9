"""Shapes over each other, and shapes that are not sound."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from annotruth.errors import InputError
from annotruth.io.rasterise import box_ring
from annotruth.io.runs import coco_code
from annotruth.io.shapes import Box, Rings, Window, brush_pixels, coco_pixels, cvat_pixels, paint_shapes, plain_pixels

CLASSES = ("background", "cell", "wall")


def test_the_last_shape_lies_on_top() -> None:
    under, over = Rings("cell", (box_ring(0, 0, 4, 4),)), Rings("wall", (box_ring(2, 2, 4, 4),))
    mask = paint_shapes([under, over], (4, 4), CLASSES)
    assert (mask == 1).sum() == 12
    assert (mask == 2).sum() == 4


@given(arrays.arrays(np.float64, 4, elements=st.floats(-3, 12)))
def test_a_box_is_painted_as_its_ring(corners: np.ndarray) -> None:
    left, right = np.sort(corners[:2]).tolist()
    top, bottom = np.sort(corners[2:]).tolist()
    painted = []
    for shape in (Box("cell", (left, top, right, bottom)), Rings("cell", (box_ring(left, top, right, bottom),))):
        try:
            painted.append(paint_shapes([shape], (8, 9), CLASSES).tolist())
        except InputError:
            painted.append(None)
    assert painted[0] == painted[1]


def test_points_may_be_text() -> None:
    mask = paint_shapes([Rings("cell", ("1,1;3.00,1.00;3,3;1,3",))], (4, 4), CLASSES)
    assert mask.sum() == 4
    for text in ("1,1;2", "a,b;c,d;e,f", ""):
        with pytest.raises(InputError, match=r"points|polygon"):
            paint_shapes([Rings("cell", (text,))], (4, 4), CLASSES)


@pytest.mark.parametrize(
    ("unroll", "code"),
    [
        (cvat_pixels, "1, 2, 1, 2"),
        (coco_pixels, [2, 4]),
        (coco_pixels, coco_code([2, 4])),
        (plain_pixels, np.array([[0, 1, 1], [0, 1, 1]])),
    ],
)
def test_masks_lie_in_their_part_of_the_image(unroll: object, code: object) -> None:
    mask = paint_shapes([Window("cell", 1, 2, (2, 3), unroll, code)], (4, 5), CLASSES)  # type: ignore[arg-type]
    assert mask.tolist() == [[0] * 5, [0] * 5, [0, 0, 1, 1, 0], [0, 0, 1, 1, 0]]


def test_what_reaches_outside_is_refused() -> None:
    for left, top, size in ((3, 0, (2, 3)), (0, 3, (2, 3)), (-1, 0, (2, 3)), (0, 0, (0, 3))):
        with pytest.raises(InputError, match="outside the image"):
            paint_shapes([Window("cell", left, top, size, cvat_pixels, "0, 6")], (4, 5), CLASSES)
    with pytest.raises(InputError, match="a shape of cell lies outside"):
        paint_shapes([Rings("cell", (box_ring(9, 9, 12, 12),))], (4, 5), CLASSES)


def test_a_shape_smaller_than_a_pixel_marks_none() -> None:
    assert paint_shapes([Rings("cell", (box_ring(1.1, 1.1, 1.2, 1.2),))], (4, 4), CLASSES).sum() == 0


def test_bad_run_lengths_are_refused() -> None:
    for unroll, code in ((cvat_pixels, "1, x"), (cvat_pixels, "99"), (coco_pixels, [99]), (brush_pixels, [1, 2])):
        with pytest.raises(InputError):
            paint_shapes([Window("cell", 0, 0, (2, 3), unroll, code)], (4, 5), CLASSES)  # type: ignore[arg-type]
