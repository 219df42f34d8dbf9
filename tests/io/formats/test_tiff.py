"""TIFF: compressions, pages and channels of other writers, geometry."""

from __future__ import annotations

import numpy as np
import pytest
import tifffile
from PIL import Image

from annotruth.errors import InputError
from annotruth.io import files, writing

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("compression", ["tiff_lzw", "tiff_adobe_deflate", "packbits"])
def test_tiff_compressions_and_pages_of_other_writers(tmp_path, compression):
    pages = RNG.integers(0, 3, (4, 5, 7)).astype(np.uint8)
    first, *rest = map(Image.fromarray, pages)
    first.save(tmp_path / "a.tif", save_all=True, append_images=rest, compression=compression)
    assert files.mask_header(tmp_path / "a.tif", "").shape == (4, 5, 7)
    np.testing.assert_array_equal(files.read_mask(tmp_path / "a.tif", ""), pages)


def test_tiff_hyperstacks_name_their_channels(tmp_path):
    stack = RNG.random((4, 2, 5, 7)).astype(np.float32)
    tifffile.imwrite(tmp_path / "a.tif", stack, imagej=True, metadata={"axes": "ZCYX"})
    np.testing.assert_array_equal(files.read_image(tmp_path / "a.tif", 3, ""), np.moveaxis(stack, 1, 0))


def test_tiff_pages_of_different_sizes_are_refused(tmp_path):
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        file.write(np.zeros((5, 7), dtype=np.uint8))
        file.write(np.zeros((6, 7), dtype=np.uint8))
    with pytest.raises(InputError, match="here: the file holds 2 pictures"):
        files.mask_header(tmp_path / "a.tif", "here")


def test_tiff_keeps_resolution_and_map_geometry_of_its_source(tmp_path):
    place = (33922, "d", 6, (0.0, 0.0, 0.0, 4.5e5, 5.2e6, 0.0), True)
    tifffile.imwrite(tmp_path / "i.tif", np.zeros((5, 7, 3), np.uint8), resolution=(300, 200), resolutionunit=3,
                     extratags=[(33550, "d", 3, (0.5, 0.5, 0.0), True), place])  # fmt: skip
    writing.write_mask_file(tmp_path / "m.tif", np.ones((5, 7), np.uint8), tmp_path / "i.tif")
    with tifffile.TiffFile(tmp_path / "m.tif") as file:
        tags = {tag.name: tag.value for tag in file.pages.first.tags}
    assert tags["XResolution"] == (300, 1)
    assert tags["YResolution"] == (200, 1)
    assert tags["ResolutionUnit"] == 3
    assert tags["ModelPixelScaleTag"] == (0.5, 0.5, 0.0)
    assert tags["ModelTiepointTag"] == place[3]
