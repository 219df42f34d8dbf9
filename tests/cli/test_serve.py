"""annotruth serve: what it loads, what it starts, and the log replayed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import annotruth as at
from annotruth.desk import Study
from annotruth.io import write_case_folder

MASKS = np.zeros((3, 2, 8, 8), dtype=np.uint8)
MASKS[..., 2:5, 2:5] = 1


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    return write_case_folder(tmp_path / "cases", at.Annotations.from_masks(MASKS), suffix=".png")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Path, dict[str, Any]]]:
    """What the desk would have been started with."""
    for module in ("starlette", "uvicorn"):
        pytest.importorskip(module)
    calls: list[tuple[Any, Path, dict[str, Any]]] = []
    monkeypatch.setattr("annotruth.desk.serve", lambda ann, folder, **told: calls.append((ann, folder, told)))
    return calls


def test_a_case_folder_is_served_on_this_machine_alone(annotruth, cases, started):
    ended = annotruth("serve", cases, "--rater", "ann", "--rater", "ann", "--rater", "Éva")
    assert ended.code == 0, ended.err
    annotations, folder, told = started[0]
    assert annotations.items == ("item_0", "item_1", "item_2")
    assert folder == cases.with_name("cases-desk")
    assert (told["host"], told["port"], told["raters"]) == ("127.0.0.1", 8765, ("ann", "Éva"))
    assert told["model"] is None


def test_a_case_that_is_bad_is_set_aside_and_told(annotruth, cases, started):
    next(iter(cases.glob("raters/*/item_1.png"))).write_bytes(b"no picture")
    ended = annotruth("serve", cases)
    assert "item_1.png" in ended.out + ended.err
    assert started[0][0].items == ("item_0", "item_2")


def test_a_label_table_is_served_with_its_pictures(annotruth, tmp_path, started):
    from PIL import Image

    (tmp_path / "labels.csv").write_text("item,rater,label\na,ann,cat\na,bob,dog\n")
    (tmp_path / "pictures").mkdir()
    Image.fromarray(np.zeros((4, 5), dtype=np.uint8)).save(tmp_path / "pictures" / "a.png")
    ended = annotruth("serve", tmp_path / "labels.csv", "--images", tmp_path / "pictures", "-o", tmp_path / "mine")
    assert ended.code == 0, ended.err
    assert started[0][0].shape(0) == (4, 5)
    assert started[0][1] == tmp_path / "mine"


def test_a_run_is_served_with_its_model(annotruth, cases, tmp_path, started, monkeypatch):
    from annotruth.training import ensemble, runs

    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{}")
    opened = SimpleNamespace(annotations=lambda: at.load(cases), model=tmp_path / "run" / "model.annotruth")
    monkeypatch.setattr(runs, "open_run", lambda folder: opened)
    monkeypatch.setattr(ensemble, "load_file", lambda path: ("a model of", path.name))
    ended = annotruth("serve", tmp_path / "run")
    assert ended.code == 0, ended.err
    assert started[0][2]["model"] == ("a model of", "model.annotruth")
    assert started[0][1] == tmp_path / "run-desk"
    assert annotruth("serve", tmp_path / "run", "--images", cases).code == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["nowhere"], "there is no such file or folder"), (["cases", "--replay"], "there is no desk")],
)
def test_bad_input_is_told(annotruth, cases, monkeypatch, arguments, words):
    monkeypatch.chdir(cases.parent)
    ended = annotruth("serve", *arguments)
    assert ended.code == 2
    assert words in " ".join((ended.out + ended.err).split())


def test_a_missing_extra_is_told_before_anything_is_read(annotruth, cases, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    ended = annotruth("serve", cases)
    assert ended.code == 2
    assert 'pip install "annotruth[desk]"' in " ".join((ended.out + ended.err).split())


def test_the_log_is_replayed(annotruth, cases):
    desk = cases.with_name("cases-desk")
    study = Study(at.load(cases), desk)
    study.decide(0, "accept", who="Ada", labels=MASKS[0, 0])
    study.decide(1, "ambiguous", who="Ada")
    study.decide(2, "edit", who="Ada", labels=1 - MASKS[0, 0])
    with (desk / "decisions.jsonl").open("a") as log:
        log.write('{"number": 4, "ti')
    for file in (desk / "truth").iterdir():
        file.unlink()
    ended = annotruth("serve", cases, "--replay")
    told = " ".join(ended.out.split())
    assert ended.code == 0, ended.err
    assert "never finished" in told
    assert "3 entries" in told
    assert "2 labels written" in told
    assert sorted(file.name for file in (desk / "truth").iterdir()) == ["item_0.png", "item_2.png"]
    lines = (desk / "decisions.jsonl").read_text().splitlines()
    assert [json.loads(line)["number"] for line in lines] == [1, 2, 3]
