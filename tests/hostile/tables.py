"""Label tables and feature files with something bad in them."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from tests.hostile.attacks import Attack, Attacks, Pickled, verbs

SOUND = "item,rater,label\na,ann,cat\na,bob,dog\nb,ann,dog\nb,bob,dog\nc,ann,cat\nc,bob,cat\n"
ROWS = {"item": list("aabb"), "rater": ["ann", "bob"] * 2, "label": ["cat", "dog", "dog", "dog"]}


def all_attacks() -> Attacks:
    yield from bad_csv()
    yield from bad_parquet()
    yield from bad_features()
    yield from bad_truth()


def _write(name: str, content: bytes, base: Path, home: Path) -> None:
    (home / name).write_bytes(content)


def bad_csv() -> Attacks:
    head, *rows = SOUND.splitlines()
    texts: dict[str, bytes] = {
        "empty": b"", "a newline": b"\n", "only a head": b"item,rater,label\n", "no head": "\n".join(rows).encode(),
        "NUL": b"\0" * 500, "other encoding": SOUND.replace("cat", "caf\xe9").encode("latin-1"),
        "UTF-16": SOUND.encode("utf-16"), "two columns of labels": b"item,rater,label,label\na,b,c,d\n",
        "a row too short": SOUND.encode() + b"d,ann\n", "a row too long": SOUND.encode() + b"d,ann,cat,dog\n",
        "an open quote": SOUND.encode() + b'd,ann,"cat\n', "contradiction": SOUND.encode() + b"a,ann,dog\n",
        "a head of 8 MB": b"x" * 2**23, "a pickle": pickle.dumps(Pickled()),
        "a picture": b"\x89PNG\r\n\x1a\n" + bytes(99),
        "HTML": b"<html><body>login</body></html>", "JSON": b'{"item": ["a"]}',
        "random bytes": np.random.default_rng(0).bytes(5000),
        "no answer but names": b"item,rater,label\na,ann,\nb,bob,\n",
        "40,000 classes": b"item,rater,label\n" + b"".join(b"i%d,r%d,l%d\n" % (n, n % 9, n) for n in range(40_000)),
        "as many raters and classes as answers": b"item,rater,label\n"
        + b"".join(b"i%d,r%d,l%d\n" % (n, n, n) for n in range(400)),
        "5,000 raters, 1,000 classes": b"item,rater,label\n"
        + b"".join(b"i%d,r%d,l%d\n" % (n, n, n % 1000) for n in range(5000)),
    }  # fmt: skip
    heavy = ("as many raters", "5,000 raters")
    for column in range(3):
        names = head.split(",")
        texts[f"no column {names[column]}"] = SOUND.replace(names[column], "other", 1).encode()
        for empty in ("", "NA", "nan", "null"):
            cells = rows[1].split(",")
            cells[column] = empty
            texts[f"{names[column]} is {empty!r}"] = "\n".join([head, rows[0], ",".join(cells), *rows[2:]]).encode()
    for number, (name, content) in enumerate(texts.items()):
        several = ("fuse",) if name.startswith(heavy) else ("check", ("load", "fuse")[number % 2])
        for command in verbs("answers.csv", *several):
            yield Attack("label tables", f"CSV: {name}", partial(_write, "answers.csv", content), command)


def _parquet(**columns: Any) -> bytes:
    buffer = io.BytesIO()
    pa.parquet.write_table(pa.table({**ROWS, **columns}), buffer)
    return buffer.getvalue()


def bad_parquet() -> Attacks:
    sound = _parquet()
    contents: dict[str, bytes] = {
        "emptied": b"", "half": sound[: len(sound) // 2], "only magic": b"PAR1PAR1", "text": SOUND.encode(),
        "tail only": sound[-20:], "zeros": bytes(len(sound)), "a pickle": pickle.dumps(Pickled()),
        "a footer without end": sound[:-8] + b"\xff\xff\xff\x7fPAR1", "no row": _parquet(item=[], rater=[], label=[]),
        "footer of another": sound[: len(sound) // 2] + sound[-200:],
    }  # fmt: skip
    for column in ("item", "rater", "label"):
        for what, cells in {
            "lists": [["a"]] * 4, "records": [{"a": 1}] * 4, "bytes": [b"a"] * 4, "NaN": [1.0, np.nan, 2.0, 3.0],
            "nothing": ["a", None, "b", "c"], "empty text": ["a", "", "b", "c"], "deep lists": [[[["a"]]]] * 4,
        }.items():  # fmt: skip
            contents[f"{column}: {what}"] = _parquet(**{column: cells})
    for number, (name, content) in enumerate(contents.items()):
        for command in verbs("answers.parquet", "check", ("load", "fuse")[number % 2]):
            yield Attack("label tables", f"Parquet: {name}", partial(_write, "answers.parquet", content), command)


def _npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def _npy(array: Any, pickles: bool = False) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=pickles)
    return buffer.getvalue()


def _swelling() -> bytes:
    buffer = io.BytesIO()
    head = (
        b"\x93NUMPY\x01\x00v\x00"
        + b"{'descr': '<f8', 'fortran_order': False, 'shape': (500000, 5000)}".ljust(117)
        + b"\n"
    )
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("features.npy", head + bytes(10**8))
    return buffer.getvalue()


def bad_features() -> Attacks:
    table = np.zeros((3, 4))
    contents: dict[str, bytes] = {
        "features.npy": b"", "text.npy": SOUND.encode(), "words.npy": _npy(table.astype("U2")),
        "one.npy": _npy(np.zeros(3)),
        "three.npy": _npy(np.zeros((3, 4, 5))), "complex.npy": _npy(table.astype(complex)),
        "nan.npy": _npy(table + np.nan),
        "pickled.npy": _npy(np.array([Pickled()] * 3, dtype=object), pickles=True), "none.npy": _npy(np.zeros((0, 4))),
        "items.npy": _npy(table), "half.npy": _npy(table)[:100],
        "empty.npz": b"", "text.npz": b"PK\x03\x04", "other.npz": _npz(values=table),
        "short.npz": _npz(features=table, items=["a"]),
        "infinite.npz": _npz(features=table + np.inf, items=list("abc")), "swelling.npz": _swelling(),
        "twice.npz": _npz(features=table, items=["a", "a", "b"]),
        "empty.csv": b"", "head.csv": b"item,x\n", "words.csv": b"item,x\na,1\nb,red\nc,3\n",
        "gap.csv": b"item,x\na,1\nb,\nc,3\n",
        "twice.csv": b"item,x,x\na,1,2\nb,1,2\nc,1,2\n", "lacks.csv": b"item,x\na,1\nb,2\n",
        "nameless.csv": b"item,x\na,1\n,2\nc,3\n",
        "latin.csv": b"item,x\na\xe9,1\n", "inf.csv": b"item,x\na,1\nb,inf\nc,3\n",
        "empty.parquet": b"", "text.parquet": SOUND.encode(), "other.txt": SOUND.encode(),
        "lists.parquet": _parquet(item=list("abcd"), rater=[[1.0]] * 4, label=[1.0] * 4),
    }  # fmt: skip
    for name, content in contents.items():
        commands = [("check", "answers.csv", "--features", name)]
        commands.append(("train", "answers.csv", "--features", name, "-o", "out", "--epochs", "1", "--quiet"))
        for command in commands:
            yield Attack("features", name, partial(_beside, name, content), command)


def _beside(name: str, content: bytes, base: Path, home: Path) -> None:
    (home / "answers.csv").write_text(SOUND)
    (home / name).write_bytes(content)


def bad_truth() -> Attacks:
    contents: dict[str, bytes] = {
        "empty.csv": b"", "head.csv": b"item,truth\n", "other.csv": b"a,b\n1,2\n",
        "two.csv": b"item,truth\na,cat\na,dog\n",
        "text.parquet": b"text", "truth.txt": b"item,truth\na,cat\n", "lists.parquet": _parquet(truth=[["cat"]] * 4),
        "latin.csv": b"item,truth\na,caf\xe9\n",
    }  # fmt: skip
    makers: list[tuple[str, Callable[[Path, Path], None]]] = [
        (name, partial(_beside, name, content)) for name, content in contents.items()
    ]
    makers.append(("nowhere.csv", partial(_beside, "unused", b"")))
    for name, lay_out in makers:
        yield Attack("known truth", name, lay_out, ("fuse", "answers.csv", "--gold", name, "-o", "out"))
        yield Attack(
            "known truth", name, lay_out,
            ("train", "answers.csv", "--truth", name, "--features", "answers.csv", "-o", "out", "--quiet"),
        )  # fmt: skip
