"""Decisions and their files: there whole or not at all, also when the process is killed or the disk is full."""

from __future__ import annotations

import errno
import os
import signal

import numpy as np
import pytest

import annotruth as at
from annotruth.desk.study import KeptInLog, Study
from annotruth.errors import AnnotruthError, InputError
from annotruth.io import write_case_folder

from .conftest import SHAPE, draw_cases, draw_table

MASK = np.arange(SHAPE[0] * SHAPE[1]).reshape(SHAPE).astype(np.uint8) % 2


@pytest.fixture
def study(tmp_path):
    return Study(draw_cases(), tmp_path / "desk")


def reopened(study):
    return Study(study.base, study.folder)


def test_a_decision_is_the_truth_that_fuse_takes(tmp_path, annotruth):
    cases = write_case_folder(tmp_path / "cases", draw_cases(), suffix=".png")
    study = Study(at.load(cases), tmp_path / "desk")
    study.decide(2, "edit", who="Ada", labels=MASK, source="drawing", why="clear")
    assert (study.gold(2) == MASK).all()
    ended = annotruth("fuse", cases, "--gold", tmp_path / "desk" / "truth", "-o", tmp_path / "fused")
    assert ended.code == 0, ended.err
    labels = at.load(cases, truth=None).items
    assert (tmp_path / "fused" / "labels" / f"{labels[2]}.png").is_file()
    from annotruth.io.files import read_mask

    assert (read_mask(tmp_path / "fused" / "labels" / f"{labels[2]}.png", "") == MASK).all()


def test_status_and_truth_follow_the_log(study):
    assert study.record(0).status == "open"
    study.decide(0, "accept", who="Ada", labels=MASK, source="fused")
    study.decide(1, "ambiguous", who="Ada")
    study.decide(2, "send", who="Ada", rater="cy")
    study.decide(3, "accept", who="Ada", labels=MASK)
    study.decide(3, "reopen", who="Bob", why="too quick")
    for each in (study, reopened(study)):
        assert [each.record(i).status for i in range(5)] == ["decided", "ambiguous", "sent", "open", "open"]
        assert (each.gold(0) == MASK).all()
        assert each.gold(3) is None
        assert each.record(3).entries[-1].why == "too quick"
    assert sorted(path.name for path in (study.folder / "truth").iterdir()) == ["case 0.npy"]


def test_a_rater_labels_what_was_sent_to_them(tmp_path):
    study = Study(draw_cases(), tmp_path / "desk", raters=["dora"])
    study.decide(1, "send", who="Ada", rater="dora")
    study.decide(1, "label", who="dora", role="rater", rater="dora", labels=MASK)
    assert study.record(1).status == "open"
    again = Study(draw_cases(), tmp_path / "desk")
    assert again.raters == ("ann", "bob", "cy", "dora")
    masks = again.annotations.item_masks(1)
    assert (masks[3] == MASK).all()
    assert (masks[:3] == draw_cases().item_masks(1)).all()
    assert (again.annotations.item_masks(0)[3] == 255).all()
    assert (study.folder / "raters" / "dora" / "case 1.npy").is_file()


def test_a_label_table_becomes_tables(tmp_path):
    study = Study(draw_table(), tmp_path, raters=["dora"])
    study.decide(2, "edit", who="Ada", labels=1)
    study.decide(5, "label", who="dora", role="rater", rater="dora", labels=0)
    study.decide(0, "label", who="cy", role="rater", rater="cy", labels=0)
    assert (tmp_path / "truth.csv").read_text() == "item,truth\n'=p2,dog\n"
    assert (tmp_path / "labels.csv").read_text() == "item,rater,label\n'=p0,cy,cat\n'=p5,dora,cat\n"
    answers = Study(draw_table(), tmp_path).annotations.answer_matrix()
    assert answers[5].tolist() == [1, 0, -1, 0]
    assert answers[0].tolist() == [0, 0, 0, -1], "who answers again answers anew"
    assert study.gold_classes().tolist() == [-1, -1, 1, -1, -1, -1, -1, -1]


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(("place", "kept"), [("before the log", False), ("in the log", False), ("after the log", True)])
def test_being_killed_while_saving_loses_nothing(study, place, kept):
    """A child that is killed at each of the places between two decisions on the same case."""
    first, second = np.zeros_like(MASK), MASK
    study.decide(0, "accept", who="Ada", labels=first)
    child = os.fork()
    if child == 0:
        real = os.write
        if place == "before the log":
            study.journal.append = lambda **told: kill()  # type: ignore[method-assign]
        elif place == "in the log":
            os.write = lambda file, data: (real(file, data[: len(data) // 2]), kill())  # type: ignore[assignment]
        else:
            study._put_in_place = lambda *told: kill()  # type: ignore[method-assign]
        study.decide(0, "edit", who="Ada", labels=second)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    again = reopened(study)
    wanted = second if kept else first
    assert (again.gold(0) == wanted).all()
    assert (np.load(again.folder / "truth" / "case 0.npy") == wanted).all()
    assert bool(again.told) == (place == "in the log")
    assert list((again.folder / ".staging").iterdir()) == []


def test_a_disk_that_fills_before_the_log_changes_nothing(study, monkeypatch, fingerprint):
    study.decide(0, "accept", who="Ada", labels=np.zeros_like(MASK))
    before = fingerprint(study.folder)

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(AnnotruthError, match="No space left"):
        study.decide(0, "edit", who="Ada", labels=MASK)
    monkeypatch.undo()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(AnnotruthError, match="Nothing was changed"):
        study.decide(0, "edit", who="Ada", labels=MASK)
    assert fingerprint(study.folder) == before
    assert (study.gold(0) == 0).all()


def test_a_file_that_cannot_be_put_in_place_is_made_at_the_next_start(study, monkeypatch):
    study.decide(0, "accept", who="Ada", labels=np.zeros_like(MASK))
    real = os.replace

    def refuse(source, target):
        if "truth" in str(target):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(KeptInLog, match="kept in the log"):
        study.decide(0, "edit", who="Ada", labels=MASK)
    monkeypatch.undo()
    assert not (study.folder / "truth" / "case 0.npy").exists(), "the old truth must not pass for the new one"
    again = reopened(study)
    assert (np.load(again.folder / "truth" / "case 0.npy") == MASK).all()
    assert "made anew from the log" in again.told[0]


def test_every_file_can_be_made_from_the_log(study):
    study.decide(0, "accept", who="Ada", labels=MASK)
    study.decide(1, "edit", who="Ada", labels=1 - MASK)
    (study.folder / "truth" / "case 0.npy").write_bytes(b"damaged")
    assert reopened(study).rewrite() == 2
    assert (np.load(study.folder / "truth" / "case 0.npy") == MASK).all()


def test_the_desk_of_other_cases_is_refused(study, tmp_path):
    study.decide(0, "ambiguous", who="Ada")
    with pytest.raises(InputError, match="'case 0', which was decided, is not among these cases"):
        Study(draw_table(), study.folder)


@pytest.mark.parametrize(
    ("part", "words"),
    [("", "the entry has no label"), (', "mask": "AAAA", "shape": [20, 24]', "a mask in the log is damaged")],
)
def test_a_damaged_entry_is_named(tmp_path, part, words):
    entry = '{"number": 1, "time": "", "who": "Ada", "role": "curator", "case": "case 0", "action": "edit"'
    (tmp_path / "decisions.jsonl").write_text(entry + part + "}\n")
    with pytest.raises(InputError, match=rf"decisions\.jsonl, number 1, case 0: {words}"):
        Study(draw_cases(), tmp_path)


@pytest.mark.parametrize(
    ("action", "labels", "words"),
    [("accept", None, "needs a label"), ("ambiguous", MASK, "without"), ("edit", 7 * MASK, "outside the classes")],
)
def test_wrong_decisions_are_refused(study, action, labels, words):
    with pytest.raises(InputError, match=words):
        study.decide(0, action, who="Ada", labels=labels)
    assert study.journal.entries == []
