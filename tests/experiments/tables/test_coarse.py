"""A table of coarse drawings in miniature."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from annotruth.errors import ContradictionWarning
from annotruth.experiments import run_experiment
from annotruth.experiments.tables import coarse

pytestmark = pytest.mark.filterwarnings(f"ignore::{ContradictionWarning.__module__}.ContradictionWarning")


def test_a_table_is_made(tmp_path):
    few = tuple(row for row in coarse.MNIST.rows if row.label in ("coarse-cm", coarse.SEMI, "clean", "box-sup, boxes"))
    quick = replace(
        coarse.MNIST,
        rows=few,
        findings=coarse.MNIST.findings[:1],
        quick=replace(coarse.MNIST.quick, sizes={"pool": 24, "test": 8, "train": 16}, training={"max_epochs": 1}),
    )
    table = run_experiment(quick, Path(tmp_path), quick=True)
    assert [row["method"] for row in table["rows"]] == [row.label for row in few]
    assert all(0 <= row["miou"]["mean"] <= 1 for row in table["rows"])
    assert (tmp_path / "coarse-mnist-quick.png").is_file()
