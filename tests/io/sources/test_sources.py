"""The registry: every source passes the common checks, and load and check ask nobody else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.io import SOURCES, Source, check, describe_takers, find_source, load, register
from annotruth.io.problems import Report, reporting
from annotruth.io.sources.checks import CHECKS
from annotruth.io.sources.imports import ImportSource


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table" / "answers.csv"
    path.parent.mkdir()
    path.write_text("item,rater,label\na,ann,cat\na,bob,dog\nb,ann,dog\nb,bob,dog\n")
    return path


@pytest.fixture
def example(request: pytest.FixtureRequest) -> Callable[[str], Path]:
    """A sound data set of a source, by its name; a new source adds its own here."""
    fixtures = {
        "case folder": "cases", "label table": "table", "Labelme folder": "labelme", "CVAT export": "cvat_jobs",
        "CVAT export of tags": "cvat_tags", "COCO file": "coco", "VIA file": "via", "QuPath folder": "qupath",
        "Label Studio export": "label_studio", "Label Studio export of choices": "label_studio_choices",
        "Supervisely project": "supervisely",
    }  # fmt: skip
    return lambda name: request.getfixturevalue(
        fixtures.get(name, f"example_{SOURCES[name].key.replace('-', '_')}")  # of conftest.py
    )


@pytest.fixture
def labelme(tmp_path: Path, put: Any) -> Path:
    for rater in ("ann", "bob"):
        for case in "ab":
            cell = {"label": "cell", "points": [[1, 1], [6, 1], [6, 5]], "shape_type": "polygon"}
            content = {"shapes": [cell], "imagePath": f"{case}.png", "imageHeight": 8, "imageWidth": 9}
            (tmp_path / "drawn" / rater).mkdir(parents=True, exist_ok=True)
            (tmp_path / "drawn" / rater / f"{case}.json").write_text(json.dumps(content))
            put(tmp_path / "drawn" / f"{case}.png", np.zeros((8, 9), dtype=np.uint8))
    return tmp_path / "drawn"


@pytest.fixture
def cvat_jobs(tmp_path: Path, cvat: Any, put: Any) -> Path:
    shapes = '<polygon label="cell" points="2,2;6,2;6,5"/>'
    shapes += '<mask label="cell" rle="1, 2" left="0" top="0" width="3" height="1"/>'
    for name in ("ann", "bob"):
        cvat(tmp_path / "jobs" / name / "annotations.xml").write({"a.png": shapes, "b.png": ""}, name)
    for case in "ab":
        put(tmp_path / "jobs" / f"{case}.png", np.zeros((8, 9), dtype=np.uint8))
    return tmp_path / "jobs"


@pytest.fixture
def cvat_tags(tmp_path: Path, cvat: Any) -> Path:
    for name in ("ann", "bob"):
        images = {"a.png": '<tag label="cat"/>', "b.png": '<tag label="dog"/>'}
        cvat(tmp_path / "tags" / f"{name}.xml").write(images, name, ("cat", "dog"))
    return tmp_path / "tags"


@pytest.fixture
def pictures(tmp_path: Path, put: Any) -> Path:
    for case in "ab":
        put(tmp_path / "drawn" / f"{case}.png", np.zeros((8, 9), dtype=np.uint8))
    return tmp_path / "drawn"


@pytest.fixture
def coco(pictures: Path) -> Path:
    images = [{"id": number, "file_name": f"{case}.png", "height": 8, "width": 9} for number, case in enumerate("ab")]
    cell = {"id": 1, "image_id": 1, "category_id": 5, "segmentation": [[1, 1, 5, 1, 5, 4]]}
    content = {"images": images, "annotations": [cell], "categories": [{"id": 5, "name": "cell"}]}
    (pictures / "ann.json").write_text(json.dumps(content))
    return pictures


@pytest.fixture
def via(pictures: Path) -> Path:
    shape = {"name": "rect", "x": 1, "y": 2, "width": 3, "height": 4}
    region = {"shape_attributes": shape, "region_attributes": {"type": "cell"}}
    content = {f"{case}.png9": {"filename": f"{case}.png", "size": 9, "regions": [region]} for case in "ab"}
    (pictures / "ann.json").write_text(json.dumps(content))
    return pictures


@pytest.fixture
def qupath(pictures: Path) -> Path:
    geometry = {"type": "Polygon", "coordinates": [[[1, 1], [5, 1], [5, 4], [1, 1]]]}
    feature = {"type": "Feature", "geometry": geometry, "properties": {"classification": {"name": "cell"}}}
    for case in "ab":
        (pictures / "ann").mkdir(exist_ok=True)
        (pictures / "ann" / f"{case}.geojson").write_text(json.dumps([feature]))
    return pictures


@pytest.fixture
def label_studio(pictures: Path) -> Path:
    value = {"x": 10, "y": 20, "width": 30, "height": 40, "rotation": 0, "rectanglelabels": ["cell"]}
    region = {"id": "1", "type": "rectanglelabels", "original_width": 9, "original_height": 8, "value": value}
    tasks = [
        {"id": 1, "data": {"image": f"/x/{case}.png"}, "annotations": [{"completed_by": 3, "result": [region]}]}
        for case in "ab"
    ]
    (pictures / "export.json").write_text(json.dumps(tasks))
    return pictures


@pytest.fixture
def supervisely(pictures: Path) -> Path:
    box = {
        "classTitle": "cell",
        "geometryType": "rectangle",
        "labelerLogin": "ann",
        "points": {"exterior": [[1, 1], [4, 2]]},
    }
    for case in "ab":
        (pictures / "ds" / "ann").mkdir(parents=True, exist_ok=True)
        content = {"size": {"height": 8, "width": 9}, "objects": [box]}
        (pictures / "ds" / "ann" / f"{case}.png.json").write_text(json.dumps(content))
    return pictures


@pytest.fixture
def label_studio_choices(tmp_path: Path) -> Path:
    answer = {"id": "1", "type": "choices", "from_name": "kind", "value": {"choices": ["cat"]}}
    work = [{"completed_by": person, "result": [answer]} for person in (3, 4)]
    tasks = [{"id": 1, "data": {"image": f"/x/{case}.png"}, "annotations": work} for case in "ab"]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    return tmp_path / "export.json"


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    "name", sorted(SOURCES.keys() - {"3D Slicer folder", "DICOM folder"})
)  # extras, in their own files
def test_common_checks(name: str, check: Callable[[Source, Path], None], example: Callable[[str], Path]) -> None:
    check(SOURCES[name], example(name))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_common_checks_of_a_described_folder_with_truth_and_drawings(check, cases, put, mask, describe) -> None:
    describe(cases, classes=["background", "lesion"], groups=dict.fromkeys("abc", "patient"))
    put(cases / "truth" / "a.png", mask)
    negative = np.full_like(mask, 255)
    negative[0] = 1
    put(cases / "raters" / "ann.negative" / "b.png", negative)
    check(SOURCES["case folder"], cases)


IMAGES_APART = {
    "hugging-face": "../test_parquet_pictures.py::test_answers_come_with_their_pictures",
    "lidc": "test_lidc.py::test_images_are_found_by_the_slices_identifier",
    "pylidc": "test_pylidc.py::test_images_are_found_by_series_and_slice",
}
"""Sources whose example has no images, and the test in which there are some."""
NUMBERED = tuple(f"rater_{number}" for number in range(1, 8))
RATERS = {
    "acdc": ("scribbles",), "argilla": ("u1", "u2"), "brats": ("consensus",), "chase": ("observer_1", "observer_2"),
    "cityscapes": ("coarse", "fine"), "coco": ("ann",), "cvat": ("ann", "bob"), "cvat-tags": ("ann", "bob"),
    "doccano": ("ann", "bob"), "drive": ("observer_1", "observer_2"),
    "gleason-2019": ("pathologist_1", "pathologist_2"), "hugging-face": ("a1", "a2", "a3"), "isbi-ms": NUMBERED[:2],
    "labelbox": ("ann@x.org", "bob@x.org"), "labelbox-choices": ("ann", "bob"),
    "label-studio": ("user_3",), "label-studio-choices": ("user_3", "user_4"), "labelme": ("ann", "bob"),
    "les-av": ("annotator",), "lidc": NUMBERED[:3], "mask-folder": ("ann", "bob"), "msd": ("labels",),
    "mturk": ("W1", "W2"), "nnunet": ("labels", "bob"), "prodigy": ("films-ann", "films-bob"),
    "pylidc": NUMBERED[:2], "qubiq": NUMBERED[:3], "qupath": ("ann",), "refuge": NUMBERED, "riga": NUMBERED[:3],
    "stare": ("Hoover", "Kouznetsova"), "supervisely": ("ann",), "table": ("w1", "w2"), "toloka": ("w1", "w2"),
    "via": ("ann",),
}  # fmt: skip
"""Who the raters of the examples are, by where the table says that their names come from."""
VOLUMES_APART = {
    "mask-folder": "test_mask_folder.py::test_layers_of_volumes",
    "qubiq": "test_qubiq.py::test_volumes",
}
"""Sources of planes and of volumes, whose example is one of planes."""


@pytest.mark.parametrize(
    "name",
    sorted(
        name
        for name, source in SOURCES.items()
        if isinstance(source, ImportSource) and source.key not in ("slicer", "dicom")  # extras, in their own files
    ),
)
def test_the_table_of_sources_is_true_of_the_examples(
    name: str, example: Callable[[str], Path], pictures: Path
) -> None:
    source = SOURCES[name]
    assert isinstance(source, ImportSource)
    path = example(name)
    found = load(path, images=pictures) if source.key in ("cvat-tags", "label-studio-choices") else load(path)
    assert ("class" in source.held) == (found.kind == "labels")
    assert found.raters == RATERS[source.key]
    if source.key in IMAGES_APART:
        assert _is_test(IMAGES_APART[source.key])
    else:
        assert ("image" in source.held) == found.has_images
    if source.key in VOLUMES_APART:
        assert _is_test(VOLUMES_APART[source.key])
    elif found.kind == "masks":
        assert ("3D" in source.held) == (len(found.shape(0)) == 3)


def _is_test(place: str) -> bool:
    file, _, name = place.partition("::")
    return f"def {name}(" in (Path(__file__).parent / file).read_text()


@pytest.fixture
def lines() -> Iterator[type[Source]]:
    """A source that looks inside: a CSV file whose first line names it."""

    @register
    class Lines(Source):
        """rater and label of one item, a line each."""

        name = "list of lines"
        description = "a text file that begins with #lines"
        kind = "labels"
        suffixes = (".csv",)

        def matches(self, path: Path) -> bool:
            return path.is_file() and path.read_bytes().startswith(b"#lines")

        def load(self, path: Path, **inputs: Any) -> at.Annotations:
            assert inputs == {}
            rows = [line.split() for line in path.read_text().splitlines()[1:]]
            if any(len(row) != 2 for row in rows):
                raise InputError(f"{path}: a line is a rater and a label. Correct it.")
            return at.Annotations.from_table(pd.DataFrame(rows, columns=["rater", "label"]).assign(item="a"))

        def check(self, path: Path, report: Report, progress: Any = None, **inputs: Any) -> None:
            with reporting(report, path):
                self.load(path)

    yield Lines
    del SOURCES["list of lines"]


def test_a_source_that_looks_inside_is_asked_before_a_general_one(lines: type[Source], tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("#lines\nann cat\nbob dog\n")
    assert isinstance(find_source(path), lines)
    assert load(path).raters == ("ann", "bob")
    assert check(path) == []
    path.write_text("#lines\nann\n")
    assert [problem.message for problem in check(path)] == ["a line is a rater and a label."]
    path.write_text("item,rater,label\na,ann,cat\n")
    assert find_source(path).name == "label table"


def test_messages_name_every_source(lines: type[Source], tmp_path: Path) -> None:
    (tmp_path / "a.xyz").touch()
    with pytest.raises(InputError, match=r"Known are .*case-folder, .*label-table, .*list-of-lines.*--from"):
        load(tmp_path / "a.xyz")
    assert "a label table" in describe_takers("images")


def test_inputs_that_a_source_does_not_take_are_refused_by_check_too(lines: type[Source], tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("#lines\nann cat\nbob dog\n")
    with pytest.raises(InputError, match="features= goes with a label table; a list of lines"):
        load(path, features=path)
    [problem] = check(path, features=path)
    assert "features= goes with a label table" in problem.message


def test_a_name_is_given_once(lines: type[Source]) -> None:
    with pytest.raises(InputError, match="already a source called 'list of lines'"):
        register(lines)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("check_load_and_check_agree", {"check": lambda self, path, report, progress=None: None}),
        ("check_refuses_what_is_not_its_own", {"matches": lambda self, path: path.is_file()}),
        ("check_says_what_it_is", {"kind": "boxes"}),
        ("check_loads_a_sound_example", {"kind": "masks"}),
        ("check_writes_nothing", {"check": lambda self, path, *_: (path.parent / "log").write_text("checked")}),
        ("check_is_found_by_its_path", {"matches": lambda self, path: False}),
    ],
)
def test_the_common_checks_find_a_bad_source(
    lines: type[Source], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, change: dict[str, Any]
) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("#lines\nann cat\nbob dog\n")
    source = SOURCES["list of lines"]
    [failing] = [each for each in CHECKS if each.__name__ == name]
    failing(source, path)
    for attribute, value in change.items():
        monkeypatch.setattr(lines, attribute, value)
    with pytest.raises(AssertionError):
        failing(source, path)


def test_where_known_truth_lies(cases: Path, put: Any, mask: np.ndarray, table: Path, tmp_path: Path) -> None:
    folder, answers = SOURCES["case folder"], SOURCES["label table"]
    put(cases / "truth" / "a.png", mask)
    assert folder.find_truth(cases) == folder.find_truth(cases / "truth") == (cases / "truth").resolve()
    assert answers.find_truth(table) == table
    with pytest.raises(InputError, match="known truth of a case folder is a folder of masks"):
        folder.find_truth(table)
    (tmp_path / "truth.json").write_text(json.dumps({}))
    with pytest.raises(InputError, match="known truth of a label table is a table"):
        answers.find_truth(tmp_path / "truth.json")
    with pytest.raises(InputError, match="no such file or folder of known truth"):
        answers.find_truth(tmp_path / "nowhere")


def test_check_reads_the_truth_of_a_table(table: Path, tmp_path: Path) -> None:
    truth = tmp_path / "truth.csv"
    truth.write_text("item,truth\na,cat\na,dog\n")
    [problem] = check(table, truth=truth)
    assert (problem.file, problem.message) == (truth, "a has two truths, cat and dog.")
    with pytest.raises(InputError, match="a has two truths"):
        load(table, truth)


def test_pictures_and_features_at_once_are_fatal_for_check_too(table: Path, tmp_path: Path) -> None:
    features = tmp_path / "features.csv"
    features.write_text("item,x\na,1\nb,2\n")
    (tmp_path / "pictures").mkdir()
    for item in "ab":
        np.save(tmp_path / "pictures" / f"{item}.npy", np.zeros((4, 4)))
    both = {"images": tmp_path / "pictures", "features": features}
    assert [problem.message[:22] for problem in check(table, **both)] == ["Give either pictures o"]
    with pytest.raises(InputError, match="either pictures or features"):
        load(table, **both)
