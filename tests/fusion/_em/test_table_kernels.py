"""The compiled loops that sort answers do as those in NumPy, and as zlib."""

from __future__ import annotations

import numpy as np

from annotruth.fusion._em import few, table_kernels


def test_names_are_hashed_as_zlib_does() -> None:
    text = np.frombuffer("a rater's näme".encode(), dtype=np.uint8)
    offsets = np.array([0, 0, 1, 7, len(text)], dtype=np.int32)
    np.testing.assert_array_equal(table_kernels.hash_names(offsets, text), few.hash_names(offsets, text))


def test_answers_are_sorted_by_item_and_rater_and_keep_their_order() -> None:
    rng = np.random.default_rng(0)
    item = rng.integers(0, 20, 500).astype(np.int32)
    item[:100] = 7  # more than are sorted one by one
    rater, label = rng.integers(0, 9, 500).astype(np.int32), np.arange(500, dtype=np.int16)
    for found, wanted in zip(
        table_kernels.group_answers(item, rater, label, 20), few.group_answers(item, rater, label, 20)
    ):
        np.testing.assert_array_equal(found, wanted)
