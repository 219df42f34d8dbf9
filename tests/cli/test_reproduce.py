"""``annotruth reproduce``: what it prints, what it leaves behind, how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from annotruth.experiments import EXPERIMENTS, Experiment
from annotruth.experiments.core.columns import DICE
from annotruth.experiments.core.experiment import Row
from annotruth.experiments.core.findings import above_others
from annotruth.experiments.core.task import Scale
from annotruth.experiments.data.digits import digits_task

Run = Callable[..., Any]


class Bright:
    """What is bright is a digit; nothing is learnt."""

    def __init__(self, method: str, seed: int, progress: bool) -> None:
        self.warnings_: list[str] = []

    def fit(self, annotations: Any) -> Bright:
        return self

    def predict(self, images: np.ndarray) -> np.ndarray:
        return (images[:, 0] > 0.5).astype(np.uint8)


@pytest.fixture(autouse=True)
def _a_small_table(monkeypatch: pytest.MonkeyPatch) -> None:
    small = Scale({"train": 6, "test": 4})
    experiment = Experiment(
        name="bright", title="What is bright", task=digits_task, settings={"dense": {"keep": "all"}},
        rows=(Row("mean"), Row("majority")), metrics=(DICE,), full=small, quick=small, seeds=(0,), learner=Bright,
        findings=(above_others("majority"),),
    )  # fmt: skip
    monkeypatch.setitem(EXPERIMENTS, "bright", experiment)


def test_a_table_and_what_is_added_to_it(annotruth: Run, tmp_path: Path) -> None:
    first = annotruth("reproduce", "bright", "-o", tmp_path)
    assert first.code == 0
    assert "dense, seed 0, mean: foreground Dice 0." in first.out
    assert "bright.md" in first.out.replace("\n", "")
    for trained in (tmp_path / ".bright").iterdir():
        trained.unlink()
    more = annotruth("reproduce", "bright", "-o", tmp_path, "--seeds", 2, "--extend", "--renew", "majority")
    assert more.code == 0
    assert "1 of 4 trainings were done before" in " ".join(more.out.split())
    assert [row["seeds"] for row in json.loads((tmp_path / "bright.json").read_text())["rows"]] == [[0, 1], [0, 1]]


def test_wrong_use_is_told_in_a_sentence(
    annotruth: Run, tmp_path: Path, assert_one_paragraph: Callable[[str], None]
) -> None:
    for words, told in [
        (("brihgt",), "bright"),
        (("bright", "--extend"), "there is no such table"),
        (("bright", "--data", tmp_path / "nowhere"), "no such folder"),
    ]:
        ended = annotruth("reproduce", *words, "-o", tmp_path)
        assert ended.code == 2
        assert_one_paragraph(ended.err)
        assert told in " ".join(ended.err.split())
