"""Packages that are built hold what they need."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def tool():
    sys.path.insert(0, str(ROOT))
    try:
        return import_module("tools.wheel")
    finally:
        sys.path.remove(str(ROOT))


@pytest.mark.parametrize("kind", ["sdist", "wheel"])
def test_a_package_holds_every_file_it_needs(tool, tmp_path, kind):
    pytest.importorskip("hatchling")
    builders = import_module(f"hatchling.builders.{kind}")
    builder = {"sdist": "SdistBuilder", "wheel": "WheelBuilder"}[kind]
    made = list(getattr(builders, builder)(str(ROOT)).build(directory=str(tmp_path), versions=["standard"]))
    assert len(made) == 1
    assert tool.missing_files(Path(made[0])) == []


def test_what_a_package_lacks_is_named(tool, tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        archive.writestr("annotruth/__init__.py", "")
    assert "annotruth/cli/__init__.py" in tool.missing_files(tmp_path / "a.whl")
    assert "annotruth/__init__.py" not in tool.missing_files(tmp_path / "a.whl")


def test_a_source_package_without_this_projects_caches(tool, tmp_path):
    pytest.importorskip("hatchling")
    import tarfile

    builders = import_module("hatchling.builders.sdist")
    made = next(iter(builders.SdistBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])))
    with tarfile.open(made) as archive:
        names = archive.getnames()
    assert not [name for name in names if "__pycache__" in name or "/.venv" in name]
