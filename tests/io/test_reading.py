"""Files of settings that are no files, too large, too deep or no text."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from annotruth.errors import InputError
from annotruth.io.reading import read_json, read_text


def test_json_is_read_with_or_without_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"\xef\xbb\xbf[1, 2]")
    assert read_json(tmp_path / "a.json") == [1, 2]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"9" * 5000, "number that is too long"),
        (b"{", "line 1, column 2 is not JSON"),
        (b"\xff\xfe", "Save it as UTF-8"),
    ],
)
def test_bad_json_is_one_sentence_that_names_the_file(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(InputError, match=rf"a\.json: .*{words}"):
        read_json(tmp_path / "a.json")


def test_a_large_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b" " * 2**21)
    with pytest.raises(InputError, match="more than 1 MB"):
        read_text(tmp_path / "a.json", 2**20)


@pytest.mark.parametrize(("kind", "words"), [("pipe", "a pipe"), ("device", "a device"), ("folder", "a folder")])
def test_what_is_no_plain_file_is_not_opened(tmp_path: Path, kind: str, words: str) -> None:
    path = tmp_path / "a.json"
    {"pipe": os.mkfifo, "folder": os.mkdir, "device": lambda path: os.symlink("/dev/zero", path)}[kind](path)
    with pytest.raises(InputError, match=f"this is {words}, not a file"):
        read_json(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"b\.json: cannot be opened"):
        read_json(tmp_path / "b.json")
