"""Labelbox's exports: who drew and chose what, masks that lie elsewhere, labels that nobody signed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import annotruth as at
from annotruth.errors import InputError
from annotruth.io import check
from annotruth.io.importing import import_source

BOX = {"feature_id": "f1", "name": "cell", "bounding_box": {"left": 1, "top": 2, "width": 3, "height": 2}}
SIDES = ("left", "top", "width", "height")
MASK = {"feature_id": "f2", "name": "cell", "mask": {"url": "https://api.labelbox.com/masks/f2"}}


def row(*labels: dict[str, Any], image: str = "a.png", **more: Any) -> str:
    content = {
        "data_row": {"id": "r1", "external_id": image}, "media_attributes": {"height": 8, "width": 9},
        "projects": {"p1": {"name": "Cells", "labels": list(labels)}}, **more,
    }  # fmt: skip
    return json.dumps(content) + "\n"


def label(rater: str | None, *objects: dict[str, Any], **answers: str) -> dict[str, Any]:
    chosen = [{"name": name, "radio_answer": {"name": answer}} for name, answer in answers.items()]
    signed = {} if rater is None else {"label_details": {"created_by": rater}}
    return {"annotations": {"objects": list(objects), "classifications": chosen}, **signed}


@pytest.fixture
def export(tmp_path: Path) -> Path:
    (tmp_path / "x").mkdir()
    return tmp_path / "x" / "export.ndjson"


def test_everybody_s_labels_of_one_image_are_told_apart(export: Path) -> None:
    export.write_text(row(label("ann@x.org", BOX), label("bob@x.org")) + row(label("bob@x.org", BOX), image="b.png"))
    found = at.load(export)
    assert (found.items, found.raters) == (("a", "b"), ("ann@x.org", "bob@x.org"))
    assert found.masks[0].sum(axis=(1, 2)).tolist() == [6, 0]  # bob saw nothing
    assert found.labelled().tolist() == [[True, True], [False, True]]


def test_a_list_in_json_and_other_names_of_the_image(export: Path) -> None:
    content = json.loads(row(label("ann", BOX)))
    content["data_row"] = {"row_data": "https://storage.x.org/bucket/a.png?token=1"}
    export.with_suffix(".json").write_text(json.dumps([content]))
    assert at.load(export.with_suffix(".json")).items == ("a",)


def test_masks_are_read_where_they_were_downloaded(export: Path) -> None:
    export.write_text(row(label("ann", MASK)))
    with pytest.raises(
        InputError, match=r"lies at Labelbox, not in the export\. Download it as f2\.png beside the file"
    ):
        at.load(export)
    inside = np.zeros((8, 9), dtype=np.uint8)
    inside[2:4, 3:5] = 255
    (export.parent / "masks").mkdir()
    Image.fromarray(inside).save(export.parent / "masks" / "f2.png")
    np.testing.assert_array_equal(at.load(export).masks[0, 0], inside > 0)
    Image.fromarray(inside[:4]).save(export.parent / "masks" / "f2.png")
    assert "has 4×9 pixels, the image 8×9" in check(export)[0].message


def test_labels_that_nobody_signed_are_told_apart_by_their_place(export: Path, tmp_path: Path) -> None:
    export.write_text(row(label(None, BOX), label(None, BOX)))
    assert at.load(export).raters == ("Cells, label 1", "Cells, label 2")
    done = import_source(export, tmp_path / "cases")
    assert any("2 labels do not say who made them" in note for note in done.notes)


def test_choices_with_the_time_they_took(example_labelbox_choices: Path) -> None:
    found = at.load(example_labelbox_choices)
    assert (found.kind, found.items, found.raters, found.classes) == (
        "labels",
        ("a", "b"),
        ("ann", "bob"),
        ("cat", "dog"),
    )
    np.testing.assert_array_equal(found.answer_matrix(), [[0, 1], [1, 1]])


def test_one_of_several_questions(export: Path) -> None:
    export.write_text(row(label("ann", pet="cat", mood="calm"), label("bob", pet="dog", mood="calm")))
    with pytest.raises(InputError, match=r"several questions \(pet, mood\)"):
        at.load(export)
    assert at.load(export, question="pet").classes == ("cat", "dog")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (row({"annotations": {"frames": {}}}, label("ann", BOX)), "a video's label"),
        (row(label("ann", {"name": "cell", "polygon": [{"x": 1}]}), label("bob", BOX)), "'y' is missing"),
        (
            row(label("ann", {**BOX, "bounding_box": {"left": 90, "top": 2, "width": 3, "height": 2}})),
            "outside the image",
        ),
        (row(label("ann", BOX)) + "{oh\n", "line 3 is not a JSON object"),
        (row(label("ann", BOX), image="", data_row={}), "has no name"),
    ],
)
def test_bad_labels_are_named(export: Path, line: str, message: str) -> None:
    export.write_text(row(label("ann", BOX), image="good.png") + line)
    assert any(message in problem.message for problem in check(export) if problem.severity == "fatal")
