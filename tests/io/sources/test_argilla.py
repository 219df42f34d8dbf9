"""Argilla: records of version 2 and of version 1, drafts, several questions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.io import check


def test_records_in_a_file_and_in_the_folder_around_it(example_argilla: Path) -> None:
    loaded = at.load(example_argilla)
    assert (loaded.items, loaded.raters, loaded.classes) == (("r1", "r2"), ("u1", "u2"), ("neg", "pos"))
    np.testing.assert_array_equal(loaded.answer_matrix(), [[1, 0], [1, 1]])
    np.testing.assert_array_equal(at.load(example_argilla.parent).answer_matrix(), loaded.answer_matrix())


def test_responses_by_user_as_version_1_wrote_them(tmp_path: Path) -> None:
    record = {
        "fields": {"text": "a"}, "external_id": "e1",
        "responses": [
            {"user_id": "u1", "status": "submitted", "values": {"kind": {"value": "x"}, "tags": {"value": ["p", "q"]}}},
            {"user_id": "u2", "status": "draft", "values": {"kind": {"value": "y"}}},
        ],
    }  # fmt: skip
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps(record) + "\n")
    loaded = at.load(path)
    assert (loaded.items, loaded.raters, loaded.classes) == (("e1",), ("u1",), ("x",))
    assert {"1 answers are left out: they were saved as a draft, or discarded."} <= {
        problem.message for problem in check(path)
    }


def test_of_several_questions_one_must_be_named(tmp_path: Path) -> None:
    said = {name: [{"value": name[0], "user_id": "u"}] for name in ("kind", "size")}
    path = tmp_path / "r.json"
    path.write_text(json.dumps([{"id": 1, "fields": {}, "responses": said}]))
    with pytest.raises(InputError, match=r"several questions, kind, size\. Say which: --label kind"):
        at.load(path)
    assert at.load(path, label="size").classes == ("s",)
    with pytest.raises(InputError, match="no answer to 'colour'"):
        at.load(path, label="colour")
