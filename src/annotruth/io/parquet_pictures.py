"""Pictures in a column of a Parquet file, as the ``datasets`` library keeps them: {bytes, path} in each row."""

from __future__ import annotations

import io
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from PIL import Image

from annotruth.data.annotations import Lazy
from annotruth.errors import InputError
from annotruth.io.files import reading
from annotruth.io.formats.header import PICTURES


def picture_column(schema: Any) -> str | None:
    """The first column that holds pictures, or sounds; None if there is none."""
    for field in schema:
        names = [field.type.field(number).name for number in range(field.type.num_fields)]
        if pa.types.is_struct(field.type) and "bytes" in names:
            return str(field.name)
    return None


def find_pictures(file: Path, column: str) -> list[Lazy]:
    """Pictures (channels, height, width) of all rows, read when they are needed; only heads are read now."""
    found: list[Lazy] = []
    with reading(str(file)):
        parquet = pyarrow.parquet.ParquetFile(file)
        for group in range(parquet.num_row_groups):
            rows = parquet.read_row_group(group, columns=[column])[column].to_pylist()
            for row, content in enumerate(rows):
                found.append(Lazy(partial(read_picture, file, column, group, row), _shape(content, len(found) + 1)))
    return found


def read_picture(file: Path, column: str, group: int, row: int) -> np.ndarray:
    """One picture (channels, height, width): 1 channel in grey, 3 in colour."""
    with reading(str(file)):
        content = _row_group(file, file.stat().st_mtime_ns, column, group)[row].as_py()
        with Image.open(io.BytesIO(content["bytes"]), formats=PICTURES) as picture:
            pixels = np.asarray(picture if picture.mode == "L" else picture.convert("RGB"))
        return pixels[None] if pixels.ndim == 2 else np.ascontiguousarray(np.moveaxis(pixels, -1, 0))


@lru_cache(maxsize=2)
def _row_group(file: Path, changed: int, column: str, group: int) -> Any:
    """Rows that lie together in a file; the last ones stay in memory, for pictures are read one after another."""
    return pyarrow.parquet.ParquetFile(file).read_row_group(group, columns=[column])[column]


def _shape(content: Any, row: int) -> tuple[int, int, int]:
    if not isinstance(content, dict) or not content.get("bytes"):
        raise InputError(f"row {row} holds no picture. Download the file anew.")
    with Image.open(io.BytesIO(content["bytes"]), formats=PICTURES) as picture:
        return (1 if picture.mode == "L" else 3, picture.height, picture.width)
