"""Each format alone: what comes out of files that other libraries wrote, and what we write into them."""

from __future__ import annotations

import gzip
from mmap import mmap

import nibabel
import numpy as np
import pytest
import tifffile
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from annotruth.errors import InputError
from annotruth.io import files, writing
from annotruth.io.files import case_of, suffix_of
from annotruth.io.formats import EXACT_SUFFIXES, npy

RNG = np.random.default_rng(0)
AFFINE = np.array([[0.0, -2.0, 0.0, 10.0], [1.5, 0.0, 0.0, -20.0], [0.0, 0.0, 3.0, 5.0], [0.0, 0.0, 0.0, 1.0]])


def test_suffixes_are_known_in_any_case_and_the_longest_counts():
    assert suffix_of("a.nii.gz") == ".nii.gz"
    assert suffix_of("x/A.B.TIFF") == ".TIFF"
    assert case_of("x/1.2.840.NII.GZ") == "1.2.840"
    assert suffix_of("a.gif") is None
    assert suffix_of(".png") is None


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


def test_transparency_is_dropped(tmp_path):
    pixels = RNG.integers(0, 255, (5, 7, 4)).astype(np.uint8)
    Image.fromarray(pixels, "RGBA").save(tmp_path / "a.png")
    Image.fromarray(pixels[..., :2], "LA").save(tmp_path / "grey.png")
    tifffile.imwrite(tmp_path / "a.tif", pixels, photometric="rgb", extrasamples=["unassalpha"])
    for name in ("a.png", "a.tif"):
        assert files.image_header(tmp_path / name, 2, "").shape == (3, 5, 7)
        np.testing.assert_array_equal(files.read_image(tmp_path / name, 2, ""), np.moveaxis(pixels[..., :3], -1, 0))
    np.testing.assert_array_equal(files.read_image(tmp_path / "grey.png", 2, ""), pixels[None, ..., 0])
    np.testing.assert_array_equal(files.read_mask(tmp_path / "grey.png", ""), pixels[..., 0])


def test_palette_masks_keep_their_indices_and_palette_images_their_colours(tmp_path):
    indices = RNG.integers(0, 3, (5, 7)).astype(np.uint8)
    picture = Image.fromarray(indices, "P")
    picture.putpalette([0, 0, 0, 255, 0, 0, 0, 255, 7])
    picture.save(tmp_path / "a.png")
    np.testing.assert_array_equal(files.read_mask(tmp_path / "a.png", ""), indices)
    colours = np.array([[0, 0, 0], [255, 0, 0], [0, 255, 7]])[indices]
    np.testing.assert_array_equal(files.read_image(tmp_path / "a.png", 2, ""), np.moveaxis(colours, -1, 0))


def test_bit_and_sixteen_bit_pngs(tmp_path, put):
    bits = RNG.random((5, 7)) < 0.5
    np.testing.assert_array_equal(files.read_mask(put(tmp_path / "a.png", bits), ""), bits)
    deep = RNG.integers(0, 60000, (5, 7)).astype(np.uint16)
    np.testing.assert_array_equal(files.read_image(put(tmp_path / "b.png", deep), 2, "")[0], deep)


@pytest.mark.parametrize("name", ["a.png", "a.tif"])
def test_masks_in_colour_are_refused(tmp_path, put, name):
    path = put(tmp_path / name, np.zeros((5, 7, 3), dtype=np.uint8))
    for read in (files.mask_header, files.read_mask):
        with pytest.raises(InputError, match=r"^here: the mask has 3 colour channels"):
            read(path, "here")


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


def test_large_npy_is_memory_mapped_and_none_is_unpickled(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.zeros((5, 7), dtype=np.float32))
    assert files.read_image(tmp_path / "a.npy", 2, "").flags.writeable
    monkeypatch.setattr(npy, "MEMORY_MAP_BYTES", 100)
    assert isinstance(files.read_image(tmp_path / "a.npy", 2, "").base, np.memmap)
    np.save(tmp_path / "b.npy", np.array([{"code": "evil"}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="here: cannot be read"):
        files.read_mask(tmp_path / "b.npy", "here")


def test_nifti_scaling_is_applied_and_whole_floats_are_labels(tmp_path):
    file = nibabel.Nifti1Image(np.array([[[0.0, 1.0], [2.0, 1.0]]]), np.eye(4))
    nibabel.save(file, tmp_path / "a.nii")
    read = files.read_mask(tmp_path / "a.nii", "")
    assert read.dtype == np.int64
    np.testing.assert_array_equal(read, [[[0, 1], [2, 1]]])
    scaled = nibabel.Nifti1Image(np.array([[[-1000.0, 0.5], [24.0, 1.0]]]), np.eye(4))
    scaled.set_data_dtype(np.int16)
    nibabel.save(scaled, tmp_path / "b.nii")
    np.testing.assert_allclose(
        files.read_image(tmp_path / "b.nii", 3, "")[0], [[[-1000.0, 0.5], [24.0, 1.0]]], atol=0.02
    )


def test_nifti_masks_of_several_volumes_are_refused_and_idle_axes_dropped(tmp_path, put):
    idle = put(tmp_path / "idle.nii", np.ones((3, 4, 5, 1, 1), dtype=np.uint8))
    assert files.mask_header(idle, "").shape == files.read_mask(idle, "").shape == (3, 4, 5)
    several = put(tmp_path / "several.nii", np.ones((3, 4, 5, 2), dtype=np.uint8))
    with pytest.raises(InputError, match="here: the mask holds 2 volumes"):
        files.mask_header(several, "here")


def test_nifti_keeps_affine_codes_and_units_of_its_source(tmp_path):
    source = nibabel.Nifti2Image(np.zeros((5, 7, 6, 2), dtype=np.int16), AFFINE)
    source.set_sform(AFFINE, code="mni")
    source.set_qform(AFFINE, code="scanner")
    source.header.set_xyzt_units("mm", "sec")
    source.header["cal_max"] = 900
    nibabel.save(source, tmp_path / "image.nii.gz")
    labels = RNG.integers(0, 2, (5, 7, 6)).astype(np.uint8)
    writing.write_mask_file(tmp_path / "out" / "m.nii.gz", labels, tmp_path / "image.nii.gz")
    written = nibabel.load(tmp_path / "out" / "m.nii.gz")
    np.testing.assert_allclose(written.affine, AFFINE)
    assert (int(written.header["sform_code"]), int(written.header["qform_code"])) == (4, 1)
    assert written.header.get_xyzt_units()[0] == "mm"
    assert written.header["cal_max"] == 0
    assert written.get_data_dtype() == np.uint8
    np.testing.assert_allclose(written.header.get_zooms(), source.header.get_zooms()[:3])
    np.testing.assert_array_equal(np.asarray(written.dataobj), labels)


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


def test_png_keeps_resolution_and_refuses_what_it_cannot_hold(tmp_path):
    Image.fromarray(np.zeros((5, 7), np.uint8)).save(tmp_path / "i.png", dpi=(300, 300))
    writing.write_mask_file(tmp_path / "m.png", np.ones((5, 7), np.uint8), tmp_path / "i.png")
    assert Image.open(tmp_path / "m.png").info["dpi"] == pytest.approx((300, 300), abs=0.1)
    for image in (np.full((1, 5, 7), 0.5), np.zeros((2, 5, 7)), np.full((1, 5, 7), -1.0), np.full((3, 5, 7), 999.0)):
        with pytest.raises(InputError, match=r"x\.png: PNG .* Choose \.tiff or \.npy"):
            writing.write_image_file(tmp_path / "x.png", image, None)
    with pytest.raises(InputError, match=r"x\.png: PNG holds planes"):
        writing.write_mask_file(tmp_path / "x.png", np.zeros((2, 5, 7), np.uint8), None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["i.png", "m.png"]


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


def _damaged(path, content):
    path.write_bytes(content)
    return path


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
    path = _damaged(tmp_path / f"a{suffix}", content[how])
    with pytest.raises(InputError, match=r"^a file \(case 1\): cannot be read \(.+\)\. The file is damaged"):
        files.read_mask(path, "a file (case 1)")


def test_flipped_bits_in_a_png_do_not_pass_as_pixels(tmp_path, put):
    whole = put(tmp_path / "whole.png", RNG.integers(0, 2, (64, 64)).astype(np.uint8)).read_bytes()
    for position in range(whole.index(b"IDAT") + 4, len(whole) - 16, 37):
        flipped = bytearray(whole)
        flipped[position] ^= 0x10
        with pytest.raises(InputError, match="cannot be read"):
            files.read_mask(_damaged(tmp_path / "a.png", bytes(flipped)), "here")


def test_a_nifti_head_that_promises_too_much_is_no_crash(tmp_path):
    header = nibabel.Nifti1Header()
    header.set_data_shape((30000, 30000, 30000))
    header.set_data_dtype(np.uint8)
    header["magic"] = b"n+1"
    header["vox_offset"] = 352
    path = _damaged(tmp_path / "a.nii.gz", gzip.compress(header.binaryblock + bytes(8)))
    with pytest.raises(InputError, match="here: "):
        files.read_mask(path, "here")


def test_files_that_went_away_and_odd_shapes_are_named(tmp_path, put):
    with pytest.raises(InputError, match="here: cannot be opened: No such file"):
        files.read_mask(tmp_path / "a.png", "here")
    for shape in ((4,), (2, 2, 2, 2)):
        with pytest.raises(InputError, match=r"here: the file has \d spatial axes"):
            files.mask_header(put(tmp_path / "a.npy", np.zeros(shape, np.uint8)), "here")
    with pytest.raises(InputError, match=r"here: "):
        files.mask_header(put(tmp_path / "a.npy", np.zeros((0, 4), np.uint8)), "here")
