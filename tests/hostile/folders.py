"""Case folders with one bad thing in them."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import shutil
import socket
import struct
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import tifffile
from PIL import Image
from tests.hostile.attacks import Attack, Attacks, Pickled, verbs

PLANES, VOLUMES = "planes", "volumes"
MASK, IMAGE = Path("raters/ann/b"), Path("images/b")
SUFFIXES = {".png": PLANES, ".tiff": PLANES, ".npy": PLANES, ".nii": VOLUMES, ".nii.gz": VOLUMES}


def make_sound(base: Path) -> None:
    """Sound case folders, one of planes and one of volumes, with three cases of two raters in them."""
    rng = np.random.default_rng(0)
    for name, shape, suffix in ((PLANES, (16, 16), ".png"), (VOLUMES, (8, 8, 8), ".nii.gz")):
        for case in "abc":
            mask = np.zeros(shape, np.uint8)
            mask[tuple(slice(2, 6) for _ in shape)] = 1
            image = (100 * mask + rng.integers(0, 50, shape)).astype(np.uint8)
            put(base / name / "images" / case, suffix, image)
            for rater in ("ann", "bob"):
                flipped = (mask ^ (rng.random(shape) < 0.1)).astype(np.uint8)
                put(base / name / "raters" / rater / case, suffix, flipped)


def put(stem: Path, suffix: str, array: np.ndarray) -> Path:
    """Write an array in some format."""
    path = stem.with_name(stem.name + suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    if suffix in (".png", ".jpg"):
        Image.fromarray(array).save(path)
    elif suffix == ".tiff":
        tifffile.imwrite(path, array)
    elif suffix == ".npy":
        np.save(path, array)
    else:
        nibabel.save(nibabel.Nifti1Image(array, np.eye(4)), path)
    return path


def take(base: Path, kind: str, home: Path, *without: Path) -> Path:
    """A copy of a sound folder in ``home/cases`` without some files."""
    shutil.copytree(base / kind, home / "cases")
    for stem in without:
        for file in (home / "cases" / stem.parent).glob(f"{stem.name}.*"):
            file.unlink()
    return home / "cases"


def all_attacks() -> Attacks:
    yield from damaged_files()
    yield from strange_pixels()
    yield from lying_heads()
    yield from strange_entries()
    yield from bad_names()
    yield from bad_settings()


# -- files that are not what they should be ---------------------------------------------------------------------

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda content: b"",
    "one byte": lambda content: content[:1],
    "eight bytes": lambda content: content[:8],
    "a tenth": lambda content: content[: len(content) // 10],
    "half": lambda content: content[: len(content) // 2],
    "text": lambda content: b"this is no picture\n" * 40,
    "zeros": lambda content: bytes(len(content)),
    "HTML": lambda content: b"<html><body>404 Not Found</body></html>",
    "a pickle": lambda content: pickle.dumps(Pickled()),
    "a program": lambda content: b"\x7fELF" + bytes(range(256)) * 4,
    "PostScript": lambda content: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 8\n(executed) (w) file closefile\n",
    "head moved": lambda content: b"\n" + content,
    "random bytes": lambda content: np.random.default_rng(1).bytes(len(content)),
}


def damaged_files() -> Attacks:
    for suffix, kind in SUFFIXES.items():
        for what, stem in (("mask", MASK), ("image", IMAGE)):
            for number, (damage, spoil) in enumerate(DAMAGES.items()):
                for command in verbs("cases", "check", ("load", "fuse", "train")[number % 3]):
                    if what == "image" and command[0] == "fuse":
                        continue  # which needs no images
                    lay_out = partial(_damage, suffix, kind, stem, spoil)
                    yield Attack(f"damaged {what}s", f"{suffix} {what}: {damage}", lay_out, command)


def _damage(suffix: str, kind: str, stem: Path, spoil: Callable[[bytes], bytes], base: Path, home: Path) -> None:
    cases = take(base, kind, home, stem)
    path = put(cases / stem, suffix, np.ones((16, 16) if kind == PLANES else (8, 8, 8), np.uint8))
    path.write_bytes(spoil(path.read_bytes()))


def strange_pixels() -> Attacks:
    plane = np.zeros((16, 16))
    arrays: dict[str, np.ndarray] = {
        "complex": plane.astype(np.complex64), "text": plane.astype("U3"), "dates": plane.astype("M8[s]"),
        "records": np.zeros((16, 16), dtype=[("a", "f4"), ("b", "f4")]), "one axis": np.zeros(256, np.uint8),
        "four axes": np.zeros((2, 2, 16, 16), np.uint8), "no pixel": np.zeros((0, 16), np.uint8),
        "a scalar": np.array(3), "another size": np.zeros((16, 17), np.uint8), "NaN": plane + np.nan,
        "infinity": plane + np.inf, "void": np.zeros((16, 16), "V4"),
    }  # fmt: skip
    for name, array in arrays.items():
        for what, stem in (("mask", MASK), ("image", IMAGE)):
            for command in verbs("cases", "check", "train" if what == "image" else "fuse"):
                yield Attack("strange pixels", f"NPY {what}: {name}", partial(_array, stem, array), command)
    labels = {
        "shares": plane + 0.5, "negative": plane - 1, "1000 classes": np.arange(256).reshape(16, 16) * 4,
        "huge": plane + 1e30,
    }  # fmt: skip
    for name, array in labels.items():
        for command in verbs("cases", "check", "fuse", "load"):
            yield Attack("strange pixels", f"NPY mask: {name}", partial(_array, MASK, array), command)
    for name, picture in (
        ("colours", np.zeros((16, 16, 3), np.uint8)),
        ("transparency", np.zeros((16, 16, 4), np.uint8)),
    ):
        for command in verbs("cases", "check", "fuse"):
            yield Attack("strange pixels", f"PNG mask: {name}", partial(_picture, MASK, ".png", picture), command)
        yield Attack(
            "strange pixels", f"PNG image: {name} beside grey ones", partial(_picture, IMAGE, ".png", picture[..., :3]),
            ("train", "cases", "-o", "out"),
        )  # fmt: skip
    for command in verbs("cases", "check", "load", "fuse"):
        grey = np.zeros((16, 16), np.uint8)
        yield Attack("strange pixels", "a mask as JPEG", partial(_picture, MASK, ".jpg", grey), command)


def _array(stem: Path, array: np.ndarray, base: Path, home: Path) -> None:
    np.save(take(base, PLANES, home, stem) / stem.with_suffix(".npy"), array)


def _picture(stem: Path, suffix: str, array: np.ndarray, base: Path, home: Path) -> None:
    put(take(base, PLANES, home, stem) / stem, suffix, array)


# -- heads that promise what files do not hold ------------------------------------------------------------------


def lying_heads() -> Attacks:
    for what, stem in (("mask", MASK), ("image", IMAGE)):
        second = "fuse" if what == "mask" else "train"
        for number in range(4):
            for command in verbs("cases", "check", second):
                yield Attack("lying heads", f"NIfTI {what} {number}", partial(_nifti, stem, number), command)
                yield Attack("lying heads", f"NPY {what} {number}", partial(_npy, stem, number), command)
                yield Attack("lying heads", f"PNG {what} {number}", partial(_png, stem, number), command)
                yield Attack("lying heads", f"TIFF {what} {number}", partial(_tiff, stem, number), command)


def _nifti(stem: Path, number: int, base: Path, home: Path) -> None:
    """Sizes of terabytes, negative sizes, an unknown type, pixels that begin beyond the end."""
    path = put(take(base, VOLUMES, home, stem) / stem, ".nii", np.ones((8, 8, 8), np.uint8))
    content = bytearray(path.read_bytes())
    where, value = [(42, (30000,) * 3), (42, (-5, 8, 8)), (70, (9999,)), (42, (32000, 32000, 1))][number]
    content[where : where + 2 * len(value)] = struct.pack(f"<{len(value)}h", *value)
    path.write_bytes(content)
    if number == 3:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(bytes(content)))
        path.unlink()


def _npy(stem: Path, number: int, base: Path, home: Path) -> None:
    """Sizes of terabytes, code and pickles in the head, a head without end."""
    path = take(base, PLANES, home, stem) / stem.with_suffix(".npy")
    heads = [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000)}",
        "__import__('os').mkdir('executed')",
        "{'descr': '|O', 'fortran_order': False, 'shape': (16, 16)}",
        "(" * 60_000,
    ]
    head = heads[number].encode() + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + pickle.dumps(Pickled()) + bytes(2048))


def _png(stem: Path, number: int, base: Path, home: Path) -> None:
    """Sizes of gigapixels, of none, pixels that end early, and a text chunk that swells."""
    width, height = [(60000, 60000), (0, 16), (16, 16), (16, 16)][number]

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    pixels = zlib.compress(bytes(17 * (16 if number != 2 else 3)))
    text = chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(10**8))) if number == 3 else b""
    content = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) + text
    path = take(base, PLANES, home, stem) / stem.with_suffix(".png")
    path.write_bytes(content + chunk(b"IDAT", pixels) + (chunk(b"IEND", b"") if number != 3 else b"broken"))


def _tiff(stem: Path, number: int, base: Path, home: Path) -> None:
    """Sizes of gigapixels, a directory that points to itself, one beyond the end, pixels beyond the end."""
    path = put(take(base, PLANES, home, stem) / stem, ".tiff", np.ones((16, 16), np.uint8))
    content = bytearray(path.read_bytes())
    first = struct.unpack("<I", content[4:8])[0]
    count = struct.unpack("<H", content[first : first + 2])[0]
    tags = {struct.unpack("<H", content[at : at + 2])[0]: at for at in range(first + 2, first + 2 + 12 * count, 12)}
    if number == 0:
        for tag in (256, 257):
            content[tags[tag] + 2 : tags[tag] + 12] = struct.pack("<HII", 4, 1, 10**6)
    elif number == 1:
        end = first + 2 + 12 * count
        content[end : end + 4] = struct.pack("<I", first)
        content[tags[256] + 2 : tags[256] + 12] = struct.pack("<HII", 4, 1, 0)
    elif number == 2:
        content[4:8] = struct.pack("<I", 2**31)
    else:
        content[tags[273] + 8 : tags[273] + 12] = struct.pack("<I", 2**31)
    path.write_bytes(content)


# -- entries that are no files, and names -----------------------------------------------------------------------


def strange_entries() -> Attacks:
    def folder(path: Path) -> None:
        path.mkdir()

    def listening(path: Path) -> None:
        here = os.getcwd()
        os.chdir(path.parent)  # such names must be short
        socket.socket(socket.AF_UNIX).bind(path.name)
        os.chdir(here)

    makers: dict[str, Callable[[Path], None]] = {
        "a pipe": os.mkfifo, "a folder": folder, "a socket": listening,
        "a link to a device without end": lambda path: path.symlink_to("/dev/zero"),
        "a link to a device of chance": lambda path: path.symlink_to("/dev/urandom"),
        "a link to nothing": lambda path: path.symlink_to("nowhere"),
        "a link to itself": lambda path: path.symlink_to(path.name),
        "a link to a folder": lambda path: path.symlink_to("/tmp"),
    }  # fmt: skip
    for name, make in makers.items():
        for place in ("images/b.png", "raters/ann/b.png", "dataset.json", "truth/b.png"):
            names = ("check", "load") if place.startswith(("images", "truth")) else ("check", "load", "fuse")
            for command in verbs("cases", *names):
                yield Attack("strange entries", f"{place} is {name}", partial(_entry, place, make), command)
    for name, make in {"a pipe": os.mkfifo, "a device": lambda path: path.symlink_to("/dev/zero")}.items():
        for suffix in (".csv", ".parquet"):
            for command in verbs(f"answers{suffix}", "check", "load", "fuse", "train"):
                yield Attack(
                    "strange entries", f"answers{suffix} is {name}", partial(_alone, f"answers{suffix}", make), command
                )


def _entry(place: str, make: Callable[[Path], None], base: Path, home: Path) -> None:
    path = take(base, PLANES, home) / place
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    make(path)


def _alone(name: str, make: Callable[[Path], None], base: Path, home: Path) -> None:
    make(home / name)


def bad_names() -> Attacks:
    cases = [
        b"a\nb",
        b"a|b",
        b"a<b",
        b'a"b',
        b"a:b",
        b"a*b",
        b"a?b",
        b"caf\xe9",
        b"\xff\xfe",
        b"a\x01b",
        b"dot.",
        b"space ",
    ]
    for name in cases:
        for command in verbs("cases", "check", "load", "fuse"):
            yield Attack("bad names", f"case {name!r}", partial(_case_name, name), command)
    for name in (b"caf\xe9", b"\x80"):
        for command in verbs("cases", "check", "load", "fuse"):
            yield Attack("bad names", f"rater {name!r}", partial(_rater_name, name), command)


def _case_name(name: bytes, base: Path, home: Path) -> None:
    cases = take(base, PLANES, home)
    for folder in ("images", "raters/ann", "raters/bob"):
        shutil.copy(cases / folder / "b.png", os.fsencode(cases / folder) + b"/" + name + b".png")


def _rater_name(name: bytes, base: Path, home: Path) -> None:
    cases = take(base, PLANES, home)
    shutil.copytree(cases / "raters" / "bob", os.fsdecode(os.fsencode(cases / "raters") + b"/" + name))


# -- dataset.json -----------------------------------------------------------------------------------------------

WRONG: list[Any] = [3, "word", [[]], [3, [4]], {"a": []}, {"a": {"b": 1}}, True, 1e308, -(10**30)]


def bad_settings() -> Attacks:
    texts: dict[str, bytes] = {
        "empty": b"", "an open bracket": b"{", "a list": b"[]", "a word": b'"classes"', "null": b"null",
        "deep lists": b"[" * 100_000, "deep objects": b'{"a":' * 100_000, "a long number": b"9" * 5000,
        "a long number inside": b'{"missing": ' + b"9" * 5000 + b"}", "other encoding": b'{"classes": ["\xe9", "b"]}',
        "UTF-16": '{"classes": ["a", "b"]}'.encode("utf-16"), "half a character": rb'{"classes": ["a", "\ud800"]}',
        "half a character as a key": rb'{"raters": {"\udc80": {}}}', "NUL": b"\0" * 100, "70 MB": b" " * 70 * 2**20,
        "a pickle": pickle.dumps(Pickled()), "NaN": b'{"missing": NaN}', "unknown key": b'{"classs": ["a", "b"]}',
        "a trailing comma": b'{"classes": ["a", "b"],}', "YAML": b"classes:\n  - a\n  - b\n",
        "one class": b'{"classes": ["a"]}', "classes twice": b'{"classes": ["a", "a"]}',
        "values twice": b'{"classes": {"a": 0, "b": 0}}',
        "a missing class": b'{"classes": {"a": 0, "b": 7}, "missing": 7}',
        "unknown raters": b'{"raters": {"zoe": {}}}', "some groups": b'{"groups": {"a": "x"}}',
        "unknown groups": b'{"groups": {"zzz": "x"}}', "three channels": b'{"channels": ["r", "g", "b"]}',
        "negative of nothing": b'{"classes": ["a", "b"], "negative": {"zoe": 7}}',
        "300 classes": json.dumps({"classes": [str(n) for n in range(300)]}).encode(),
        "a class of no pixel value": b'{"classes": {"a": 0, "b": 70000}}',
    }  # fmt: skip
    for key in ("classes", "channels", "raters", "groups", "missing", "negative"):
        for value in WRONG[key == "missing" :]:  # 3 is a good value for nothing
            texts[f"{key} = {value!r}"] = json.dumps({key: value}).encode()
    for number, (name, content) in enumerate(texts.items()):
        for command in verbs("cases", "check", ("load", "fuse", "train")[number % 3]):
            yield Attack("dataset.json", name, partial(_settings, content), command)


def _settings(content: bytes, base: Path, home: Path) -> None:
    (take(base, PLANES, home) / "dataset.json").write_bytes(content)
