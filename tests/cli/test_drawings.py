"""Coarse drawings at the command line: simulate, check, train with known masks."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from annotruth.cli import app
from annotruth.io import load

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.AnnotruthWarning")


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output or result.exception
    return result.output


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drawings")
    rng = np.random.default_rng(0)
    for name in ("images", "truth"):
        (folder / "source" / name).mkdir(parents=True)
    for case in range(8):
        truth = np.zeros((16, 16), dtype=np.uint8)
        truth[3:12, 2 + case % 4 : 10] = 1
        np.save(folder / f"source/truth/{case}.npy", truth)
        np.save(folder / f"source/images/{case}.npy", truth * 2 + 0.2 * rng.standard_normal((16, 16)))
    run("simulate", folder / "source", "-o", folder / "cases", "--drawings", 0.5, "--strength", 0)
    return folder / "cases"


def test_simulated_drawings_are_a_case_folder(cases):
    assert {path.name for path in (cases / "raters").iterdir()} == {"rater_1", "rater_1.negative"}
    ann = load(cases)
    truth = ann.item_truth(0)
    assert (ann.item_masks(0)[0] == 1).sum() == round(0.5 * (truth == 1).sum())
    assert not ((ann.item_negatives(0)[0] == 1) & (truth == 1)).any()
    run("check", cases)


def test_known_masks_are_learnt_from(cases, tmp_path):
    run(
        "train", cases, "--method", "coarse-cm", "--known-masks", "--epochs", 1, "-q", "-o", tmp_path / "run",
        "--option", "complement=learnt",
    )  # fmt: skip
    assert json.loads((tmp_path / "run/run.json").read_text())["known_masks"] is True
    run("report", tmp_path / "run")


def test_known_masks_need_a_method_that_takes_them(cases, tmp_path):
    result = CliRunner().invoke(
        app, ["train", str(cases), "--method", "majority", "--known-masks", "-o", str(tmp_path / "run")]
    )
    assert result.exit_code != 0
    assert "coarse-cm" in str(result.exception)
