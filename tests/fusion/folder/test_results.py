"""What a fusion leaves: files as the inputs were, raters in figures, and notes."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
import tifffile
from PIL import Image

import annotruth as at
from annotruth.errors import InputError
from annotruth.fusion.checks import noisy_masks
from annotruth.fusion.folder import fuse
from annotruth.fusion.folder.results import write_raters
from annotruth.io import write_case_folder

RATERS = ["ann", "bob", "cy", "di", "ed"]

Read = Callable[[Path], dict[str, Any]]

CASES = ["case_0", "case_1", "case_2"]


def test_format_and_geometry_are_the_inputs(tmp_path: Path, out: Path) -> None:
    affine = np.diag([0.5, 0.5, 3.0, 1.0])
    masks, _ = noisy_masks((8, 9, 4), 1)
    for rater, mask in zip(RATERS, masks[0]):
        (tmp_path / "cases" / "raters" / rater).mkdir(parents=True)
        nibabel.save(nibabel.Nifti1Image(mask, affine), tmp_path / "cases" / "raters" / rater / "knee.nii.gz")
    fuse(tmp_path / "cases", out)
    labels, posterior = (nibabel.load(out / kind / "knee.nii.gz") for kind in ("labels", "probabilities"))
    np.testing.assert_array_equal(labels.affine, affine)
    np.testing.assert_array_equal(posterior.affine, affine)
    assert (labels.shape, posterior.shape) == ((8, 9, 4), (8, 9, 4, 3))
    assert labels.get_data_dtype() == np.uint8
    assert posterior.get_data_dtype() == np.float32


def test_pixel_values_of_the_files_are_kept(note: Read, tmp_path: Path, out: Path) -> None:
    folder = tmp_path / "cases"
    for number, rater in enumerate(RATERS):
        mask = np.zeros((10, 12), dtype=np.uint8)
        mask[2:6, 3 + number // 2 : 9] = 255
        (folder / "raters" / rater).mkdir(parents=True)
        Image.fromarray(mask).save(folder / "raters" / rater / "a.png")
    (folder / "dataset.json").write_text('{"classes": {"background": 0, "lesion": 255}}')
    fuse(folder, out)
    assert set(np.unique(Image.open(out / "labels" / "a.png"))) == {0, 255}
    assert tifffile.imread(out / "probabilities" / "a.tiff").shape == (2, 10, 12)
    assert note(out)["pixel_values"] == {"background": 0, "lesion": 255}


def test_raters_in_figures(cases: Path, out: Path) -> None:
    (cases / "raters" / "ed" / "case_0.npy").unlink()
    fused = fuse(cases, out).fused
    rows = list(csv.DictReader((out / "raters.csv").open()))
    assert [row["rater"] for row in rows] == RATERS
    low, high = fused.skill_interval()
    for number, row in enumerate(rows):
        assert float(row["skill"]) == pytest.approx(fused.skill_[number], rel=1e-5)
        assert float(row["skill low"]) == pytest.approx(low[number], rel=1e-5)
        assert float(row["skill high"]) == pytest.approx(high[number], rel=1e-5)
        assert float(row["recall of sea"]) == pytest.approx(fused.confusion_[number, 1, 1], rel=1e-5)
        assert float(row["true sea called land"]) == pytest.approx(fused.confusion_[number, 1, 2], rel=1e-5)
    assert [row["labelled cases"] for row in rows] == ["3", "3", "3", "3", "2"]
    assert [row["labelled pixels"] for row in rows] == ["1440"] * 4 + ["960"]


def test_two_classes_have_sensitivity_and_specificity(tmp_path: Path, out: Path) -> None:
    masks = noisy_masks((24, 20), 2)[0] % 2
    write_case_folder(tmp_path / "cases", at.Annotations.from_masks(masks, raters=RATERS))
    fused = fuse(tmp_path / "cases", out).fused
    row = next(csv.DictReader((out / "raters.csv").open()))
    assert float(row["sensitivity"]) == pytest.approx(fused.confusion_[0, 1, 1], rel=1e-5)
    assert float(row["specificity"]) == pytest.approx(fused.confusion_[0, 0, 0], rel=1e-5)
    assert float(row["sensitivity low"]) < float(row["sensitivity"]) < float(row["sensitivity high"])


def test_what_is_noted(note: Read, cases: Path, out: Path) -> None:
    fuse(cases, out, options={"max_iter": 1})
    content = note(out)
    assert content["annotruth"] == at.__version__
    assert content["finished"]
    assert (content["method"], content["settings"]["max_iter"], content["settings"]["scope"]) == (
        "staple",
        1,
        "dataset",
    )
    assert (content["classes"], content["raters"], content["cases"]) == (["sky", "sea", "land"], RATERS, CASES)
    assert "did not settle" in content["warnings"][0]
    assert content["seconds"] > 0
    assert content["set_aside"] == content["identifiability"] == []


def test_an_earlier_fusion_is_replaced_whole(note: Read, cases: Path, out: Path) -> None:
    fuse(cases, out)
    with pytest.raises(InputError, match="already holds files"):
        fuse(cases, out)
    (out / "labels" / "mine.npy").write_bytes(b"the user's")
    for rater in RATERS:
        (cases / "raters" / rater / "case_1.npy").unlink()
    fuse(cases, out, "majority", overwrite=True)
    assert sorted(path.name for path in (out / "labels").iterdir()) == ["case_0.npy", "case_2.npy", "mine.npy"]
    assert sorted(path.name for path in (out / "probabilities").iterdir()) == ["case_0.npy", "case_2.npy"]
    assert note(out)["method"] == "majority"


def test_a_fusion_cut_off_says_so_and_can_be_done_again(
    note: Read, cases: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(stage: str, done: int, total: int) -> None:
        if (stage, done) == ("Writing", 1):
            (out / "labels" / ".annotruth-half.npy").write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fuse(cases, out, progress=cut)
    assert note(out) == {"finished": False, "cases": CASES}
    fuse(cases, out, overwrite=True)
    assert note(out)["finished"]
    assert sorted(path.name for path in (out / "labels").iterdir()) == [f"{name}.npy" for name in CASES]


def test_raters_that_spreadsheets_would_run_are_neutralised(tmp_path: Path) -> None:
    answers = at.Annotations.from_answers(np.array([[0, 0], [1, 1]]), raters=["=HYPERLINK(1)", "-1"])
    fused = at.MajorityVote().fit(answers)
    path = write_raters(tmp_path / "raters.csv", fused, {"labelled items": fused.labelled_counts_})
    assert [line.split(",")[0] for line in path.read_text().splitlines()[1:]] == ["'=HYPERLINK(1)", "-1"]
