"""Hugging Face folders: answers in lists and in rows, names of classes from the files' heads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.io import import_source


def put(folder: Path, **columns: list[object]) -> Path:
    folder.mkdir(exist_ok=True)
    pyarrow.parquet.write_table(
        pa.table({name.replace("__", "."): values for name, values in columns.items()}), folder / "train.parquet"
    )
    return folder


def test_lists_of_answers_with_their_raters(example_hugging_face: Path) -> None:
    loaded = at.load(example_hugging_face)
    assert (loaded.items, loaded.raters, loaded.classes) == (("good", "bad"), ("a1", "a2", "a3"), ("neg", "pos"))
    np.testing.assert_array_equal(loaded.answer_matrix(), [[1, 0, -1], [0, -1, 0]])


def test_lists_without_raters(tmp_path: Path) -> None:
    folder = put(tmp_path / "hub", annotations=[["x", "y"], ["x", "x"]], gold=["x", "x"])
    imported = import_source(folder, tmp_path / "out")
    assert imported.raters == {"rater_1": 2, "rater_2": 2}
    assert "the place in the list is the rater" in imported.notes[0]
    assert at.load(folder).items == ("row_1", "row_2")
    assert at.load(folder).truth.tolist() == [0, 0]


def test_a_row_for_each_answer(tmp_path: Path) -> None:
    folder = put(tmp_path / "hub", doc_id=[1, 1], annotator_id=[7, 8], label=[0, 1])
    np.testing.assert_array_equal(at.load(folder).answer_matrix(), [[0, 1]])


def test_argillas_own_columns(tmp_path: Path) -> None:
    folder = put(
        tmp_path / "hub", id=["a"], text=["t"], kind__responses=[["x", "y"]], kind__responses__users=[["u", "v"]],
        kind__suggestion=["x"],
    )  # fmt: skip
    assert at.load(folder).raters == ("u", "v")


def test_columns_that_cannot_be_told_must_be_named(tmp_path: Path) -> None:
    folder = put(tmp_path / "hub", p=["a", "b"], q=["x", "y"], r=["u", "u"])
    with pytest.raises(InputError, match="which columns hold the answers"):
        at.load(folder)
    assert at.load(folder, item="p", label="q", rater="r").raters == ("u",)
    with pytest.raises(InputError, match="no column 'z'"):
        at.load(folder, item="z")
    put(tmp_path / "hub", text=["a"], labels=[["x"]], annotators=[["u", "v"]])
    with pytest.raises(InputError, match="row 1 has 1 answers of 2 raters"):
        at.load(folder)


def test_rows_of_several_files_are_told_apart_and_sounds_are_not_read(tmp_path: Path) -> None:
    sound = {"bytes": b"x", "path": "a.wav"}
    table = pa.table({"audio": [sound], "labels": [["x", "y"]]}).replace_schema_metadata(
        {"huggingface": '{"info": {"features": {"audio": {"_type": "Audio"}}}}'}
    )
    (tmp_path / "hub").mkdir()
    for split in ("test", "train"):
        pyarrow.parquet.write_table(table, tmp_path / "hub" / f"{split}.parquet")
    loaded = at.load(tmp_path / "hub")
    assert loaded.items == ("test_row_1", "train_row_1")
    assert not loaded.has_images
