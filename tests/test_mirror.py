"""Tests lie where the module they test lies: ``tests/io/test_files.py`` tests ``annotruth/io/files.py``.

``tests/<package>/test_<package>.py`` tests what a package says in its ``__init__.py``.
"""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "annotruth"

TOPICS = {
    "test_mirror.py": "is about the tests themselves",
    "test_packages.py": "wheel and source package as they are built",
    "cli/test_drawings.py": "coarse drawings go through simulate, check, train and report",
    "cli/test_labels.py": "a label table goes through all verbs, on one study that is trained on once",
    "desk/test_browser.py": "the desk in a real browser, which takes its time and is not everywhere",
    "docs/test_docstrings.py": "docstrings as the site shows them",
    "docs/test_shown_commands.py": "holds the documentation against the command line",
    "docs/test_tables.py": "tables of the documentation follow from the code",
    "experiments/data/test_label_data.py": "what all data of experiments on label tables have in common",
    "experiments/data/test_mask_data.py": "what all data of experiments on masks have in common",
    "fusion/folder/test_many_workers.py": "threads, processes and Dask must come to the same bits",
    "fusion/test_memory.py": "is measured in a process of its own, over the whole of fusion",
    "hostile/test_hostile.py": "bad input of every kind, to every verb",
    "io/sources/test_case_folder_drawings.py": "drawings, which case folders may hold beside masks",
    "io/sources/test_case_folder_sound.py": "case folders of which some cases are bad",
    "io/sources/test_held.py": "what the table in the documentation says of sources, cell by cell",
    "io/sources/test_hostile.py": "files of all labelling tools with odd values in odd places",
    "io/sources/test_hostile_tables.py": "odd values in tables and papers' folders, over many sources",
    "io/sources/test_check.py": "check finds what load refuses, in every source and module",
    "methods/test_contract.py": "the common checks, over every method and task",
    "methods/test_label_recovery.py": "what methods find in label tables with known raters, beside each other",
    "methods/test_label_tables.py": "what losses of several methods on label tables have in common",
    "methods/test_recovery.py": "what it is all for, from simulated masks to the truth",
    "nn/confusion/test_pixel_loss.py": "the gradients of pixel.py that are written by hand",
    "references/test_datumaro.py": "another program's readers and writers, in an environment of its own",
    "references/test_label_studio_sdk.py": "likewise",
    "references/test_nnunetv2.py": "likewise",
    "references/test_pycocotools.py": "likewise",
    "references/test_slicerio.py": "likewise",
    "reporting/test_browser.py": "the page in a real browser, which takes its time and is not everywhere",
    "training/test_ddp.py": "two processes must learn what one learns, through all modules",
    "training/test_own_network.py": "networks of users meet checks, training, storage and prediction",
    "training/test_repeatable.py": "the same seed gives the same bits, also after a resumption",
    "training/test_sampling.py": "samples of all methods, through methods/inference.py and the segmenter",
    "training/test_volumes.py": "volumes from files to predictions, through all packages",
}
"""Test files that mirror no module, and why."""

LONG = 60
"""Lines of code from which a module needs a test file of its own."""

TESTED_ELSEWHERE = {
    "cli/printing.py": "cli/test_compare.py",
    "desk/cases.py": "desk/test_app.py",  # which asks for cases as pages do
    "experiments/tables/cifar10.py": "experiments/tables/test_tables.py",
    "experiments/tables/networks.py": "experiments/tables/test_tables.py",
    "experiments/tables/zhang2020.py": "experiments/tables/test_tables.py",
    "experiments/tables/zhang2020_medical.py": "experiments/tables/test_tables.py",
    "fusion/_em/pattern_kernels.py": "fusion/test_votes.py",
    "fusion/base.py": "fusion/test_checks.py",  # what all estimators have from it
    "fusion/folder/masks.py": "fusion/folder/test_many_workers.py",
    "fusion/folder/tables.py": "fusion/folder/test_folder.py",
    "fusion/intervals.py": "fusion/test_resampling.py",
    "fusion/stream/blocks.py": "fusion/stream/test_stream.py",  # which goes through all passes over a table
    "fusion/stream/pieces.py": "fusion/stream/test_stream.py",
    "fusion/weighted.py": "fusion/test_wawa.py",
    "fusion/stream/results.py": "fusion/stream/test_stream.py",
    "fusion/stream/sums.py": "fusion/stream/test_stream.py",
    "fusion/other_answers/base.py": "fusion/other_answers/test_other_answers.py",  # what all models have from it
    "fusion/other_answers/checks.py": "fusion/other_answers/test_other_answers.py",
    "io/__init__.py": "io/sources/test_sources.py",  # which imports it whole
    "io/case_files.py": "io/sources/test_case_folder.py",  # whose files they are
    "io/dicom_files.py": "io/sources/test_dicom.py",
    "io/sources/checks.py": "io/sources/test_sources.py",
    "io/volumes.py": "io/sources/test_slicer.py",
    "metrics/__init__.py": "metrics/test_registry.py",  # a list of names
    "nn/__init__.py": "nn/test_labels.py",  # a list of names, of which an old one warns
    "reporting/content.py": "reporting/test_reporting.py",
    "simulate/simulation.py": "simulate/test_masks.py",
    "training/checks.py": "methods/test_contract.py",
    "training/prediction.py": "training/test_segmenter.py",
}
"""Long modules without one, and the file that tests them."""


def mirror_of(module: Path) -> str:
    """The test file of a module, relative to the tests."""
    name = module.parent.name if module.stem == "__init__" else module.stem
    return (module.relative_to(SOURCE).parent / f"test_{name}.py").as_posix()


def lines_of_code(module: Path) -> int:
    """How many lines are neither empty nor comment nor docstring."""
    text = module.read_text(encoding="utf-8")
    words: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            words.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(map(str.strip, text.splitlines()), start=1)
    return sum(bool(line) and not line.startswith("#") and number not in words for number, line in lines)


MODULES = {path.relative_to(SOURCE).as_posix(): path for path in SOURCE.rglob("*.py")}
MIRRORS = {mirror_of(path) for path in MODULES.values()}
FILES = {path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")}


def test_every_test_file_mirrors_a_module_or_has_a_topic():
    assert set(TOPICS) == FILES - MIRRORS, "name a test after the module it tests, or say in TOPICS what it is about"
    for name in FILES:
        assert ast.get_docstring(ast.parse((TESTS / name).read_text(encoding="utf-8"))), f"{name} says what it is about"


def test_every_long_module_has_a_test_file():
    bare = {name for name, path in MODULES.items() if lines_of_code(path) > LONG and mirror_of(path) not in FILES}
    assert bare == set(TESTED_ELSEWHERE), "write a test file, or say in TESTED_ELSEWHERE which one tests the module"
    assert set(TESTED_ELSEWHERE.values()) <= FILES
