"""PNG planes packed and unpacked here, beside Pillow, which does it in its own way."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from annotruth.io.formats import png
from annotruth.io.formats.png_planes import SIGNATURE, chunks, pack_plane, plane_size, resolution_of, unpack_plane

RNG = np.random.default_rng(0)


def pictures() -> dict[str, np.ndarray]:
    rows, columns = np.mgrid[:40, :50]
    return {
        "noise": RNG.integers(0, 256, (17, 9)).astype(np.uint8),
        "disc": ((rows - 20) ** 2 + (columns - 20) ** 2 < 150).astype(np.uint8),
        "stripes": np.repeat(RNG.integers(0, 3, (1, 50)), 40, axis=0).astype(np.uint8),
        "ramp": (rows + columns).astype(np.uint8),
        "pixel": np.array([[7]], dtype=np.uint8),
    }


def packed_by_pillow(array: np.ndarray, **how) -> bytes:
    file = BytesIO()
    Image.fromarray(array, **{key: how.pop(key) for key in ("mode",) if key in how}).save(file, "PNG", **how)
    return file.getvalue()


def filtered(array: np.ndarray, kinds: np.ndarray) -> bytes:
    """A PNG file whose rows are packed in these ways: 0 as they are, 1 less the byte before, 2 less the byte above."""
    left, above = np.zeros_like(array), np.zeros_like(array)
    left[:, 1:], above[1:] = array[:, :-1], array[:-1]
    rows = np.stack([array, array - left, array - above])[kinds, np.arange(len(array))]
    data = zlib.compress(np.column_stack([kinds, rows]).astype(np.uint8).tobytes())
    content = pack_plane(array)
    return content.replace(_chunk(b"IDAT", dict(chunks(content))[b"IDAT"]), _chunk(b"IDAT", data))


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


@pytest.mark.parametrize("name", pictures())
def test_pillow_reads_what_is_packed_here(name):
    array = pictures()[name]
    with Image.open(BytesIO(pack_plane(array))) as picture:
        assert picture.mode == "L"
        np.testing.assert_array_equal(np.array(picture), array)
    np.testing.assert_array_equal(unpack_plane(pack_plane(array)), array)


@pytest.mark.parametrize("name", pictures())
def test_rows_packed_in_any_mixture_of_ways_are_unpacked_as_by_pillow(name):
    array = pictures()[name]
    for _ in range(20):
        content = filtered(array, RNG.integers(0, 3, len(array)))
        np.testing.assert_array_equal(np.array(Image.open(BytesIO(content))), array)
        np.testing.assert_array_equal(unpack_plane(content), array)


@pytest.mark.parametrize("name", pictures())
def test_files_by_pillow_are_read_alike_here_or_by_itself(tmp_path, name):
    array = pictures()[name]
    for content in (packed_by_pillow(array), packed_by_pillow(array, optimize=True), packed_by_pillow(array > 2)):
        (tmp_path / "a.png").write_bytes(content)
        expected = np.array(Image.open(BytesIO(content)))
        np.testing.assert_array_equal(png.read_mask(tmp_path / "a.png"), expected)
        assert png.mask_header(tmp_path / "a.png").shape == array.shape


def test_what_is_no_plane_of_bytes_is_left_to_pillow():
    noise = RNG.integers(0, 256, (8, 8, 3)).astype(np.uint8)
    deep = noise[..., 0].astype(np.uint16) * 200
    for content in (
        packed_by_pillow(noise),
        packed_by_pillow(deep),
        packed_by_pillow(noise[..., 0] > 9),
        b"",
        b"GIF89a",
    ):
        assert plane_size(content[:33]) is None
        assert unpack_plane(content) is None


def test_every_byte_that_is_changed_and_every_cut_is_left_to_pillow_to_complain_of():
    array = pictures()["disc"]
    content = pack_plane(array)
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 0x11
        assert unpack_plane(bytes(changed)) is None, place
        assert unpack_plane(content[:place]) is None, place


def test_pixels_that_end_early_and_chunks_nobody_knows_are_not_unpacked():
    content = pack_plane(np.zeros((4, 4), np.uint8))
    short = content.replace(_chunk(b"IDAT", dict(chunks(content))[b"IDAT"]), _chunk(b"IDAT", zlib.compress(bytes(9))))
    assert unpack_plane(short) is None
    assert unpack_plane(content[:33] + _chunk(b"ABCD", b"?") + content[33:]) is None  # must not be skipped
    assert unpack_plane(content[:33] + _chunk(b"abCD", b"?") + content[33:]) is not None


def test_resolution_is_found_before_the_pixels_or_not_at_all(tmp_path):
    array = pictures()["disc"]
    (tmp_path / "a.png").write_bytes(packed_by_pillow(array, dpi=(300, 150)))
    told = resolution_of(tmp_path / "a.png")
    assert told is not None
    with Image.open(BytesIO(pack_plane(array, told))) as picture:
        assert picture.info["dpi"] == pytest.approx((300, 150), abs=0.1)
    for content in (pack_plane(array), SIGNATURE, b"no picture"):
        (tmp_path / "b.png").write_bytes(content)
        assert resolution_of(tmp_path / "b.png") is None
