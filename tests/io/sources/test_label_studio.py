"""Label Studio's JSON: every kind of region, choices, and whose they are."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import annotruth as at
from annotruth.io import check, import_source, load_objects

HEIGHT, WIDTH = 10, 20
BRUSH = [
    0, 0, 0, 252, 57, 27, 254, 43, 0, 194, 127, 247, 192, 48, 159, 253, 240, 9, 255, 227, 0, 159, 254, 248, 6, 19, 255,
    201, 96, 17, 255, 128,
]  # of 7×9 pixels, see tests/io/test_runs.py  # fmt: skip
ANN = {"id": 1, "email": "ann@x.org", "first_name": "Ann", "last_name": "A."}
BOB = {"id": 2, "email": "bob@x.org"}


def region(kind: str, value: dict[str, Any], label: str | None = "cell", **more: Any) -> dict[str, Any]:
    named = {} if label is None else {f"{kind}labels": [label]}
    return {
        "id": "r1", "type": f"{kind}labels" if label else kind, "from_name": "tag", "to_name": "image",
        "original_width": WIDTH, "original_height": HEIGHT, "image_rotation": 0, "value": {**value, **named}, **more,
    }  # fmt: skip


def choice(*labels: str, name: str = "kind") -> dict[str, Any]:
    return {"id": "c", "type": "choices", "from_name": name, "to_name": "image", "value": {"choices": list(labels)}}


def done(person: Any, *results: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": 5, "completed_by": person, "result": list(results), "was_cancelled": False, "lead_time": 3.5, **more}


def write(path: Path, *tasks: list[dict[str, Any]], **more: Any) -> Path:
    content = [
        {"id": n, "data": {"image": f"/data/upload/1/0123abcd-{name}.png"}, "annotations": each, **more}
        for n, (name, each) in enumerate(zip("abcde", tasks), 1)
    ]
    path.write_text(json.dumps(content))
    return path


def bitmask(pixels: int) -> str:
    """A PNG in base64, black on nothing, with so many pixels marked."""
    picture = np.zeros((HEIGHT, WIDTH, 4), dtype=np.uint8)
    picture.reshape(-1, 4)[:pixels, 3] = 255
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


BOX = region("rectangle", {"x": 10, "y": 20, "width": 20, "height": 30, "rotation": 0})


@pytest.mark.parametrize(
    ("drawn", "pixels"),
    [
        (BOX, 12),
        (region("rectangle", {"x": 50, "y": 20, "width": 20, "height": 30, "rotation": 90}), 12),
        (region("polygon", {"points": [[10, 20], [30, 20], [30, 50], [10, 50]], "closed": True}), 12),
        (region("ellipse", {"x": 50, "y": 50, "radiusX": 10, "radiusY": 20, "rotation": 0}), 12),
        (region("bitmask", {"imageDataURL": f"data:image/png;base64,{bitmask(12)}"}), 12),
        (region("brush", {"format": "rle", "rle": BRUSH}, original_width=9, original_height=7), 20),
    ],
)
def test_every_kind_of_region(tmp_path: Path, drawn: dict[str, Any], pixels: int) -> None:
    found = at.load(write(tmp_path / "p.json", [done(ANN, drawn)]))
    assert (found.items, found.raters, found.classes) == (("a",), ("ann@x.org",), ("background", "cell"))
    assert found.masks.sum() == pixels


def test_a_turned_rectangle_turns_about_its_corner(tmp_path: Path) -> None:
    turned = region("rectangle", {"x": 50, "y": 20, "width": 20, "height": 30, "rotation": 90})
    mask = at.load(write(tmp_path / "p.json", [done(ANN, turned)])).masks[0, 0]
    assert mask[2:6, 7:10].all()  # 4 wide and 3 high, from (10, 2): now to the left, and downwards


def test_a_label_may_stand_in_another_result(tmp_path: Path) -> None:
    plain = region("rectangle", BOX["value"] | {"rectanglelabels": []}, None)
    del plain["value"]["rectanglelabels"]
    label = {**plain, "type": "labels", "value": {"labels": ["wall"]}}
    assert at.load(write(tmp_path / "p.json", [done(ANN, plain, label)])).classes == ("background", "wall")


def test_several_annotators_keep_their_names(tmp_path: Path) -> None:
    path = write(
        tmp_path / "p.json",
        [done(ANN, BOX), done(BOB), done(7, BOX)],
        [done(ANN, BOX), done(BOB, BOX, was_cancelled=True)],
        predictions=[{"result": [BOX]}],
    )
    found = at.load(path)
    assert found.raters == ("ann@x.org", "bob@x.org", "user_7")
    assert found.labelled().tolist() == [[True, True, True], [True, False, False]]
    assert not found.masks[0, 1].any()  # bob saw nothing
    imported = import_source(path, tmp_path / "cases")
    assert imported.skipped == []
    assert any("the annotator skipped this task" in problem.message for problem in imported.problems)
    assert "2 predictions of models are left out." in imported.notes


def test_annotators_shown_alike_stay_two(tmp_path: Path) -> None:
    path = write(
        tmp_path / "p.json", [done({"id": 1, "first_name": "Ann"}, BOX), done({"id": 2, "first_name": "Ann"}, BOX)]
    )
    assert at.load(path).raters == ("Ann (1)", "Ann (2)")
    [problem] = check(path)
    assert str(problem).endswith("(rater Ann): 2 raters are shown by this name. They are told apart: Ann (1), Ann (2).")
    assert not import_source(path, tmp_path / "cases").is_whole


def test_images_are_found_by_their_own_name_or_the_uploads(tmp_path: Path, put: Any) -> None:
    path = write(tmp_path / "p.json", [done(ANN, BOX)], [done(ANN, BOX)])
    put(tmp_path / "a.png", np.zeros((HEIGHT, WIDTH), np.uint8))
    put(tmp_path / "0123abcd-b.png", np.zeros((HEIGHT, WIDTH), np.uint8))
    assert at.load(path).images.shape == (2, 1, HEIGHT, WIDTH)
    put(tmp_path / "b.png", np.zeros((HEIGHT, WIDTH), np.uint8))
    local = json.loads(path.read_text())
    local[0]["data"]["image"] = "/data/local-files/?d=some%20where/a.png"
    local[1]["data"]["image"] = "https://x.org/b.png?token=1"
    path.write_text(json.dumps(local))
    assert at.load(path).items == ("a", "b")


def test_an_empty_annotation_needs_the_image_for_its_size(tmp_path: Path, put: Any) -> None:
    path = write(tmp_path / "p.json", [done(ANN)], [done(ANN, BOX)])
    [problem, *_] = check(path)
    assert (problem.case, problem.rater) == ("a.png", "ann@x.org")
    assert "does not tell the size" in problem.message
    for name in "ab":
        put(tmp_path / f"{name}.png", np.zeros((HEIGHT, WIDTH), np.uint8))
    assert at.load(path).shape(0) == (HEIGHT, WIDTH)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (region("keypoint", {"x": 1, "y": 1}), "only shapes without an area (keypoint)"),
        (region("brush", {"format": "rle", "rle": BRUSH}), "252 values, not 800"),
        (region("brush", {"format": "png", "rle": ""}), "in the format png"),
        (region("brush", {"format": "rle", "rle": 10**15}), "not a list of bytes"),
        (region("brush", {"format": "rle", "rle": [1, 999]}), "not as the tool writes it"),
        (region("rectangle", {"x": 1, "y": 1}), "'width' is missing"),
        (region("polygon", {"points": [[1, 1]]}), "three points"),
        (region("rectangle", BOX["value"] | {"labels": ["wall"]}), "has 2 labels (cell, wall), not one"),
        (BOX | {"image_rotation": 90}, "the image was turned"),
    ],
)
def test_bad_regions_are_named_and_the_rest_is_imported(tmp_path: Path, bad: dict[str, Any], message: str) -> None:
    path = write(tmp_path / "p.json", [done(ANN, bad), done(BOB, BOX)], [done(ANN, BOX)])
    imported = import_source(path, tmp_path / "cases")
    [problem] = imported.skipped
    assert problem.rater == "ann@x.org"
    assert problem.case in ("a", "a.png")
    assert message in problem.message
    assert imported.raters == {"bob@x.org": 1, "ann@x.org": 1}


def test_the_same_annotator_twice_on_a_task(tmp_path: Path) -> None:
    path = write(tmp_path / "p.json", [done(ANN, BOX), done(ANN)])
    [problem] = [each for each in check(path) if each.severity == "fatal"]
    assert (problem.rater, "labelled this image twice" in problem.message) == ("ann@x.org", True)
    assert not at.load(path, duplicates="keep-last").masks.any()


def test_regions_and_annotations_that_refer_to_each_other_in_a_circle_are_read(tmp_path: Path) -> None:
    """JSON has no cycles, but identifiers have: parents, relations, and an annotation made of itself."""
    one, other = ({**BOX, "id": name, "parentID": parent} for name, parent in (("a", "b"), ("b", "a")))
    round_trip = [{"type": "relation", "from_id": x, "to_id": y, "direction": "right"} for x, y in ("ab", "ba")]
    path = write(tmp_path / "p.json", [done(ANN, one, other, *round_trip, parent_annotation=5, parent_prediction=5)])
    assert at.load(path).masks.sum() == 12
    assert [problem.severity for problem in check(path)] == ["warning"]  # of a single rater


def test_points_are_left_out_of_masks_and_are_objects(tmp_path: Path) -> None:
    point, line = region("keypoint", {"x": 50, "y": 50, "width": 1}, "spot"), region("vector", {"vertices": []})
    path = write(tmp_path / "p.json", [done(ANN, BOX, point, line), done(BOB, point)])
    problems = check(path)
    assert [(each.severity, each.rater) for each in problems] == [("fatal", "bob@x.org"), ("warning", "ann@x.org")]
    assert "2 shapes have no area (keypoint, vectorlabels)" in problems[1].message
    imported = import_source(path, tmp_path / "cases")
    assert (imported.raters, imported.classes) == ({"ann@x.org": 1}, ("background", "cell"))
    assert at.load(tmp_path / "cases").masks.sum() == 12
    objects = load_objects(path)
    assert objects.table()[["rater", "label", "x1", "y1", "x2", "y2"]].to_numpy().tolist() == [
        ["ann@x.org", "cell", 2, 2, 6, 5],
        ["ann@x.org", "spot", 10, 5, 10, 5],
        ["bob@x.org", "spot", 10, 5, 10, 5],
    ]


def test_ground_truth_is_known_truth_and_no_raters(tmp_path: Path) -> None:
    path = write(tmp_path / "p.json", [done(ANN, BOX, ground_truth=True), done(BOB), done(7)], [done(BOB, BOX)])
    found = at.load(path)
    assert found.raters == ("bob@x.org", "user_7")
    assert found.item_truth(0).sum() == 12
    assert (found.item_truth(1) == 255).all()
    imported = import_source(path, tmp_path / "cases")
    assert "1 annotations that are marked as ground truth are the known truth, and no rater's." in imported.notes
    assert at.load(tmp_path / "cases").item_truth(0).sum() == 12
    write(path, [done(ANN, BOX, ground_truth=True)])
    assert "every annotation is marked as ground truth" in check(path)[0].message


def test_ground_truth_of_choices(tmp_path: Path) -> None:
    star = {"ground_truth": True}
    path = write(
        tmp_path / "p.json",
        [done(ANN, choice("cat"), **star), done(BOB, choice("dog"))],
        [done(BOB, choice("cat"))],
        [done(ANN, choice("cat"), **star)],
    )
    found = at.load(path)
    assert (found.items, found.raters) == (("a", "b"), ("bob@x.org",))
    assert found.truth.tolist() == [found.classes.index("cat"), -1]
    imported = import_source(path, tmp_path / "out")
    assert "Known truth of 1 items that nobody answered is left out." in imported.notes
    assert (tmp_path / "out" / "truth.csv").read_text() == "item,truth\na,cat\n"
    write(path, [done(ANN, choice("cat"), **star), done(7, choice("dog"), **star), done(BOB, choice("dog"))])
    assert "the known truth is told twice, cat and dog" in check(path)[0].message


def test_choices_are_answers(tmp_path: Path) -> None:
    path = write(
        tmp_path / "p.json", [done(ANN, choice("cat")), done(BOB, choice("dog"))], [done(ANN, choice("cat")), done(BOB)]
    )
    found = at.load(path)
    assert (found.kind, found.items, found.raters) == ("labels", ("a", "b"), ("ann@x.org", "bob@x.org"))
    assert found.answer_matrix().tolist() == [[0, 1], [0, -1]]
    import_source(path, tmp_path / "out")
    assert "lead_time" in (tmp_path / "out" / "labels.csv").read_text()


def test_several_questions_or_choices_are_told(tmp_path: Path) -> None:
    path = write(
        tmp_path / "p.json", [done(ANN, choice("cat"), choice("sharp", name="quality"))], [done(BOB, choice("a", "b"))]
    )
    messages = [problem.message for problem in check(path)]
    assert any("several questions (kind, quality)" in message for message in messages)
    assert any("several choices are ticked (a, b)" in message for message in messages)
    path = write(tmp_path / "p.json", [done(ANN, choice("cat"), choice("sharp", name="quality"))])
    assert at.load(path, question="quality").classes == ("sharp",)


def test_the_short_form_is_the_same_but_for_who_skipped() -> None:
    """JSON-MIN of the same project lists no annotation that was skipped."""
    whole, short = (at.load(Path(__file__).parent / f"label_studio_{name}.json") for name in ("export", "min"))
    order = [short.raters.index(rater) for rater in whole.raters]
    items = [short.items.index(item) for item in whole.items]
    for number, name in enumerate(whole.classes):
        ours = short.masks[items][:, order] == short.classes.index(name)
        np.testing.assert_array_equal(ours, whole.masks == number)


def test_the_short_form_of_choices(tmp_path: Path) -> None:
    row = {"image": "/x/a.png", "id": 1, "kind": "cat", "annotator": 1, "annotation_id": 2, "created_at": "2026-01-01"}
    (tmp_path / "a.json").write_text(json.dumps([row, row | {"annotator": 2, "kind": "dog"}]))
    assert at.load(tmp_path / "a.json").answer_matrix().tolist() == [[0, 1]]


def test_an_export_of_a_real_label_studio() -> None:
    """Two people in Label Studio 1.23.2, by its own interface: brush, polygon, box and ellipse, nothing, and a skip."""
    found = at.load(Path(__file__).parent / "label_studio_export.json")
    assert found.items == ("img_0", "img_1", "img_2")
    assert (found.raters, found.classes) == (("user_1", "user_2"), ("background", "cell", "wall"))
    assert (found.masks == 1).sum(axis=(2, 3)).tolist() == [[35, 0], [36, 0], [0, 35]]
    assert (found.masks == 2).sum(axis=(2, 3)).tolist() == [[0, 36], [3, 0], [0, 0]]
    assert found.labelled().tolist() == [[True, True], [True, True], [False, True]]


def save(path: Path, *tasks: tuple[dict[str, Any], list[dict[str, Any]]]) -> Path:
    content = [{"id": n, "data": data, "annotations": each} for n, (data, each) in enumerate(tasks, 1)]
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("data", "second"),
    [
        ({"left": "a.png", "right": "b.png"}, BOX | {"to_name": "right"}),
        ({"pages": ["a.png", "b.png"]}, BOX | {"item_index": 1}),
    ],
)
def test_regions_on_several_pictures_of_a_task_are_not_drawn_on_one(
    tmp_path: Path, data: dict[str, Any], second: dict[str, Any]
) -> None:
    several = (data, [done(ANN, BOX | {"item_index": 0}, second)])
    path = save(tmp_path / "export.json", several, ({"image": "c.png"}, [done(ANN, BOX), done(BOB, BOX)]))
    problems = check(path)
    assert [problem.case for problem in problems] == ["task 1"]
    assert "2 pictures of one task" in problems[0].message
    assert import_source(path, tmp_path / "cases").items == 1


def test_the_picture_drawn_on_is_the_one_that_its_tag_is_named_after(tmp_path: Path) -> None:
    path = save(tmp_path / "export.json", ({"small": "s.png", "image": "a.png"}, [done(ANN, BOX), done(BOB, BOX)]))
    assert at.load(path).items == ("a",)


def test_two_uploads_of_one_name_are_two_images(tmp_path: Path) -> None:
    first, second = ({"image": f"/data/upload/1/{code}-a.png"} for code in ("0123abcd", "4567abcd"))
    path = save(tmp_path / "export.json", (first, [done(ANN, BOX)]), (second, [done(BOB, BOX)]))
    imported = import_source(path, tmp_path / "cases")
    assert imported.items == 2
    assert "Several uploads have the same name (a.png)" in imported.notes[0]
    assert at.load(tmp_path / "cases").items == ("0123abcd-a", "4567abcd-a")


def test_images_of_choices_are_found_by_the_uploads_name(tmp_path: Path, put: Any) -> None:
    put(tmp_path / "images" / "0123abcd-a.png", np.zeros((HEIGHT, WIDTH), np.uint8))
    path = write(tmp_path / "p.json", [done(ANN, choice("cat")), done(BOB, choice("dog"))])
    assert at.load(path).has_images
