"""What is read from masks' files of every format, in colour, with transparency, in layers."""

from __future__ import annotations

import gzip

import nibabel
import numpy as np
import pytest
import tifffile
from PIL import Image

from annotruth.errors import InputError
from annotruth.io.masks.planes import read_planes

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 200, (5, 7)).astype(np.uint8)
COLOURS = RNG.integers(0, 200, (5, 7, 3)).astype(np.uint8)


@pytest.mark.parametrize("name", ["a.png", "a.bmp", "a.tif", "a.ppm"])
def test_three_equal_channels_are_one_plane(tmp_path, name):
    Image.fromarray(np.repeat(GREY[..., None], 3, axis=2)).save(tmp_path / name)
    planes = read_planes(tmp_path / name, "here")
    assert planes.is_grey
    np.testing.assert_array_equal(planes.grey(), GREY)


@pytest.mark.parametrize("name", ["a.png", "a.bmp", "a.tif", "a.ppm"])
def test_colours_come_first(tmp_path, name):
    Image.fromarray(COLOURS).save(tmp_path / name)
    planes = read_planes(tmp_path / name, "here")
    assert planes.coloured
    assert not planes.is_grey
    np.testing.assert_array_equal(planes.pixels, np.moveaxis(COLOURS, -1, 0))


@pytest.mark.parametrize("name", ["a.png", "a.tif"])
@pytest.mark.parametrize("colour", [GREY, COLOURS], ids=["grey", "colour"])
def test_transparency_is_kept_apart(tmp_path, name, colour):
    alpha = np.where(GREY > 100, 255, 0).astype(np.uint8)
    Image.fromarray(np.dstack([colour, alpha]).astype(np.uint8)).save(tmp_path / name)
    planes = read_planes(tmp_path / name, "here")
    np.testing.assert_array_equal(planes.alpha, alpha)
    np.testing.assert_array_equal(planes.pixels, np.moveaxis(np.atleast_3d(colour), -1, 0))


@pytest.mark.parametrize("name", ["a.png", "a.gif", "a.bmp"])
def test_of_a_palette_its_numbers_count_or_if_asked_its_colours(tmp_path, name):
    picture = Image.fromarray(GREY % 3, mode="P")
    picture.putpalette([0, 0, 0, 255, 0, 0, 0, 0, 255])
    picture.save(tmp_path / name)
    colours = np.array([[0, 0, 0], [255, 0, 0], [0, 0, 255]], dtype=np.uint8)[GREY % 3]
    np.testing.assert_array_equal(
        read_planes(tmp_path / name, "here", palette=False).pixels, np.moveaxis(colours, -1, 0)
    )
    if name != "a.gif":  # whose writer sorts the palette anew
        np.testing.assert_array_equal(read_planes(tmp_path / name, "here").grey(), GREY % 3)


def test_gzipped_pictures(tmp_path):
    Image.fromarray(GREY).save(tmp_path / "a.pgm")
    (tmp_path / "b.pgm.gz").write_bytes(gzip.compress((tmp_path / "a.pgm").read_bytes()))
    np.testing.assert_array_equal(read_planes(tmp_path / "b.pgm.gz", "here").grey(), GREY)


def test_layers_of_nifti_lie_last_and_those_of_npy_where_the_image_tells(tmp_path):
    volume = RNG.integers(0, 2, (5, 6, 7, 3)).astype(np.uint8)
    nibabel.save(nibabel.Nifti1Image(volume, np.eye(4)), tmp_path / "a.nii.gz")
    np.testing.assert_array_equal(read_planes(tmp_path / "a.nii.gz", "here").pixels, np.moveaxis(volume, -1, 0))
    np.save(tmp_path / "a.npy", np.moveaxis(volume, -1, 0))
    np.testing.assert_array_equal(read_planes(tmp_path / "a.npy", "here", 3).pixels, np.moveaxis(volume, -1, 0))
    np.save(tmp_path / "b.npy", volume[:, :, 0])
    np.testing.assert_array_equal(
        read_planes(tmp_path / "b.npy", "here", 2).pixels, np.moveaxis(volume[:, :, 0], -1, 0)
    )
    assert read_planes(tmp_path / "a.nii.gz", "here").shape == (5, 6, 7)


def test_pages_of_a_tiff_are_layers_of_a_plane_or_a_volume(tmp_path):
    pages = RNG.integers(0, 2, (4, 5, 7)).astype(np.uint8)
    tifffile.imwrite(tmp_path / "a.tif", pages, photometric="minisblack")
    assert read_planes(tmp_path / "a.tif", "here", 2).pixels.shape == (4, 5, 7)
    assert read_planes(tmp_path / "a.tif", "here", 3).pixels.shape == (1, 4, 5, 7)


@pytest.mark.parametrize("name", ["a.png", "a.gif", "a.tif", "a.nii.gz", "a.npy", "a.jpg", "a.ppm.gz"])
@pytest.mark.parametrize("content", [b"", b"nonsense"])
def test_damaged_files_are_named(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=r"^here: (cannot be read|there is no picture)"):
        read_planes(tmp_path / name, "here")


def test_an_unknown_format_and_a_mask_of_one_axis_are_refused(tmp_path):
    (tmp_path / "a.psd").touch()
    with pytest.raises(InputError, match=r"^here: not a file of a known format"):
        read_planes(tmp_path / "a.psd", "here")
    np.save(tmp_path / "a.npy", np.zeros(4))
    with pytest.raises(InputError, match="1 spatial axes"):
        read_planes(tmp_path / "a.npy", "here")
    np.save(tmp_path / "b.npy", np.zeros((4, 0)))
    with pytest.raises(InputError, match="no pixel"):
        read_planes(tmp_path / "b.npy", "here")
