"""annotruth predict: masks and probabilities in the images' own format."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image

# Trainings of one epoch: a model that knows little is rightly doubted.
pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")

Run = Callable[..., Any]


RATERS = ("blank", "good", "over", "under", "wrong")


def test_predicting(annotruth: Run, home: Path, out: Path, fingerprint: Run) -> None:
    before = fingerprint(home)
    ended = annotruth("predict", home / "run", home / "digits" / "images", "-o", out, "-q")
    assert ended.code == 0
    assert "12 images labelled" in ended.out
    label = np.asarray(Image.open(out / "labels" / "digit_3.png"))
    assert label.shape == (28, 28)
    assert set(np.unique(label)) <= {0, 1}
    assert (out / "probabilities" / "digit_3.tiff").is_file()
    one = annotruth("predict", home / "run" / "model.annotruth", home / "digits/images/digit_3.png", "-o", out / "one")
    assert one.code == 0
    np.testing.assert_array_equal(np.asarray(Image.open(out / "one" / "labels" / "digit_3.png")), label)
    assert fingerprint(home) == before


def test_predicting_after_a_recurrence_and_with_confidences(annotruth: Run, home: Path, out: Path) -> None:
    run, images = out / "run", home / "digits" / "images"
    assert (
        annotruth(
            "train", home / "cases", "-o", run, "--method", "mrprism", "--epochs", 1, "--quiet", "--accelerator", "cpu"
        ).code
        == 0
    )
    found = []
    for number, asked in enumerate([(), ("--recurrence", 0), ("--confidence", "over=9", "--confidence", "blank=0")]):
        assert annotruth("predict", run, images, "-o", out / str(number), "-q", *asked).code == 0
        found.append(tifffile.imread(out / str(number) / "probabilities" / "digit_3.tiff"))
    assert not np.allclose(found[0], found[1])
    assert not np.allclose(found[0], found[2])


def test_predicting_with_a_dense_crf(annotruth: Run, home: Path, out: Path) -> None:
    image = home / "digits" / "images" / "digit_3.png"
    for name, asked in (("plain", ()), ("refined", ("--crf",))):
        assert annotruth("predict", home / "run", image, "-o", out / name, "-q", *asked).code == 0
    plain, refined = (tifffile.imread(out / name / "probabilities" / "digit_3.tiff") for name in ("plain", "refined"))
    assert not np.allclose(plain, refined)
    np.testing.assert_array_equal(
        np.asarray(Image.open(out / "refined" / "labels" / "digit_3.png")), refined.argmax(axis=0)
    )


def test_predicting_with_folds_gives_the_mean(annotruth: Run, home: Path, folds: Path, out: Path) -> None:
    images = home / "digits" / "images"
    models = {
        "all": [folds], "0": [folds / "fold_0"], "1": [folds / "fold_1"],
        "both": [folds / "fold_0", folds / "fold_1" / "model.annotruth"],
    }  # fmt: skip
    found = {}
    for name, runs in models.items():
        ended = annotruth("predict", *runs, images, "-o", out / name, "-q")
        assert ended.code == 0, ended.err
        assert ("mean of 2 models" in ended.out) == (name in ("all", "both"))
        found[name] = tifffile.imread(out / name / "probabilities" / "digit_3.tiff")
    np.testing.assert_allclose(found["all"], (found["0"] + found["1"]) / 2, atol=1e-6)
    np.testing.assert_array_equal(found["all"], found["both"])
    assert not np.allclose(found["0"], found["1"])


def test_an_unfinished_fold_is_named(annotruth: Run, home: Path, folds: Path, tmp_path: Path, out: Path) -> None:
    run = Path(shutil.copytree(folds, tmp_path / "folds"))
    (run / "fold_1" / "model.annotruth").unlink()
    ended = annotruth("predict", run, home / "digits" / "images", "-o", out, "-q")
    assert ended.code == 2
    assert f"There is no model {run / 'fold_1' / 'model.annotruth'}" in ended.err
    assert not out.exists()


def test_what_a_fold_cannot_be_asked_is_refused(annotruth: Run, home: Path, folds: Path, out: Path) -> None:
    ended = annotruth("predict", folds, home / "digits" / "images", "-o", out, "-q", "--recurrence", 0)
    assert ended.code == 2
    assert not out.exists()
