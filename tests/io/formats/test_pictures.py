"""BMP, GIF, PPM and PGM: read as Pillow wrote them, and never written."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from PIL import Image

from annotruth.errors import InputError
from annotruth.io import files

GREY = np.random.default_rng(0).integers(0, 3, (5, 7)).astype(np.uint8)
COLOURS = np.random.default_rng(0).integers(0, 255, (5, 7, 3)).astype(np.uint8)


@pytest.mark.parametrize("name", ["a.bmp", "a.gif", "a.pgm"])
def test_masks(tmp_path, name):
    Image.fromarray(GREY).save(tmp_path / name)
    assert files.mask_header(tmp_path / name, "m").shape == (5, 7)
    np.testing.assert_array_equal(files.read_mask(tmp_path / name, "m"), GREY)


@pytest.mark.parametrize("name", ["a.bmp", "a.ppm", "a.ppm.gz"])
def test_pictures_in_colour(tmp_path, name):
    Image.fromarray(COLOURS).save(tmp_path / name.removesuffix(".gz"))
    if name.endswith(".gz"):
        (tmp_path / name).write_bytes(gzip.compress((tmp_path / "a.ppm").read_bytes()))
    assert files.image_header(tmp_path / name, 2, "i").shape == (3, 5, 7)
    np.testing.assert_array_equal(files.read_image(tmp_path / name, 2, "i"), np.moveaxis(COLOURS, -1, 0))
    with pytest.raises(InputError, match="3 colour channels"):
        files.read_mask(tmp_path / name, "m")
    with pytest.raises(InputError, match="masks have 3"):
        files.image_header(tmp_path / name, 3, "i")


def test_nothing_is_written_so(tmp_path):
    for write in (files.format_of("a.gif").write_mask, files.format_of("a.gif").write_image):
        with pytest.raises(InputError, match="only read"):
            write(tmp_path / "a.gif", GREY, None)
