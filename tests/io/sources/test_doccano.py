"""doccano: one file for each user, in an archive or unpacked, and one file for all."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.io import import_source


def test_an_archive_and_its_folder_are_read_alike(example_doccano: Path, tmp_path: Path) -> None:
    loaded = at.load(example_doccano)
    assert (loaded.items, loaded.raters, loaded.classes) == (("1", "2"), ("ann", "bob"), ("neg", "pos"))
    np.testing.assert_array_equal(loaded.answer_matrix(), [[1, 1], [0, 1]])
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        for file in example_doccano.iterdir():
            archive.write(file, file.name)
    np.testing.assert_array_equal(at.load(tmp_path / "export.zip").answer_matrix(), loaded.answer_matrix())


def test_users_named_by_the_annotations(tmp_path: Path) -> None:
    path = tmp_path / "project.jsonl"
    lines = [{"id": 1, "text": "a", "annotations": [{"label": 1, "user": 3}, {"label": 2, "user": 4}]}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    loaded = at.load(path)
    assert (loaded.raters, loaded.classes) == (("3", "4"), ("1", "2"))


def test_labels_that_all_users_share_are_one_raters_and_several_at_once_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_text('{"id": 1, "text": "a", "label": ["x"]}\n{"id": 2, "text": "b", "label": ["x", "y"]}\n')
    imported = import_source(path, tmp_path / "out")
    assert imported.raters == {"all": 1}
    assert "does not say who gave a label" in imported.notes[0]
    path.write_text('{"id": 1, "text": "a", "label": [[0, 3, "x"]]}\n')
    with pytest.raises(InputError, match="spans and relations are not read"):
        at.load(path)
