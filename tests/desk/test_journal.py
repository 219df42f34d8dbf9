"""The log of decisions: what is in it stays in it, whatever happens while a line is written."""

from __future__ import annotations

import errno
import os

import pytest

from annotruth.desk.journal import Journal, read_journal
from annotruth.errors import AnnotruthError, InputError


def note(journal, case, **more):
    return journal.append(who="ann", role="curator", case=case, action="ambiguous", **more)


def test_entries_come_back_in_order(tmp_path):
    journal = Journal(tmp_path / "log.jsonl")
    written = [note(journal, "é 1", why='said "no",\u2028 twice'), note(journal, "b", rater="bob")]
    again = Journal(tmp_path / "log.jsonl")
    assert again.entries == written
    assert note(again, "c").number == 3


@pytest.mark.parametrize("cut", [1, 10, 40])
def test_a_torn_last_line_is_put_aside_and_told(tmp_path, cut):
    path = tmp_path / "log.jsonl"
    journal = Journal(path)
    note(journal, "a")
    note(journal, "b")
    path.write_bytes(path.read_bytes()[:-cut])
    again = Journal(path)
    assert [entry.case for entry in again.entries] == ["a"]
    assert again.torn
    assert path.with_suffix(".torn").read_bytes().startswith(again.torn)
    note(again, "c")
    assert [entry.case for entry in read_journal(path)[0]] == ["a", "c"]


def test_a_bad_line_in_the_middle_is_named(tmp_path):
    path = tmp_path / "log.jsonl"
    journal = Journal(path)
    note(journal, "a")
    path.write_bytes(b'{"number": 1}\n' + path.read_bytes())
    with pytest.raises(InputError, match="line 1: this is no decision"):
        Journal(path)


@pytest.mark.parametrize("failing", ["write", "fsync"])
def test_a_disk_that_fills_leaves_the_log_as_it_was(tmp_path, monkeypatch, failing):
    journal = Journal(tmp_path / "log.jsonl")
    note(journal, "a")
    before = journal.path.read_bytes()
    real = os.write
    if failing == "write":
        monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:5]) and _full())
    else:
        monkeypatch.setattr(os, "fsync", lambda file: _full())
    with pytest.raises(AnnotruthError, match=r"No space left.*Nothing was changed"):
        note(journal, "b")
    monkeypatch.undo()
    assert journal.path.read_bytes() == before
    assert note(journal, "c").number == 2
    assert [entry.case for entry in Journal(journal.path).entries] == ["a", "c"]


def test_what_could_not_be_cut_off_is_cut_off_before_the_next_line(tmp_path, monkeypatch):
    journal = Journal(tmp_path / "log.jsonl")
    note(journal, "a")
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:5]) and _full())
    monkeypatch.setattr(os, "ftruncate", lambda file, size: _full())
    with pytest.raises(AnnotruthError):
        note(journal, "b")
    monkeypatch.undo()
    note(journal, "c")
    assert [entry.case for entry in Journal(journal.path).entries] == ["a", "c"]


def test_a_disk_that_takes_little_at_a_time_gets_everything(tmp_path, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:7]))
    journal = Journal(tmp_path / "log.jsonl")
    note(journal, "a", why="w" * 100)
    assert Journal(journal.path).entries == journal.entries


def _full():
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
