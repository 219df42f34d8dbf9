"""Import: whole or not at all, what was understood and left out is said, and the source stays as it is."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.io import SOURCES, import_source, register
from annotruth.io.contents import Contents, Item
from annotruth.io.locks import only_writer
from annotruth.io.problems import Problem, Report
from annotruth.io.sources.imports import ImportSource


def draw(folder: Path, rater: str, case: str, points: list[list[float]], label: str = "cell") -> Path:
    """A file as Labelme writes it, of an image of 8×9 pixels."""
    shapes = [{"label": label, "points": points, "shape_type": "polygon"}] if points else []
    content = {"shapes": shapes, "imagePath": f"{case}.png", "imageHeight": 8, "imageWidth": 9}
    (folder / rater).mkdir(parents=True, exist_ok=True)
    (folder / rater / f"{case}.json").write_text(json.dumps(content))
    return folder / rater / f"{case}.json"


SQUARE = [[2.0, 2.0], [6.0, 2.0], [6.0, 5.0], [2.0, 5.0]]


@pytest.fixture
def drawn(tmp_path: Path, put: Any) -> Path:
    for rater in ("ann", "bob"):
        for case in "abc":
            draw(tmp_path / "drawn", rater, case, SQUARE)
    for case in "abc":
        put(tmp_path / "drawn" / f"{case}.png", np.full((8, 9), 7, dtype=np.uint8))
    return tmp_path / "drawn"


def test_an_import_is_a_case_folder_that_says_what_was_understood(drawn: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    imported = import_source(drawn, tmp_path / "cases", progress=lambda done, total: told.append((done, total)))
    assert (imported.kind, imported.source, imported.items) == ("masks", "labelme", 3)
    assert imported.raters == {"ann": 3, "bob": 3}
    assert told == [(1, 3), (2, 3), (3, 3)]
    cases, direct = at.load(tmp_path / "cases"), at.load(drawn)
    assert cases.classes == direct.classes == ("background", "cell")
    np.testing.assert_array_equal(cases.masks, direct.masks)
    np.testing.assert_array_equal(cases.images, direct.images)
    assert cases.masks[0, 0].sum() == 12
    said = json.loads((tmp_path / "cases" / "dataset.json").read_text())["imported"]
    assert (said["source"], said["from"], said["items"], said["skipped"]) == ("labelme", "drawn", 3, [])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cases", "drawn"]


def test_what_is_wrong_is_left_out_and_named(drawn: Path, tmp_path: Path) -> None:
    draw(drawn, "bob", "b", [[20.0, 20.0], [30.0, 20.0], [30.0, 30.0]])
    (drawn / "ann" / "c.json").write_text('{"shapes": [{"label": "x", "points": [[')
    imported = import_source(drawn, tmp_path / "cases")
    assert imported.raters == {"ann": 2, "bob": 2}
    assert {(problem.file.name, problem.case, problem.rater) for problem in imported.skipped} == {
        ("b.json", "b", "bob"), ("c.json", "c", "ann"),
    }  # fmt: skip
    skipped = json.loads((tmp_path / "cases" / "dataset.json").read_text())["imported"]["skipped"]
    assert any("outside the image" in one["reason"] and one["item"] == "b" for one in skipped)
    assert np.array_equal(at.load(tmp_path / "cases").labelled(), [[True, True], [True, False], [False, True]])


def test_strict_stops_and_leaves_nothing_behind(drawn: Path, tmp_path: Path) -> None:
    draw(drawn, "bob", "b", [[20.0, 20.0], [30.0, 20.0], [30.0, 30.0]])
    with pytest.raises(InputError, match=r"b\.json \(case b, rater bob\): a shape of cell lies outside"):
        import_source(drawn, tmp_path / "cases", strict=True)
    assert [path.name for path in tmp_path.iterdir()] == ["drawn"]


def test_an_import_replaces_only_an_earlier_import(drawn: Path, tmp_path: Path) -> None:
    import_source(drawn, tmp_path / "cases")
    with pytest.raises(InputError, match="already holds files"):
        import_source(drawn, tmp_path / "cases")
    draw(drawn, "cy", "a", SQUARE)
    assert "cy" in import_source(drawn, tmp_path / "cases", overwrite=True).raters
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    with pytest.raises(InputError, match="what an earlier import made, and this is not"):
        import_source(drawn, tmp_path / "other", overwrite=True)


def test_a_case_folder_needs_no_import(cases: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a case folder already, which needs no import"):
        import_source(cases, tmp_path / "out")


def test_unknown_kinds_and_options_are_refused(drawn: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no source called 'labelyou'; there are .*labelme"):
        import_source(drawn, tmp_path / "out", "labelyou")
    with pytest.raises(InputError, match="colour is not an option of a Labelme folder"):
        import_source(drawn, tmp_path / "out", colour="red")


@pytest.fixture
def lines() -> Iterator[type[ImportSource]]:
    """A source of answers: a text file with item, rater, label and seconds in each line."""

    @register
    class Lines(ImportSource):
        """item, rater, label, seconds."""

        name = "list of lines"
        description = "a text file of lines"
        kind = "labels"
        suffixes = (".lines",)
        inputs = ("images", "duplicates")
        options: ClassVar = {"separator": "what stands between the words"}

        def matches(self, path: Path) -> bool:
            return path.is_file() and path.suffix == ".lines"

        def read(self, path: Path, report: Report, **inputs: Any) -> Contents:
            rows = [line.split(inputs.get("separator")) for line in path.read_text().splitlines()]
            for row in rows:
                if len(row) != 4:
                    report(Problem("fatal", path, row[0], None, "a line has four words."))
            table = pd.DataFrame([row for row in rows if len(row) == 4], columns=["item", "rater", "label", "seconds"])
            pictures = sorted(inputs["images"].iterdir()) if "images" in inputs else []
            items = [Item(picture.stem, (), image=picture) for picture in pictures]
            return Contents(None, items, table, {"a": "cat"}, {"ann": {"years": 3}}, ["Seconds are kept."])

    yield Lines
    del SOURCES["list of lines"]


def test_answers_become_a_folder_with_a_label_table(lines: type[ImportSource], put: Any, tmp_path: Path) -> None:
    for case in "ab":
        put(tmp_path / "pictures" / f"{case}.png", np.zeros((4, 5), dtype=np.uint8))
    path = tmp_path / "answers.lines"
    path.write_text("a;ann;cat;3\na;bob;dog;4\nb;ann;dog;5\nb;bob\n")
    imported = import_source(path, tmp_path / "out", images=tmp_path / "pictures", separator=";")
    assert (imported.kind, imported.items, imported.raters) == ("labels", 2, {"ann": 2, "bob": 1})
    assert [problem.case for problem in imported.skipped] == ["b"]
    assert "seconds" in (tmp_path / "out" / "labels.csv").read_text()
    found = at.load(tmp_path / "out")
    assert (found.kind, found.classes, found.has_images) == ("labels", ("cat", "dog"), True)
    assert found.answer_matrix().tolist() == [[0, 1], [1, -1]]
    assert found.truth.tolist() == [0, -1]


def test_answers_that_contradict_each_other_are_left_out_and_named_unless_the_last_is_asked_for(
    lines: type[ImportSource], tmp_path: Path
) -> None:
    path = tmp_path / "answers.lines"
    path.write_text("a ann cat 3\na ann dog 4\na bob cat 2\nb bob cat 1\nb bob cat 5\n")
    imported = import_source(path, tmp_path / "out")
    [problem] = imported.skipped
    assert (problem.file, problem.case, problem.rater) == (path, "a", "ann")
    assert "different labels (cat, dog)" in problem.message
    assert imported.raters == {"bob": 3}
    assert at.load(tmp_path / "out").answer_matrix().tolist() == [[0], [0]]
    with pytest.raises(InputError, match=r"case a, rater ann\): the rater gave this item different labels"):
        import_source(path, tmp_path / "strict", strict=True)
    with pytest.raises(InputError, match="different labels: a by ann"):
        at.load(path)
    import_source(path, tmp_path / "out", duplicates="keep-last", overwrite=True)
    assert at.load(tmp_path / "out").answer_matrix().tolist() == [[1, 0], [-1, 0]]


def test_where_all_answers_contradict_each_other_there_is_nothing_to_import(
    lines: type[ImportSource], tmp_path: Path
) -> None:
    (tmp_path / "answers.lines").write_text("a ann cat 3\na ann dog 4\n")
    with pytest.raises(InputError, match=r"nothing in this list of lines can be imported.*different labels"):
        import_source(tmp_path / "answers.lines", tmp_path / "out")


def test_two_imports_into_one_folder_do_not_meet(tmp_path):
    draw(tmp_path / "drawn", "ann", "a", [[1, 1], [6, 1], [6, 5]])
    with only_writer(tmp_path, ".cases.lock"), pytest.raises(InputError, match=r"another job .* is writing there"):
        import_source(tmp_path / "drawn", tmp_path / "cases")
    assert not (tmp_path / "cases").exists()
    import_source(tmp_path / "drawn", tmp_path / "cases")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cases", "drawn"]


def test_pipes_and_links_that_lead_nowhere_are_named_and_the_rest_is_imported(drawn: Path, tmp_path: Path) -> None:
    (drawn / "ann" / "a.json").unlink()
    os.mkfifo(drawn / "ann" / "a.json")
    (drawn / "bob" / "b.json").unlink()
    (drawn / "bob" / "b.json").symlink_to("nowhere")
    imported = import_source(drawn, tmp_path / "cases")
    assert [problem.message for problem in imported.skipped] == [
        "this is a pipe, not a file.",
        "this is a link that leads nowhere.",
    ]
    assert imported.raters == {"ann": 2, "bob": 2}


def test_half_a_character_in_a_class_leaves_that_drawing_out(drawn: Path, tmp_path: Path) -> None:
    draw(drawn, "ann", "a", SQUARE, label="cell\ud800")
    imported = import_source(drawn, tmp_path / "cases")
    assert [problem.case for problem in imported.skipped] == ["a"]
    assert at.load(tmp_path / "cases").classes == ("background", "cell")


def test_half_a_character_in_a_name_becomes_a_safe_one(tmp_path: Path) -> None:
    draw(tmp_path / "drawn", "ann", "a", SQUARE)
    content = (tmp_path / "drawn" / "ann" / "a.json").read_text().replace("a.png", "b\\ud800.png")
    (tmp_path / "drawn" / "ann" / "a.json").write_text(content)
    import_source(tmp_path / "drawn", tmp_path / "cases")
    said = json.loads((tmp_path / "cases" / "dataset.json").read_text(encoding="utf-8"))["imported"]
    assert said["names"] == {"b_": "b\ud800.png"}


def test_what_a_killed_import_left_is_removed_or_put_back(drawn: Path, tmp_path: Path) -> None:
    import_source(drawn, tmp_path / "cases")
    (tmp_path / "cases").rename(tmp_path / ".cases.annotruth-1234-old")
    (tmp_path / ".cases.annotruth-1234").mkdir()
    with pytest.raises(InputError, match="cases"):
        import_source(drawn, tmp_path / "cases")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cases", "drawn"]
    assert len(at.load(tmp_path / "cases")) == 3


def test_answers_that_look_like_formulas_are_cells_that_are_none(lines: type[ImportSource], tmp_path: Path) -> None:
    (tmp_path / "x.lines").write_text("a =1+1 cat 3\na ann -1 4\n")
    import_source(tmp_path / "x.lines", tmp_path / "cases")
    assert (tmp_path / "cases" / "labels.csv").read_text() == "item,rater,label,seconds\na,'=1+1,cat,3\na,ann,-1,4\n"
    assert at.load(tmp_path / "cases" / "labels.csv").raters == ("=1+1", "ann")


def test_a_folder_that_holds_no_data_set_is_not_called_one(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "scores.json").write_text("{}")
    with pytest.raises(InputError, match=r"nothing here looks like a data set .* --from: .*cvat.*label-studio"):
        import_source(tmp_path / "run", tmp_path / "cases")
    assert not (tmp_path / "cases").exists()


def test_a_table_whose_columns_are_unknown_is_not_said_to_need_no_import(tmp_path: Path) -> None:
    (tmp_path / "songs.csv").write_text("foo,bar,baz\n1,2,3\n")
    with pytest.raises(InputError, match=r"no column 'item'.* --item, --rater and --label"):
        import_source(tmp_path / "songs.csv", tmp_path / "out")


def test_a_file_that_is_cut_off_is_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "export.json").write_text('[{"id": 1, "data": {"image"')
    with pytest.raises(InputError, match="line 1, column 28 is not JSON"):
        import_source(tmp_path / "export.json", tmp_path / "out")
