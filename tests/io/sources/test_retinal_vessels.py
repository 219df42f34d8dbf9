"""DRIVE, STARE, CHASE_DB1 and LES-AV, as they are published."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import annotruth as at
from annotruth.io import check, import_source


@pytest.mark.parametrize(
    ("key", "raters", "items"),
    [
        ("drive", ("observer_1", "observer_2"), ("01_test", "02_test")),
        ("stare", ("Hoover", "Kouznetsova"), ("im0001", "im0002")),
        ("chase", ("observer_1", "observer_2"), ("Image_01L", "Image_01R")),
    ],
)
def test_two_observers(
    request: pytest.FixtureRequest, tmp_path: Path, key: str, raters: tuple[str, ...], items: tuple[str, ...]
) -> None:
    folder = request.getfixturevalue(f"example_{key}")
    import_source(folder, tmp_path / "cases")
    loaded = at.load(tmp_path / "cases")
    assert (loaded.raters, loaded.items, loaded.classes) == (raters, items, ("background", "vessel"))
    assert loaded.images.shape == (2, 3, 16, 20)
    np.testing.assert_array_equal(loaded.masks, at.load(folder).masks)
    assert loaded.masks[0, 0].sum() == 80
    assert check(folder) == []


def test_arteries_and_veins_by_colour(example_les_av: Path) -> None:
    loaded = at.load(example_les_av)
    assert loaded.classes == ("background", "artery", "vein", "crossing", "uncertain")
    assert np.bincount(loaded.masks[0, 0].reshape(-1)).tolist() == [240, 64, 16]


def test_a_mask_without_its_photograph_is_named(example_drive: Path) -> None:
    (example_drive / "test" / "images" / "02_test.tif").unlink()
    assert {problem.case for problem in check(example_drive) if problem.severity == "fatal"} == {"02"}
