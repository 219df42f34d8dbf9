"""Toloka: assignments with golden tasks, and what was not accepted."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.io import check, import_source


def test_answers_golden_tasks_and_times(example_toloka: Path, tmp_path: Path) -> None:
    imported = import_source(example_toloka, tmp_path / "out")
    assert imported.raters == {"w1": 2, "w2": 2}
    assert imported.notes[1] == "The answer is known of 1 items (GOLDEN:result)."
    loaded = at.load(tmp_path / "out")
    assert loaded.items == ("1.jpg", "2.jpg")
    assert [loaded.classes[number] if number >= 0 else None for number in loaded.truth] == [None, "dog"]
    assert pd.read_csv(tmp_path / "out" / "labels.csv")["submitted"][3] == "2020-01-06T10:03:09"


def test_what_was_not_accepted_is_left_out(example_toloka: Path) -> None:
    text = example_toloka.read_text().replace("w2\tAPPROVED", "w2\tREJECTED")
    example_toloka.write_text(text)
    assert at.load(example_toloka).raters == ("w1",)
    assert "2 answers are left out: their assignments were not accepted." in [
        problem.message for problem in check(example_toloka)
    ]


def test_of_several_outputs_one_must_be_named(example_toloka: Path) -> None:
    lines = example_toloka.read_text().splitlines()
    lines = [line + ("\tOUTPUT:other" if number == 0 else f"\t{number}") for number, line in enumerate(lines)]
    example_toloka.write_text("\n".join(lines))
    with pytest.raises(InputError, match="several columns may be the label, OUTPUT:result, OUTPUT:other"):
        at.load(example_toloka)
    assert at.load(example_toloka, label="result").classes == ("cat", "dog")
