"""Known labels of small cases, to be written for other programs and to be read as they write them.

``make references`` runs the tests here in an environment of their own, as the programs' pins clash with ours; elsewhere
those whose program is not installed are skipped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import nibabel
import numpy as np
import pytest
from PIL import Image

CLASSES = ["background", "cell", "wall"]
AFFINE = np.array([[-1.5, 0, 0, -5], [0, -2, 0, -6], [0, 0, 3, 7], [0, 0, 0, 1]], dtype=float)


@pytest.fixture
def program() -> Callable[[str], ModuleType]:
    """Import another program; where it is not there, the test is skipped, but for ``make references``."""

    def load(name: str) -> ModuleType:
        try:
            return import_module(name)
        except ImportError:
            if os.environ.get("ANNOTRUTH_REFERENCES"):
                raise
            pytest.skip(f"{name.partition('.')[0]} is not installed here; make references runs this")

    return load


@pytest.fixture
def planes() -> dict[str, np.ndarray]:
    """Class numbers (height, width) by case: ragged regions of two classes, that touch each other and the edges."""
    rng = np.random.default_rng(0)
    found = {}
    for name, size in (("a", (23, 31)), ("b", (16, 17))):
        smooth = np.kron(rng.integers(0, 3, (6, 8)), np.ones((4, 4), dtype=int))[: size[0], : size[1]]
        speckled = rng.random(size) < 0.1
        found[name] = np.where(speckled, rng.integers(0, 3, size), smooth).astype(np.uint8)
    return found


@pytest.fixture
def known(planes: dict[str, np.ndarray], tmp_path: Path) -> Path:
    """A case folder with the planes as known truth, and with images."""
    for name, labels in planes.items():
        for folder, pixels in (("truth", labels), ("images", np.full(labels.shape, 90, dtype=np.uint8))):
            (tmp_path / "known" / folder).mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(tmp_path / "known" / folder / f"{name}.png")
    (tmp_path / "known" / "dataset.json").write_text(json.dumps({"classes": CLASSES}))
    return tmp_path / "known"


@pytest.fixture
def volume() -> np.ndarray:
    """Class numbers (10, 8, 4)."""
    labels = np.zeros((10, 8, 4), dtype=np.uint8)
    labels[3:8, 2:5, 1] = 1
    labels[1:3, 5:7, 2] = 2
    return labels


@pytest.fixture
def known_volumes(volume: np.ndarray, tmp_path: Path) -> Path:
    """A case folder with a volume as known truth, in millimetres that are not those of its voxels."""
    for folder, voxels in (("truth", volume), ("images", np.ones(volume.shape, dtype=np.float32))):
        (tmp_path / "volumes" / folder).mkdir(parents=True)
        nibabel.save(nibabel.Nifti1Image(voxels, AFFINE), tmp_path / "volumes" / folder / "P7.nii.gz")
    (tmp_path / "volumes" / "dataset.json").write_text(json.dumps({"classes": CLASSES}))
    return tmp_path / "volumes"
