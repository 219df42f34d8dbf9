"""CVAT's XML: shapes, tags and tracks, whose they are, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.io import check, import_source, load_objects

POLYGON = '<polygon label="cell" points="2.00,2.00;6.00,2.00;6.00,5.00;2.00,5.00" z_order="{}"/>'
BOX = '<box label="wall" xtl="4.00" ytl="0.00" xbr="9.00" ybr="8.00" z_order="{}"/>'


@pytest.fixture
def jobs(tmp_path: Path, cvat: Any, put: Any) -> Path:
    for name in ("ann", "bob"):
        cvat(tmp_path / "jobs" / name / "annotations.xml").write(
            {"a.png": POLYGON.format(0), "sub/b.png": ""}, assignee=name, labels=("wall", "cell")
        )
    for image in ("a.png", "sub/b.png"):
        put(tmp_path / "jobs" / "images" / image, np.zeros((8, 9), dtype=np.uint8))
    return tmp_path / "jobs"


def test_a_folder_of_jobs_has_a_rater_for_each_assignee(jobs: Path) -> None:
    found = at.load(jobs)
    assert (found.items, found.raters, found.classes) == (("a", "b"), ("ann", "bob"), ("background", "wall", "cell"))
    assert (found.masks[0] == 2).sum(axis=(1, 2)).tolist() == [12, 12]
    assert not found.masks[1].any()  # an image without shapes was looked at
    assert found.has_images
    assert check(jobs) == []


def test_every_kind_of_area_is_painted_by_its_order(tmp_path: Path, cvat: Any) -> None:
    shapes = {
        "polygon.png": POLYGON.format(0),
        "order.png": POLYGON.format(5) + BOX.format(1),
        "ellipse.png": '<ellipse label="cell" cx="4" cy="4" rx="3" ry="2" rotation="90.0" z_order="0"/>',
        "turned.png": '<box label="cell" xtl="2" ytl="3" xbr="8" ybr="5" rotation="90" z_order="0"/>',
        "mask.png": '<mask label="cell" rle="1, 2, 1, 2" left="3" top="4" width="3" height="2" z_order="0"/>',
    }
    path = cvat(tmp_path / "a.xml").write(shapes, "ann", ("cell", "wall"))
    masks = dict(zip(at.load(path).items, at.load(path).masks[:, 0]))
    assert masks["polygon"].sum() == 12
    assert (masks["order"] == 1).sum() == 12
    assert (masks["order"] == 2).sum() == 40 - 6
    assert masks["ellipse"][1:7, 4].all()
    assert not masks["ellipse"][:, 7].any()
    assert masks["turned"].sum() == 12
    assert masks["turned"][1:7, 4:6].all()
    assert masks["mask"][4:6, 4:6].all()
    assert masks["mask"].sum() == 4


def test_without_an_assignee_the_file_or_folder_names_the_rater(tmp_path: Path, cvat: Any) -> None:
    cvat(tmp_path / "x" / "dora" / "annotations.xml").write({"a.png": ""})
    cvat(tmp_path / "x" / "eve.xml").write({"a.png": ""})
    assert set(at.load(tmp_path / "x").raters) == {"dora", "eve"}
    imported = import_source(tmp_path / "x", tmp_path / "cases")
    assert any("names no assignee; the rater is called dora" in note for note in imported.notes)


def test_a_task_of_several_jobs_is_said_not_to_tell_who_drew_what(tmp_path: Path, cvat: Any) -> None:
    path = cvat(tmp_path / "task.xml").write({"a.png": ""}, "ann")
    parts = "<segments><segment><id>1</id></segment><segment><id>2</id></segment></segments>"
    path.write_text(
        path.read_text().replace("<job><id>3</id>", f"<task><id>3</id>{parts}").replace("</job>", "</task>")
    )
    assert any("a task with 2 jobs" in note for note in import_source(path, tmp_path / "cases").notes)


def test_a_project_tells_the_assignee_of_each_task(tmp_path: Path, cvat: Any) -> None:
    path = cvat(tmp_path / "project.xml").write({"a.png": "", "b.png": "", "c.png": ""})
    tasks = "".join(
        f"<task><id>{number}</id><assignee><username>{name}</username></assignee></task>"
        for number, name in ((4, "ann"), (7, "bob"))
    )
    text = path.read_text().replace("<job><id>3</id>", f"<project><id>1</id><tasks>{tasks}</tasks>")
    text = (
        text.replace("</job>", "</project>")
        .replace('id="0"', 'id="0" task_id="7"')
        .replace('id="1"', 'id="1" task_id="4"')
    )
    path.write_text(text)
    found = at.load(path)
    assert found.raters == ("bob", "ann", "project")
    assert found.labelled().argmax(axis=1).tolist() == [0, 1, 2]


def test_each_job_may_come_with_the_images(tmp_path: Path, cvat: Any, put: Any) -> None:
    """As CVAT packs them: <job>/annotations.xml beside <job>/images."""
    for name in ("ann", "bob"):
        cvat(tmp_path / "jobs" / name / "annotations.xml").write({"sub/a.png": POLYGON.format(0)}, assignee=name)
        put(tmp_path / "jobs" / name / "images" / "sub" / "a.png", np.zeros((8, 9), dtype=np.uint8))
    found = at.load(tmp_path / "jobs")
    assert (found.items, found.raters, found.has_images) == (("a",), ("ann", "bob"), True)
    assert check(tmp_path / "jobs") == []


def test_images_that_nobody_was_given_are_told(jobs: Path, put: Any) -> None:
    put(jobs / "images" / "z.png", np.zeros((8, 9), dtype=np.uint8))
    [problem] = check(jobs)
    assert (problem.severity, problem.message) == ("warning", "there are no annotations of 1 of the images: z.png.")
    assert not import_source(jobs, jobs.parent / "cases").is_whole
    with pytest.raises(InputError, match="there are no annotations of 1 of the images"):
        import_source(jobs, jobs.parent / "strictly", strict=True)
    assert not (jobs.parent / "strictly").exists()


def test_an_attribute_may_be_the_class(tmp_path: Path, cvat: Any) -> None:
    grade = '<polygon label="cell" points="0,0;9,0;9,4;0,4"><attribute name="grade">high</attribute></polygon>'
    path = cvat(tmp_path / "a.xml").write({"a.png": grade + BOX.format(0)}, "ann", ("cell", "wall"))
    assert at.load(path).classes == ("background", "cell", "wall")
    assert at.load(path, attribute="grade").classes == ("background", "high", "wall")


def test_tags_are_answers(tmp_path: Path, cvat: Any) -> None:
    tag = '<tag label="{}"><attribute name="sure">{}</attribute></tag>'
    for name, label in (("ann", "cat"), ("bob", "dog")):
        images = {"a.png": tag.format(label, "yes"), "b.png": tag.format("cat", "no"), "c.png": ""}
        cvat(tmp_path / "x" / f"{name}.xml").write(images, name, ("cat", "dog"))
    found = at.load(tmp_path / "x")
    assert (found.kind, found.items, found.classes) == ("labels", ("a", "b"), ("cat", "dog"))
    assert found.answer_matrix().tolist() == [[0, 1], [0, 0]]
    assert at.load(tmp_path / "x", attribute="sure").classes == ("no", "yes")
    two = cvat(tmp_path / "two.xml").write({"a.png": tag.format("cat", 1) + tag.format("dog", 1)}, "ann")
    [problem] = [each for each in check(two) if each.case]
    assert "several tags (cat, dog)" in problem.message


def test_tags_beside_shapes_are_left_out_and_said(jobs: Path, cvat: Any, tmp_path: Path) -> None:
    path = cvat(tmp_path / "mixed.xml").write({"a.png": POLYGON.format(0) + '<tag label="cell"/>'}, "ann")
    assert any("tags (cell) are left out" in problem.message for problem in check(path))
    assert at.load(path, source="cvat-tags").answer_matrix().tolist() == [[0]]


def test_tracks_are_followed_through_frames(tmp_path: Path, cvat: Any) -> None:
    box = '<box frame="{}" outside="{}" occluded="0" keyframe="1" xtl="{}" ytl="0" xbr="{}" ybr="2" z_order="0"/>'
    track = (
        f'<track id="0" label="cell">{box.format(1, 0, 0, 2)}{box.format(3, 0, 4, 6)}{box.format(4, 1, 4, 6)}</track>'
    )
    path = cvat(tmp_path / "video.xml").write({}, "ann", more=track)
    text = path.read_text().replace(
        "</job>",
        "<start_frame>0</start_frame><stop_frame>5</stop_frame></job>"
        "<original_size><width>9</width><height>8</height></original_size>",
    )
    path.write_text(text)
    found = at.load(path)
    assert found.items == tuple(f"frame_{number:06d}" for number in range(6))
    assert [int(mask.argmax(axis=-1)[0]) if mask.any() else None for mask in found.masks[:, 0]] == [
        None, 0, 2, 4, None, None,
    ]  # fmt: skip
    path.write_text(text.replace("original_size", "other_size"))
    with pytest.raises(InputError, match="<original_size> is missing"):
        at.load(path)


BAD = {
    "unknown label": ('<box label="dog" xtl="1" ytl="1" xbr="3" ybr="3"/>', "dog is not among the file's labels"),
    "long runs": ('<mask label="cell" rle="1, 99999999" left="0" top="0" width="3" height="2"/>', "tell of 100000000"),
    "huge mask": ('<mask label="cell" rle="1" left="0" top="0" width="999999999" height="99999"/>', "cannot be"),
    "runs outside": ('<mask label="cell" rle="0, 6" left="8" top="0" width="3" height="2"/>', "reaches outside"),
    "polygon outside": ('<polygon label="cell" points="90,90;99,90;99,99"/>', "lies outside the image"),
    "two points": ('<polygon label="cell" points="1,1;2,2"/>', "three points"),
    "no points": ('<polygon label="cell"/>', "'points' is missing"),
    "no number": ('<box label="cell" xtl="one" ytl="1" xbr="3" ybr="3"/>', "a <box> cannot be read"),
    "a line": ('<polyline label="cell" points="1,1;2,2"/>', "only shapes without an area (polyline)"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_with_one_image_leaves_the_others(case: str, jobs: Path, cvat: Any, tmp_path: Path) -> None:
    content, message = BAD[case]
    cvat(jobs / "bob" / "annotations.xml").write({"a.png": content, "sub/b.png": ""}, "bob", ("wall", "cell"))
    imported = import_source(jobs, tmp_path / "cases")
    [problem] = imported.skipped
    assert (problem.file.name, problem.rater) == ("annotations.xml", "bob")
    assert problem.case in ("a", "a.png")
    assert message in problem.message
    assert imported.raters == {"ann": 2, "bob": 1}
    with pytest.raises(InputError, match=r"annotations\.xml"):
        import_source(jobs, tmp_path / "strict", strict=True)


def test_points_and_lines_are_left_out_of_a_mask_and_the_rest_is_kept(jobs: Path, cvat: Any, tmp_path: Path) -> None:
    points = '<points label="wall" points="1.50,2.00;7.00,3.00" z_order="0"/>'
    bones = '<skeleton label="cell" z_order="0"><points label="cell" points="1.00,1.00"/></skeleton>'
    content = {"a.png": POLYGON.format(0) + points + bones, "sub/b.png": ""}
    cvat(jobs / "bob" / "annotations.xml").write(content, "bob", ("wall", "cell"))
    imported = import_source(jobs, tmp_path / "cases")
    assert (imported.skipped, imported.raters["bob"]) == ([], 2)
    [problem] = [problem for problem in imported.problems if "no area" in problem.message]
    assert str(problem).endswith("2 shapes have no area (points, skeleton). They are in no mask; the rest of the "
                                 "drawing is kept.")  # fmt: skip
    found = load_objects(jobs / "bob" / "annotations.xml").table()
    assert found[["label", "x1", "y1"]].to_numpy().tolist() == [["cell", 2, 2], ["wall", 1.5, 2], ["wall", 7, 3]]


def test_a_file_that_breaks_off_is_read_up_to_there(jobs: Path, tmp_path: Path) -> None:
    path = jobs / "bob" / "annotations.xml"
    path.write_text(path.read_text()[: path.read_text().index('<image id="1"') + 30])
    imported = import_source(jobs, tmp_path / "cases")
    assert imported.raters == {"ann": 2, "bob": 1}
    assert "is not XML" in imported.skipped[0].message


def test_an_entity_bomb_is_refused_and_others_are_read(jobs: Path, tmp_path: Path) -> None:
    path = jobs / "bob" / "annotations.xml"
    path.write_text(path.read_text().replace("<annotations>", '<!DOCTYPE a [<!ENTITY x "ha">]><annotations>'))
    imported = import_source(jobs, tmp_path / "cases")
    assert imported.raters == {"ann": 2}
    assert "declares a document type" in imported.skipped[0].message


def test_images_missing_for_annotations_are_named(jobs: Path, tmp_path: Path) -> None:
    (jobs / "images" / "a.png").unlink()
    imported = import_source(jobs, tmp_path / "cases")
    assert imported.items == 1
    assert "there is no image a.png" in imported.skipped[0].message
