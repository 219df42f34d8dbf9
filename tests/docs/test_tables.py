"""Tables and drawings in the documentation follow from the code."""

from __future__ import annotations

import sys
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

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
