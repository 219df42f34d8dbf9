"""Tables and drawings in the documentation follow from the code."""

from __future__ import annotations

import sys
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from annotruth.io.exports import EXPORTS
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


BACK = {
    "coco": "references/test_pycocotools.py::test_it_reads_what_we_write",
    "cvat": "references/test_datumaro.py::test_it_reads_the_masks_we_write",
    "dicom": "io/exports/test_dicom.py::test_segments_refer_to_their_slices",
    "label-studio": "references/test_label_studio_sdk.py::test_its_interface_takes_our_masks",
    "nnunet": "references/test_nnunetv2.py::test_it_reads_the_labels_we_write",
    "slicer": "references/test_slicerio.py::test_it_reads_what_we_write",
}
"""The test in which another program reads an export; what is imported is looked at in tests/io/sources/test_held.py."""


def test_every_export_is_read_by_another_program_in_a_test():
    assert BACK.keys() == EXPORTS.keys()
    for place in BACK.values():
        file, _, name = place.partition("::")
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(), place
