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
        return np.zeros(100, dtype=np.uint8)


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
