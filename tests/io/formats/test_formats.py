"""What every format must do: files that other libraries wrote, round trips of our own, damaged files."""

from __future__ import annotations

from mmap import mmap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from annotruth.errors import InputError
from annotruth.io import files, writing
from annotruth.io.formats import EXACT_SUFFIXES

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("name", "shape"),
    [("a.png", (5, 7)), ("a.tif", (5, 7)), ("a.tiff", (4, 5, 7)), ("a.npy", (5, 7)), ("a.npy", (4, 5, 7)),
     ("a.nii", (5, 7)), ("a.nii.gz", (5, 7, 4)), ("A.NII.GZ", (5, 7, 1))],
)  # fmt: skip
def test_masks_of_other_libraries(tmp_path, put, name, shape):
    labels = RNG.integers(0, 3, shape).astype(np.uint8)
    path = put(tmp_path / "x" / name.lower(), labels).rename(tmp_path / name)
    assert files.mask_header(path, "m").shape == shape
    read = files.read_mask(path, "m")
    assert np.issubdtype(read.dtype, np.integer)
    np.testing.assert_array_equal(read, labels)


@pytest.mark.parametrize(
    ("name", "stored", "rank", "channel_axis"),
    [
        ("a.png", (5, 7), 2, None),
        ("a.png", (5, 7, 3), 2, 2),
        ("a.tif", (5, 7, 3), 2, 2),
        ("a.tif", (6, 5, 7), 2, 0),
        ("a.tif", (6, 5, 7), 3, None),
        ("a.npy", (5, 7), 2, None),
        ("a.npy", (6, 5, 7), 2, 0),
        ("a.npy", (6, 5, 7), 3, None),
        ("a.npy", (2, 6, 5, 7), 3, 0),
        ("a.nii.gz", (5, 7), 2, None),
        ("a.nii.gz", (5, 7, 6), 3, None),
        ("a.nii.gz", (5, 7, 6, 2), 3, 3),
        ("a.nii", (5, 7, 2), 2, 2),
    ],
)
def test_images_come_channels_first_in_float32(tmp_path, put, name, stored, rank, channel_axis):
    pixels = RNG.integers(0, 200, stored).astype(np.uint8)
    path = put(tmp_path / name, pixels)
    expected = pixels[None] if channel_axis is None else np.moveaxis(pixels, channel_axis, 0)
    image = files.read_image(path, rank, "i")
    assert image.dtype == np.float32
    assert files.image_header(path, rank, "i").shape == image.shape
    np.testing.assert_array_equal(image, expected)


@pytest.mark.parametrize(
    ("name", "stored", "rank"),
    [("a.png", (5, 7), 3), ("a.npy", (5, 7), 3), ("a.tif", (5, 7, 3), 3), ("a.npy", (2, 3, 5, 7), 2),
     ("a.nii", (5, 7, 2, 2), 2)],
)  # fmt: skip
def test_an_image_that_cannot_fit_the_masks_is_refused(tmp_path, put, name, stored, rank):
    path = put(tmp_path / name, np.zeros(stored, dtype=np.uint8))
    for read in (files.image_header, files.read_image):
        with pytest.raises(InputError, match=rf"^here: the image has \d axes .* but the masks have {rank}"):
            read(path, rank, "here")


@pytest.mark.parametrize("name", ["a.png", "a.tif"])
def test_masks_in_colour_are_refused(tmp_path, put, name):
    path = put(tmp_path / name, np.zeros((5, 7, 3), dtype=np.uint8))
    for read in (files.mask_header, files.read_mask):
        with pytest.raises(InputError, match=r"^here: the mask has 3 colour channels"):
            read(path, "here")


masks = hnp.arrays(
    np.uint8, st.one_of(hnp.array_shapes(min_dims=2, max_dims=2), hnp.array_shapes(min_dims=3, max_dims=3))
)


@settings(max_examples=30, deadline=None)
@given(labels=masks, suffix=st.sampled_from(EXACT_SUFFIXES))
def test_masks_come_back_as_they_were_written(tmp_path_factory, labels, suffix):
    if suffix == ".png":
        labels = labels.reshape(len(labels), -1)
    path = writing.write_mask_file(tmp_path_factory.mktemp("masks") / f"a{suffix}", labels, None)
    assert files.mask_header(path, "").shape == labels.shape
    np.testing.assert_array_equal(files.read_mask(path, ""), labels)


@settings(max_examples=30, deadline=None)
@given(
    image=hnp.arrays(np.float32, hnp.array_shapes(min_dims=3, max_dims=4), elements=st.floats(-9, 9, width=32)),
    suffix=st.sampled_from([suffix for suffix in EXACT_SUFFIXES if suffix != ".png"]),
)
def test_images_come_back_as_they_were_written(tmp_path_factory, image, suffix):
    path = writing.write_image_file(tmp_path_factory.mktemp("images") / f"a{suffix}", image, None)
    assert files.image_header(path, image.ndim - 1, "").shape == image.shape
    np.testing.assert_array_equal(files.read_image(path, image.ndim - 1, ""), image)


@pytest.mark.parametrize("suffix", [".npy", ".nii"])
def test_arrays_in_use_keep_no_file_open(tmp_path, put, suffix):
    image = put(tmp_path / f"a{suffix}", np.zeros((5, 7, 3), dtype=np.float32))
    mask = put(tmp_path / f"b{suffix}", np.zeros((5, 7, 3), dtype=np.uint8))
    for array in (files.read_image(image, 3, ""), files.read_mask(mask, "")):
        while array is not None:  # a memory map anywhere underneath would hold the file
            assert not isinstance(array, (np.memmap, mmap))
            array = getattr(array, "base", None)


@pytest.mark.parametrize("suffix", EXACT_SUFFIXES)
@pytest.mark.parametrize("how", ["empty", "text", "half", "head only"])
def test_damaged_files_are_named(tmp_path, put, suffix, how):
    labels = RNG.integers(0, 2, (64, 64)).astype(np.uint8)
    whole = put(tmp_path / f"whole{suffix}", labels).read_bytes()
    content = {
        "empty": b"",
        "text": b"not a picture at all\n" * 40,
        "half": whole[: len(whole) // 2],
        "head only": whole[:40],
    }
    path = tmp_path / f"a{suffix}"
    path.write_bytes(content[how])
    with pytest.raises(InputError, match=r"^a file \(case 1\): cannot be read \(.+\)\. The file is damaged"):
        files.read_mask(path, "a file (case 1)")


def test_files_that_went_away_and_odd_shapes_are_named(tmp_path, put):
    with pytest.raises(InputError, match="here: cannot be opened: No such file"):
        files.read_mask(tmp_path / "a.png", "here")
    for shape in ((4,), (2, 2, 2, 2)):
        with pytest.raises(InputError, match=r"here: the file has \d spatial axes"):
            files.mask_header(put(tmp_path / "a.npy", np.zeros(shape, np.uint8)), "here")
    with pytest.raises(InputError, match=r"here: "):
        files.mask_header(put(tmp_path / "a.npy", np.zeros((0, 4), np.uint8)), "here")
