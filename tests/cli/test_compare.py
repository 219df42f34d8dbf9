"""annotruth compare: from cases to advice, going on where it was cut off."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from annotruth.choosing import cross_validation

QUICK = ("--methods", "majority,mean", "--folds", 2, "--epochs", 1, "--quiet")


def test_cases_are_compared_on_and_the_second_call_trains_nothing(
    annotruth: Callable, cases: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = annotruth("compare", cases, "-o", out, *QUICK)
    assert first.code == 0, first.err
    assert "Take m" in first.out
    assert "dice" in first.out
    assert {path.name for path in out.iterdir()} == {
        "compare.csv", "compare.html", "compare.json", "compare.png", "trainings",
    }  # fmt: skip

    def refuse(*_: object) -> None:
        raise AssertionError("something was trained")

    monkeypatch.setattr(cross_validation, "train", refuse)
    shutil.move(cases / "truth", cases.parent / "known")
    without = annotruth("compare", cases, "-o", out, *QUICK)
    assert without.code == 0, without.err
    assert "dice" not in without.out
    with_gold = annotruth("compare", cases, "-o", out, *QUICK, "--gold", cases.parent / "known")
    assert with_gold.code == 0, with_gold.err
    assert "dice" in json.loads((out / "compare.json").read_text())["items"]


def test_a_table_is_compared_on(annotruth: Callable, tmp_path: Path, out: Path) -> None:
    table, features, gold = (tmp_path / f"{name}.csv" for name in ("labels", "features", "gold"))
    truth = [number % 2 for number in range(12)]
    answers = [f"{i},{rater},{'no' if label else 'yes'}" for i, label in enumerate(truth) for rater in ("ann", "bob")]
    table.write_text("\n".join(["item,rater,label", *answers]))
    features.write_text("\n".join(["item,a,b", *[f"{i},{label},{1 - label}" for i, label in enumerate(truth)]]))
    gold.write_text("item,truth\n0,yes\n1,no\n")
    ended = annotruth("compare", table, "--features", features, "--gold", gold, "-o", out, *QUICK)
    assert ended.code == 0, ended.err
    assert "The truth is known of 2 items, too few to decide by." in ended.out


def test_bad_input_is_named(annotruth: Callable, cases: Path, out: Path, assert_one_paragraph: Callable) -> None:
    (out.parent / "empty").mkdir()
    for arguments, message in (
        ((cases, "--folds", 99), "99 and 12"),
        ((cases, "--methods", "majority"), "at least two"),
        ((cases, "--features", "f.csv"), "--features goes with a label table"),
        ((cases, "--gold", cases / "nowhere"), "no such file or folder"),
        ((cases, "--gold", cases / "raters"), "not a file of a known format"),
        ((cases, "--gold", out.parent / "empty"), "truth of no case"),
    ):
        ended = annotruth("compare", *arguments, "-o", out)
        assert ended.code == 2
        assert message in ended.err
        assert_one_paragraph(ended.err)
    assert not out.exists()


def test_a_table_without_pictures_is_refused(annotruth: Callable, tmp_path: Path, out: Path) -> None:
    (tmp_path / "labels.csv").write_text("item,rater,label\na,ann,1\na,bob,0\n")
    ended = annotruth("compare", tmp_path / "labels.csv", "-o", out)
    assert ended.code == 2
    assert "needs its pictures" in ended.err
