"""What adapters of published layouts share."""

from __future__ import annotations

from pathlib import Path

import pytest

from annotruth.errors import InputError
from annotruth.io.layouts import find_named, has_name, one_root, peek_names


def test_a_look_into_a_folder_is_short_and_goes_near_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("annotruth.io.layouts.MAX_NAMES", 2)
    for name in ("c.txt", "b.txt", "a.txt", "in/d.txt", ".hidden/e.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert peek_names(tmp_path) == ["a.txt", "b.txt", "in/d.txt"]
    assert peek_names(tmp_path / "nowhere") == []


def test_names_are_fitted_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "case1.png").touch()
    assert has_name(tmp_path, r"case\d\.png")
    assert has_name(tmp_path, r"in/case\d\.png")
    assert not has_name(tmp_path, r"ase\d\.png")
    assert not has_name(tmp_path / "in" / "case1.png", "case1.png")
    assert [match[1] for match in find_named(tmp_path, r"case(\d)\.png").values()] == ["1"]


def test_several_data_sets_are_refused(tmp_path: Path) -> None:
    one_root(tmp_path, [tmp_path / "a", tmp_path / "a"], "sets")
    with pytest.raises(InputError, match=r"several sets: a, b\. Name the folder of one"):
        one_root(tmp_path, [tmp_path / "a", tmp_path / "b"], "sets")
