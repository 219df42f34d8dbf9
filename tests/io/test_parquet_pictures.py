"""Pictures in Parquet files: read as they were saved, by row groups, and named where they are damaged."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from PIL import Image

import annotruth as at
from annotruth.errors import InputError
from annotruth.io import import_source
from annotruth.io.parquet_pictures import find_pictures, picture_column

PIXELS = np.random.default_rng(0).integers(0, 255, (5, 6, 7, 3)).astype(np.uint8)


def encode(pixels: np.ndarray) -> bytes:
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, format="PNG")
    return content.getvalue()


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    pictures = [{"bytes": encode(each), "path": f"{number}.png"} for number, each in enumerate(PIXELS)]
    table = pa.table({"image": pictures, "labels": [["x", "y"]] * 5, "annotators": [["a", "b"]] * 5})
    (tmp_path / "hub").mkdir()
    pyarrow.parquet.write_table(table, tmp_path / "hub" / "train.parquet", row_group_size=2)
    return tmp_path / "hub"


def test_pictures_are_read_when_they_are_needed(hub: Path) -> None:
    file = hub / "train.parquet"
    assert picture_column(pyarrow.parquet.read_schema(file)) == "image"
    found = find_pictures(file, "image")
    assert [each.shape for each in found] == [(3, 6, 7)] * 5
    np.testing.assert_array_equal(np.stack([each.read() for each in found]), np.moveaxis(PIXELS, -1, 1))


def test_answers_come_with_their_pictures(hub: Path, tmp_path: Path) -> None:
    loaded = at.load(hub)
    np.testing.assert_array_equal(loaded.images, np.moveaxis(PIXELS, -1, 1))
    import_source(hub, tmp_path / "out")
    again = at.load(tmp_path / "out")
    np.testing.assert_array_equal(again.images, loaded.images)
    assert again.items == loaded.items


def test_pictures_of_differing_sizes_are_left_out_and_a_row_without_one_is_named(hub: Path, tmp_path: Path) -> None:
    pictures = [{"bytes": encode(PIXELS[0][:size]), "path": "a"} for size in (4, 5)]
    table = pa.table({"image": pictures, "labels": [["x", "y"]] * 2, "annotators": [["a", "b"]] * 2})
    pyarrow.parquet.write_table(table, hub / "train.parquet")
    imported = import_source(hub, tmp_path / "out")
    assert any("differ in size" in note for note in imported.notes)
    assert not at.load(hub).has_images
    pyarrow.parquet.write_table(table.set_column(0, "image", [pa.array([pictures[0], None])]), hub / "train.parquet")
    with pytest.raises(InputError, match=r"train\.parquet: row 2 holds no picture"):
        at.load(hub)
