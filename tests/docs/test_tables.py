"""Tables and drawings in the documentation follow from the code."""

from __future__ import annotations

import sys
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from annotruth.io import SOURCES
from annotruth.io.exports import EXPORTS
from annotruth.io.sources.imports import ImportSource
from annotruth.methods import METHODS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tables():
    return _tool("tables")


@pytest.fixture(scope="module")
def ways():
    return _tool("ways")


def _tool(name: str) -> ModuleType:
    sys.path.insert(0, str(ROOT))
    try:
        return import_module(f"tools.{name}")
    finally:
        sys.path.remove(str(ROOT))


def test_no_table_is_stale(tables):
    stale = [str(path.relative_to(ROOT)) for path in tables.stale()]
    assert not stale, f"run `python -m tools.tables`: {', '.join(stale)}"


def test_every_method_and_option_is_in_the_reference(tables):
    page = (ROOT / "docs/reference/methods.md").read_text()
    for (name, _), method in METHODS.items():
        assert f"| `{name}` |" in page
        assert {field.name for field in fields(method)} <= set(tables.option_meanings(method)), name


def test_a_new_method_makes_the_tables_stale(tables, monkeypatch):
    mean = METHODS["mean", "masks"]
    new = type("BrandNew", (mean,), {"__module__": mean.__module__})
    monkeypatch.setitem(METHODS, ("brand-new", "masks"), new)
    assert len(tables.stale()) == 2


def test_no_module_is_drawn_that_is_not_there(ways):
    assert ways.missing() == []


DRAWN = {
    "cityscapes": {"polygon": "test_fine_and_coarse"},
    "coco": {
        "mask": "test_polygons_and_run_lengths",
        "polygon": "test_polygons_and_run_lengths",
        "box": "test_a_box_counts_where_nothing_else_is_drawn",
    },
    "cvat": {
        **dict.fromkeys(("mask", "polygon", "box", "ellipse"), "test_every_kind_of_area_is_painted_by_its_order"),
        "point": "test_points_and_lines_are_left_out_of_a_mask_and_the_rest_is_kept",
    },
    "dicom": {"mask": "test_segmentations_lie_on_their_series", "polygon": "test_contours_are_filled_on_the_series"},
    "label-studio": {
        **dict.fromkeys(("mask", "polygon", "box", "ellipse"), "test_every_kind_of_region"),
        "point": "test_points_are_left_out_of_masks_and_are_objects",
    },
    "labelme": {
        **dict.fromkeys(("mask", "polygon", "box", "ellipse"), "test_every_kind_of_area"),
        "point": "test_points_are_objects",
    },
    "lidc": {"polygon": "test_outlines_lie_outside_and_holes_are_cut"},
    "pylidc": {"polygon": "test_it_draws_what_the_xml_draws"},
    "qupath": {"polygon": "test_polygons_have_holes_and_parts", "point": "test_what_has_no_area_is_named"},
    "supervisely": {
        **dict.fromkeys(("mask", "polygon", "box"), "test_every_kind_of_area"),
        "point": "test_points_are_objects",
    },
    "via": {
        **dict.fromkeys(("polygon", "box", "ellipse"), "test_every_kind_of_area"),
        "point": "test_points_are_objects",
    },
}
"""The test behind each kind of drawing in the table of sources; papers' masks are looked at in their examples."""
BACK = {
    "coco": "test_exports.py::test_masks_come_back_under_their_own_names",
    "cvat": "test_exports.py::test_masks_come_back_under_their_own_names",
    "dicom": "test_dicom.py::test_segments_refer_to_their_slices",
    "label-studio": "test_label_studio.py::test_brushes_hold_the_fused_masks",
    "nnunet": "test_nnunet.py::test_nnunet_itself_finds_nothing_wrong",
    "slicer": "test_slicer.py::test_volumes_come_back_in_their_place",
}
"""The test behind each export."""


def test_every_cell_of_the_table_of_sources_has_a_test():
    """Images, classes and volumes are looked at in tests/io/sources/test_sources.py, for all sources alike."""
    sources = {source.key: source for source in SOURCES.values() if isinstance(source, ImportSource)}
    for key, source in sources.items():
        file = ROOT / "tests/io/sources" / f"test_{key.replace('-', '_')}.py"
        drawn = set(source.held) & {"polygon", "box", "ellipse", "point"}
        assert drawn <= DRAWN.get(key, {}).keys(), key
        assert set(DRAWN.get(key, {})) <= set(source.held), key
        for name in DRAWN.get(key, {}).values():
            assert f"def {name}(" in file.read_text(), (key, name)
        assert source.identity, key


def test_every_export_has_a_test():
    assert BACK.keys() == EXPORTS.keys()
    for place in BACK.values():
        file, _, name = place.partition("::")
        assert f"def {name}(" in (ROOT / "tests/io/exports" / file).read_text(), place
