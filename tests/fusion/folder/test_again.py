"""Fusions fitted again from their folders, and reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.fusion.checks import noisy_masks
from annotruth.fusion.folder import fuse
from annotruth.fusion.folder.again import fuse_again, is_fusion
from annotruth.io import write_case_folder
from annotruth.io.tables import write_table


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 60)
    answers = np.stack([np.where(rng.random(60) < skill, truth, 1 - truth) for skill in (0.9, 0.9, 0.8, 0.6)], axis=1)
    return write_table(tmp_path / "answers.csv", at.Annotations.from_answers(answers, classes=["cat", "dog"]))


@pytest.mark.parametrize(
    ("method", "options"), [("dawid-skene", {"one_coin": True}), ("auto", None), ("majority", None)]
)
def test_what_was_learnt_from_a_table_is_learnt_again(
    table: Path, tmp_path: Path, method: str, options: dict[str, Any] | None
) -> None:
    first = fuse(table, tmp_path / "fused", method, options=options).fused
    again, annotations, source, warned = fuse_again(tmp_path / "fused")
    assert (source, annotations.items, warned) == (table, first.items_, [])
    np.testing.assert_allclose(again.predict_proba(), first.predict_proba())


def test_masks_with_known_truth_and_moved_cases(tmp_path: Path) -> None:
    masks, truth = noisy_masks(n_items=4)
    cases = write_case_folder(tmp_path / "cases", at.Annotations.from_masks(masks, classes=3, truth=truth))
    first = fuse(cases, tmp_path / "fused", "staple", gold=cases / "truth").fused
    cases.rename(tmp_path / "moved")
    said = json.loads((tmp_path / "fused" / "fusion.json").read_text())
    said["gold"] = str(tmp_path / "moved" / "truth")
    (tmp_path / "fused" / "fusion.json").write_text(json.dumps(said))
    again, annotations, _, _ = fuse_again(tmp_path / "fused", tmp_path / "moved")
    np.testing.assert_array_equal(annotations.item_masks(0), masks[0])
    np.testing.assert_allclose(again.confusion_, first.confusion_)


def test_answers_given_twice_are_taken_as_they_were(table: Path, tmp_path: Path) -> None:
    with table.open("a") as file:
        file.write('"item_0","rater_1","cat"\n"item_0","rater_1","dog"\n')
    first = fuse(table, tmp_path / "fused", "dawid-skene", duplicates="keep-last").fused
    np.testing.assert_allclose(fuse_again(tmp_path / "fused")[0].predict_proba(), first.predict_proba())


def test_the_command(annotruth: Callable[..., Any], table: Path, tmp_path: Path) -> None:
    assert annotruth("fuse", table, "-o", tmp_path / "fused", "--method", "dawid-skene").code == 0
    ended = annotruth("report", tmp_path / "fused", "--raters", tmp_path / "pages")
    assert ended.code == 0, ended.err
    assert "Items most likely mislabelled" in (tmp_path / "fused" / "report.html").read_text(encoding="utf-8")
    assert len(list((tmp_path / "pages").iterdir())) == 4


def test_fusions_that_cannot_be_reported_say_so(table: Path, tmp_path: Path) -> None:
    assert not is_fusion(tmp_path)
    fuse(table, tmp_path / "fused", "majority")
    path = tmp_path / "fused" / "fusion.json"
    said = json.loads(path.read_text())
    for change, message in (
        ({"finished": False}, "was not finished"),
        ({"settings": None}, "is damaged"),
        ({"method": "bradley-terry"}, "fuses no classes"),
        ({"source": str(tmp_path / "gone.csv")}, "no longer at .* with --cases"),
    ):
        path.write_text(json.dumps({**said, **change}))
        with pytest.raises(InputError, match=message):
            fuse_again(tmp_path / "fused")
