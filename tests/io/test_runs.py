"""Run lengths, against codes that pycocotools and the Label Studio SDK wrote, and back."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from annotruth.errors import InputError
from annotruth.io.runs import (
    coco_code,
    coco_counts,
    label_studio_code,
    label_studio_mask,
    roll_counts,
    unroll_counts,
)

MASK = np.zeros((7, 9), dtype=bool)
MASK[1:5, 2:7] = True
MASK[3, 4] = False
MASK[6, 8] = True
COCO = "?4300NNO2300<M"  # of pycocotools 2.0.11
BRUSH = [
    0, 0, 0, 252, 57, 27, 254, 43, 0, 194, 127, 247, 192, 48, 159, 253, 240, 9, 255, 227, 0, 159, 254, 248, 6, 19, 255,
    201, 96, 17, 255, 128,
]  # of label-studio-sdk 2.1.2  # fmt: skip

masks = arrays.arrays(bool, arrays.array_shapes(min_dims=2, max_dims=2, max_side=12))


def test_codes_of_the_tools_own_libraries_are_read() -> None:
    np.testing.assert_array_equal(unroll_counts(coco_counts(COCO), MASK.shape, order="F"), MASK)
    np.testing.assert_array_equal(label_studio_mask(BRUSH, MASK.shape), MASK)
    assert coco_code(roll_counts(MASK, order="F")) == COCO


def test_every_code_is_read_by_the_library_itself() -> None:
    reference = pytest.importorskip("pycocotools.mask", reason="pycocotools is not installed")
    rng = np.random.default_rng(0)
    for share in (0.0, 0.1, 0.5, 1.0):
        mask = rng.random((70, 50)) < share
        code = coco_code(roll_counts(mask, order="F"))
        np.testing.assert_array_equal(reference.decode({"size": [70, 50], "counts": code.encode()}), mask)


@given(masks)
def test_every_mask_comes_back(mask: np.ndarray) -> None:
    for order in ("C", "F"):
        np.testing.assert_array_equal(unroll_counts(roll_counts(mask, order), mask.shape, order), mask)
    np.testing.assert_array_equal(coco_counts(coco_code(roll_counts(mask))), roll_counts(mask))
    np.testing.assert_array_equal(label_studio_mask(label_studio_code(mask), mask.shape), mask)


def test_single_values_between_runs_are_read() -> None:
    """Label Studio's own editor writes them; two pixels, the first marked: a stretch of eight values."""
    bits = f"{8:032b}" + f"{7:05b}" + "".join(f"{size - 1:04b}" for size in (3, 4, 8, 16)) + "000" + f"{7:03b}"
    bits += "11111111" * 4 + "00000000" * 4
    bits += "0" * (-len(bits) % 8)
    code = [int(bits[start : start + 8], 2) for start in range(0, len(bits), 8)]
    assert label_studio_mask(code, (1, 2)).tolist() == [[True, False]]


@pytest.mark.parametrize("counts", [[1, -2], [0.5, 1.0], [10**30], [7, 10**18], [5, 5, 5], [5, 5]])
def test_lengths_that_cannot_be_are_refused_before_they_are_unrolled(counts: list[int]) -> None:
    with pytest.raises(InputError, match="run lengths"):
        unroll_counts(counts, (3, 4))


def test_broken_codes_are_refused() -> None:
    for code in ("?4300NNO2300<o", "\x01", "oooooooooooooooooooo"):
        with pytest.raises(InputError, match="run lengths"):
            coco_counts(code)
    for code in (BRUSH[:20], [], [300], ["x"], [255] * 40):
        with pytest.raises(InputError, match="a brush mask"):
            label_studio_mask(code, MASK.shape)
    with pytest.raises(InputError, match="252 values, not 400"):
        label_studio_mask(BRUSH, (10, 10))


@given(st.binary(min_size=8, max_size=60))
def test_whatever_the_bytes_nothing_but_an_input_error_comes_out(tail: bytes) -> None:
    with suppress(InputError):
        label_studio_mask(bytes([0, 0, 0, 252]) + tail, MASK.shape)
