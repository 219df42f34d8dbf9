"""PNG: palettes, transparency, few bits and many, resolution."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
import tifffile
from PIL import Image

from annotruth.errors import InputError
from annotruth.io import files, writing
from annotruth.io.formats import png

RNG = np.random.default_rng(0)


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


def test_flipped_bits_in_a_png_do_not_pass_as_pixels(tmp_path, put):
    whole = put(tmp_path / "whole.png", RNG.integers(0, 2, (64, 64)).astype(np.uint8)).read_bytes()
    for position in range(whole.index(b"IDAT") + 4, len(whole) - 16, 37):
        flipped = bytearray(whole)
        flipped[position] ^= 0x10
        (tmp_path / "a.png").write_bytes(flipped)
        with pytest.raises(InputError, match="cannot be read"):
            files.read_mask(tmp_path / "a.png", "here")


def _pack(width: int, height: int, pixels: bytes, interlaced: int = 0) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, interlaced)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")


def test_pixels_that_end_early_are_not_taken_for_black_ones(tmp_path):
    (tmp_path / "whole.png").write_bytes(_pack(16, 16, bytes(17 * 16)))
    (tmp_path / "short.png").write_bytes(_pack(16, 16, bytes(17 * 3)))
    assert png.read_mask(tmp_path / "whole.png").shape == (16, 16)
    with pytest.raises(InputError, match="end after 51 of 272 bytes"):
        png.read_mask(tmp_path / "short.png")


@pytest.mark.parametrize("size", [(1, 1), (3, 5), (8, 8), (17, 9)])
def test_interlaced_pictures_are_whole(tmp_path, size):
    array = RNG.integers(0, 255, size).astype(np.uint8)
    passes = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
    parts = [array[y::down, x::right] for x, y, right, down in passes]
    pixels = b"".join(b"\0" + row.tobytes() for part in parts if part.shape[1] for row in part)
    (tmp_path / "a.png").write_bytes(_pack(size[1], size[0], pixels, interlaced=1))
    assert (png.read_mask(tmp_path / "a.png") == array).all()
    (tmp_path / "a.png").write_bytes(_pack(size[1], size[0], pixels[:-1], interlaced=1))
    with pytest.raises(InputError, match="packed pixels end"):
        png.read_mask(tmp_path / "a.png")


@pytest.mark.parametrize("read", [png.read_mask, png.mask_header, lambda path: png.read_image(path, 2)])
def test_postscript_under_the_name_of_a_picture_is_not_given_to_its_interpreter(tmp_path, read, monkeypatch):
    """Pillow would start Ghostscript for it."""
    monkeypatch.setattr("subprocess.check_call", lambda *_, **__: pytest.fail("a program was started"))
    (tmp_path / "a.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 8\n%%EndComments\nshowpage\n")
    with pytest.raises(OSError, match="cannot identify"):
        read(tmp_path / "a.png")
