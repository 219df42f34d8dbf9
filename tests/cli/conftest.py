"""A dozen digits that were simulated and trained on at the command line, and how an error must look."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from annotruth.cli import app
from annotruth.errors import IdentifiabilityWarning
from annotruth.simulate import noisy_digits


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``digits`` (images and truth), ``cases`` (with raters) and ``run`` (trained for one epoch)."""
    home = tmp_path_factory.mktemp("home")
    images, truth, _ = noisy_digits(12)
    for kind, arrays in (("images", (255 * images[:, 0]).astype(np.uint8)), ("truth", truth)):
        (home / "digits" / kind).mkdir(parents=True)
        for number, array in enumerate(arrays):
            Image.fromarray(array).save(home / "digits" / kind / f"digit_{number}.png")
    for command in (
        ("simulate", home / "digits", "-o", home / "cases"),
        ("train", home / "cases", "-o", home / "run", "--epochs", 1, "--quiet", "--accelerator", "cpu"),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IdentifiabilityWarning)
            app([str(word) for word in command], standalone_mode=False)
    return home


@pytest.fixture(scope="session")
def folds(home: Path) -> Path:
    """A folder with runs of two folds, trained for one epoch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        options = ("--method", "mean", "--fold", "all", "--folds", 2, "--epochs", 1, "--quiet", "--accelerator", "cpu")
        app([str(word) for word in ("train", home / "cases", "-o", home / "folds", *options)], standalone_mode=False)
    return home / "folds"


@pytest.fixture
def cases(home: Path, tmp_path: Path) -> Path:
    """A copy of the cases, to be spoilt."""
    return Path(shutil.copytree(home / "cases", tmp_path / "cases"))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def assert_one_paragraph() -> Callable[[str], None]:
    """Find an error of one paragraph, without a traceback."""

    def look(text: str) -> None:
        assert text.startswith("error: ")
        assert text.count("\n") == 1
        assert "Traceback" not in text

    return look
