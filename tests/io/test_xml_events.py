"""XML of others: what is hostile is refused unread, what is broken says where."""

from __future__ import annotations

from pathlib import Path

import pytest

from annotruth.errors import InputError
from annotruth.io.xml_events import read_xml

BOMB = '<!DOCTYPE a [<!ENTITY x "ha"><!ENTITY y "&x;&x;&x;&x;">]><a>&y;</a>'
OUTSIDE = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>'


def events(path: Path, text: str) -> list[object]:
    path.write_text(text, encoding="utf-8")
    seen: list[object] = []
    read_xml(path, lambda *begun: seen.append(begun), lambda *ended: seen.append(ended))
    return seen


def test_elements_come_in_order_with_their_text(tmp_path: Path) -> None:
    assert events(tmp_path / "a.xml", '<a n="1"><b> ä&amp;c </b></a>') == [
        ("a", {"n": "1"}), ("b", {}), ("b", "ä&c"), ("a", ""),
    ]  # fmt: skip


@pytest.mark.parametrize("text", [BOMB, OUTSIDE, '<!DOCTYPE a SYSTEM "http://localhost/a.dtd"><a/>'])
def test_entities_and_document_types_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"a\.xml: the file declares a document type or entities"):
        events(tmp_path / "a.xml", text)


def test_broken_files_say_where(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 2, column 1 is not XML"):
        events(tmp_path / "a.xml", "<a>\n")
    with pytest.raises(InputError, match="200 deep"):
        events(tmp_path / "a.xml", "<a>" * 300)
