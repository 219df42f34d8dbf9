"""Estimators are known by name without being listed, and without being loaded."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

import annotruth as at
import annotruth.fusion
from annotruth.fusion.registry import METHODS, Listed, listed_estimators, method_names, register

ROOT = Path(__file__).parents[2]
FOUND = {
    "averaged": "AveragedModels",
    "clustered-dawid-skene": "ClusteredDawidSkene",
    "collate": "COLLATE",
    "dawid-skene": "DawidSkene",
    "glad": "GLAD",
    "graph-cut-staple": "GraphCutSTAPLE",
    "hierarchical-dawid-skene": "HierarchicalDawidSkene",
    "ibcc": "IBCC",
    "kos": "KOS",
    "m-msr": "MMSR",
    "mace": "MACE",
    "majority": "MajorityVote",
    "mean": "MeanLabel",
    "non-local-staple": "NonLocalSTAPLE",
    "ordinal-dawid-skene": "OrdinalDawidSkene",
    "shape-based": "ShapeBasedAverage",
    "simple": "SIMPLE",
    "spatial-staple": "SpatialSTAPLE",
    "staple": "STAPLE",
    "steps": "STEPS",
    "wawa": "Wawa",
    "zero-based-skill": "ZeroBasedSkill",
}


def test_names_found_in_files_are_those_that_are_registered() -> None:
    assert {name: listed.class_name for name, listed in listed_estimators().items()} == FOUND
    for name, (module, class_name) in listed_estimators().items():
        estimator = getattr(import_module(module), class_name)
        assert METHODS[name] is estimator
        assert METHODS[name].__module__ == module


def test_a_file_in_the_folder_is_enough(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "coin.py").write_text('@register("coin")\nclass Coin(FusionEstimator):\n    pass\n')
    (tmp_path / "other.py").write_text('"""register("no")"""\nclass Other:\n    pass\n')
    monkeypatch.setattr("annotruth.fusion.registry.__file__", str(tmp_path / "registry.py"))
    assert listed_estimators.__wrapped__() == {"coin": Listed("annotruth.fusion.coin", "Coin")}


def test_every_estimator_is_a_name_of_the_package() -> None:
    for class_name in FOUND.values():
        assert class_name in at.__all__
        assert class_name in annotruth.fusion.__all__
        assert getattr(at, class_name) is getattr(annotruth.fusion, class_name)


def test_a_name_that_is_taken_is_refused() -> None:
    at.STAPLE()
    with pytest.raises(ValueError, match="'staple' is taken by STAPLE"):
        register("staple")(at.MajorityVote)


def test_help_lists_every_estimator(annotruth: Callable) -> None:
    words = annotruth("fuse", "--help").out.replace("│", " ").split()
    assert all(any(word.strip(".,") == name for word in words) for name in method_names())


def test_names_and_help_load_no_numbers() -> None:
    program = (
        "import sys, annotruth, annotruth.cli\n"
        "print({'numpy', 'numba', 'scipy', 'torch', 'sklearn'} & sys.modules.keys())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/fuse.md", "docs/reference/methods.md"])
def test_tables_in_the_documentation_have_every_estimator(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert not [name for name in FOUND.values() if f"`{name}`" not in text]


def test_the_command_lines_page_has_every_name() -> None:
    row = next(
        line for line in (ROOT / "docs/reference/command-line.md").read_text().splitlines() if "`dawid-skene`" in line
    )
    assert not [name for name in method_names() if f"`{name}`" not in row]


def test_the_api_page_has_every_estimator() -> None:
    text = (ROOT / "docs/reference/api/fusion.md").read_text(encoding="utf-8")
    assert not [each for each in listed_estimators().values() if f"::: {'.'.join(each)}\n" not in text]
