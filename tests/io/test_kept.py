"""Masks kept in memory while a job runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from annotruth.io.kept import keeping_masks, read_once


class Files:
    """Files that know how often they were read."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(self, path: Path) -> np.ndarray:
        self.read.append(path.name)
        return np.arange(100, dtype=np.uint8)


@pytest.mark.parametrize(("limit", "read"), [(None, "ab"), (250, "ab"), (150, "abb"), (0, "abab")])
def test_files_are_read_again_only_beyond_the_limit(limit: int | None, read: str) -> None:
    files = Files()
    with keeping_masks(limit):
        for name in "abab":
            read_once(Path(name), files)
    assert "".join(files.read) == read


def test_nothing_is_kept_outside_and_afterwards() -> None:
    files = Files()
    read_once(Path("a"), files)
    with keeping_masks():
        read_once(Path("a"), files)
    read_once(Path("a"), files)
    assert files.read == ["a", "a", "a"]


def test_what_is_kept_cannot_be_written_to() -> None:
    with keeping_masks():
        mask = read_once(Path("a"), Files())
    with pytest.raises(ValueError, match="read-only"):
        mask[0] = 1


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("value", [0, 1, 255])
def test_masks_of_two_values_are_kept_in_bits(order, value) -> None:
    drawn = np.asarray(np.random.default_rng(0).integers(0, 2, (3, 5, 7)) * value, dtype=np.uint8, order=order)
    reads = []

    def read(path: Path) -> np.ndarray:
        reads.append(path)
        return drawn.copy(order="K")

    with keeping_masks(-(-drawn.size // 8)):
        for _ in range(3):
            mask = read_once(Path("a"), read)
            np.testing.assert_array_equal(mask, drawn)
            assert mask.strides == drawn.strides
    assert len(reads) == 1
