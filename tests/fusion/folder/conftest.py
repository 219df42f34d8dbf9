"""Case folders to be fused, spoilt where that is asked for, and how tests read what fusion leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from annotruth import Annotations
from annotruth.fusion.checks import noisy_masks
from annotruth.io import write_case_folder


@pytest.fixture(scope="session")
def write_folder() -> Callable[..., None]:
    """Write cases case_0, case_1 … without images, each by five raters."""

    def write(folder: Path, n_items: int = 3) -> None:
        masks, _ = noisy_masks((24, 20), n_items)
        annotations = Annotations.from_masks(
            masks,
            raters=["ann", "bob", "cy", "di", "ed"],
            classes=["sky", "sea", "land"],
            items=[f"case_{number}" for number in range(n_items)],
        )
        write_case_folder(folder, annotations, ".npy")

    return write


@pytest.fixture(scope="session")
def spoil() -> Callable[[Path, str], None]:
    """Spoil bob's mask of case_1."""

    def change(cases: Path, how: str) -> None:
        file = cases / "raters" / "bob" / "case_1.npy"
        mask = np.load(file)
        if how == "another size":
            np.save(file, mask[:-1])
        elif how == "a label outside":
            mask[3, 3] = 7
            np.save(file, mask)
        elif how == "fractions":
            np.save(file, mask + 0.5)
        elif how == "damaged":
            file.write_bytes(file.read_bytes()[:100])
        elif how == "300 classes":
            np.save(file, mask.astype(np.int16) + 300)
        elif how == "another format":
            file.rename(file.with_suffix(".psd"))

    return change


@pytest.fixture(scope="session")
def results() -> Callable[[Path], dict[str, bytes]]:
    """Read every result but ``fusion.json``, which tells the time."""

    def read(folder: Path) -> dict[str, bytes]:
        files = [path for path in folder.rglob("*") if path.is_file() and path.name != "fusion.json"]
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}

    return read


@pytest.fixture(scope="session")
def note() -> Callable[[Path], dict[str, Any]]:
    """Read ``fusion.json``."""
    return lambda folder: json.loads((folder / "fusion.json").read_text())


@pytest.fixture
def cases(tmp_path: Path, write_folder: Callable[..., None]) -> Path:
    """Three cases of five raters."""
    write_folder(tmp_path / "cases")
    return tmp_path / "cases"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"
