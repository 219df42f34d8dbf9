"""Files made with the formats' own libraries, so that our readers and writers have something to be held against."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import nibabel
import numpy as np
import pytest
import tifffile
from PIL import Image

Put = Callable[..., Path]


@pytest.fixture
def put() -> Put:
    """Write an array, as it stands, into a file of the format its suffix names."""

    def write(path: Path, array: np.ndarray, affine: np.ndarray | None = None) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.name.endswith((".nii", ".nii.gz")):
            nibabel.save(nibabel.Nifti1Image(array, np.eye(4) if affine is None else affine), path)
        elif path.suffix in (".png", ".jpg", ".jpeg"):
            Image.fromarray(array).save(path)
        elif path.suffix in (".tif", ".tiff"):
            rgb = array.ndim > 2 and array.shape[-1] in (3, 4)
            tifffile.imwrite(path, array, photometric="rgb" if rgb else "minisblack")
        else:
            np.save(path, array)
        return path

    return write


@pytest.fixture
def mask() -> np.ndarray:
    """A small mask of two classes, with the first pixels marked."""
    mask = np.zeros((8, 9), dtype=np.uint8)
    mask[2:5, 3:7] = 1
    return mask


@pytest.fixture
def cases(tmp_path: Path, put: Put, mask: np.ndarray) -> Path:
    """A sound case folder: PNG, cases a, b, c, raters ann and bob."""
    folder = tmp_path / "cases"
    for number, case in enumerate("abc"):
        put(folder / "images" / f"{case}.png", np.full((8, 9), 10 * number, dtype=np.uint8))
        for rater in ("ann", "bob"):
            put(folder / "raters" / rater / f"{case}.png", mask)
    return folder


@pytest.fixture
def describe() -> Callable[..., None]:
    """Write a dataset.json."""

    def write(folder: Path, **content: object) -> None:
        (folder / "dataset.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")

    return write


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Answers of two raters on c, b 1 and ä, in this order."""
    rows = ["item,rater,label"] + [
        f"{item},{rater},{label}"
        for item, label in (("c", "no"), ("b 1", "yes"), ("ä", "yes"))
        for rater in ("ann", "bob")
    ]
    (tmp_path / "labels.csv").write_text("\n".join(rows), encoding="utf-8")
    return tmp_path / "labels.csv"
