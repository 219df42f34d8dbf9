"""ISBI MS 2015: two raters, four channels, patients kept whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import annotruth as at
from annotruth.io import check, import_source


def test_visits_channels_and_raters(example_isbi_ms: Path, tmp_path: Path) -> None:
    import_source(example_isbi_ms, tmp_path / "cases")
    loaded = at.load(tmp_path / "cases")
    assert (loaded.items, loaded.raters) == (("training01_01", "training01_02"), ("rater_1", "rater_2"))
    assert loaded.groups == ("training01", "training01")
    assert loaded.images[0].mean(axis=(1, 2, 3)).tolist() == [0, 1, 2, 3]
    assert loaded.spacing(0) == (1.0, 1.0, 2.0)
    np.testing.assert_array_equal(loaded.masks, at.load(example_isbi_ms).masks)


def test_a_missing_channel_is_named(example_isbi_ms: Path) -> None:
    (example_isbi_ms / "training01" / "preprocessed" / "training01_02_pd_pp.nii").unlink()
    assert any("lacks pd" in problem.message for problem in check(example_isbi_ms))
