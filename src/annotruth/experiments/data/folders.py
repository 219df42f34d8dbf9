"""Data in a folder that the user names: one NumPy archive per data set."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from annotruth.errors import InputError


def read_arrays(folder: Path, file: str, names: Sequence[str], source: str) -> dict[str, np.ndarray]:
    """Read the named arrays of ``folder/file``, an ``.npz`` archive, or say what must lie there.

    Parameters
    ----------
    source : where the data can be had, in words
    """
    path = folder / file
    wanted = f"the arrays {', '.join(names)}. {source}"
    if not path.is_file():
        raise InputError(f"{folder}: there is no file {file}. It must hold {wanted}")
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in names}
    except (KeyError, OSError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} cannot be used ({error}). It must hold {wanted}") from error
