"""Features of a label table's items: read in every format, and what is said where they are bad."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from annotruth import load
from annotruth.errors import InputError
from annotruth.io import check, load_features
from annotruth.io.features import read_features

ITEMS = ("b 1", "ä", "c")

VALUES = np.arange(6, dtype=np.float32).reshape(3, 2)


def write(path: Path, values: np.ndarray = VALUES, items: tuple[str, ...] | None = ITEMS) -> Path:
    frame = pd.DataFrame(values, columns=["red", "green"])
    if items is not None:
        frame.insert(1, "item", items)  # the column may stand anywhere
    match path.suffix:
        case ".csv":
            frame.to_csv(path, index=False)
        case ".parquet":
            frame.to_parquet(path)
        case ".npz":
            np.savez(path, features=values, **({} if items is None else {"items": np.array(items)}))
        case ".npy":
            np.save(path, values)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_features_by_name(table: Path, suffix: str) -> None:
    found = load(table, features=write(table.with_suffix(suffix) if suffix != ".csv" else table.parent / "f.csv"))
    assert found.items == ("c", "b 1", "ä")
    np.testing.assert_array_equal(found.images, VALUES[[2, 0, 1]])


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz", ".npy"])
def test_features_by_row_number(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "labels.csv").write_text("item,rater,label\n2,ann,x\n0,ann,y\n")
    features = write(tmp_path / f"f{suffix}", items=None)
    np.testing.assert_array_equal(load(tmp_path / "labels.csv", features=features).images, VALUES[[2, 0]])
    alone = load_features(features, classes=("x", "y"))
    assert (alone.items, alone.raters, alone.classes) == (("0", "1", "2"), (), ("x", "y"))
    np.testing.assert_array_equal(alone.images, VALUES)


def test_names_are_taken_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("task;size;old\n007;1;true\n7;2.5;false\n")
    found = read_features(tmp_path / "f.csv")
    assert (found.items, found.columns) == (("007", "7"), ("size", "old"))
    np.testing.assert_array_equal(found.values, [[1, 1], [2.5, 0]])
    pd.DataFrame({"item": [7, 8], "x": [1, 2]}).to_parquet(tmp_path / "f.parquet")
    assert read_features(tmp_path / "f.parquet").items == ("7", "8")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
@pytest.mark.parametrize("gap", [np.nan, np.inf])
def test_gaps_name_item_and_column(table: Path, suffix: str, gap: float) -> None:
    values = VALUES.copy()
    values[1, 1] = gap
    features = write(table.parent / f"f{suffix}", values)
    column = "1" if suffix == ".npz" else "green"
    with pytest.raises(
        InputError, match=rf"f\{suffix}: item ä, column {column}: the value is missing, NaN or infinite\."
    ):
        load(table, features=features)
    values[2] = gap
    with pytest.raises(InputError, match=r"\(3 such values in 2 items\)\. Fill it in, or remove the item"):
        load(table, features=write(features, values))
    assert [problem.severity for problem in check(table, features=features)] == ["fatal"]


def test_items_without_features_are_counted_and_named(table: Path) -> None:
    features = write(table.parent / "f.parquet", VALUES[:2], ITEMS[:2])
    with pytest.raises(InputError, match=r"f\.parquet: items of the label table without features, 1 of 3: c\. Add"):
        load(table, features=features)
    with pytest.raises(InputError, match=r"3 of 3: c, b 1, ä\. .*row numbers, 0 to 2"):
        load(table, features=write(table.parent / "f.npy"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("f.csv", b"item,x\na,1\na,2\n", r"named twice: a"),
        ("f.csv", b"item,x,x\na,1,2\n", r"Each column needs a name of its own; named twice: x"),
        ("f.csv", b"item,x\na,red\n", r"column x does not hold numbers"),
        ("f.csv", b"item\na\n", r"no column of numbers"),
        ("f.csv", b"item,x\n", r"no item in it|does not hold numbers"),
        ("f.csv", b"item,x\n,1\n", r"row 1 has no item"),
        ("f.csv", "item,x\nä,1\n".encode("latin-1"), r"cannot be read as features"),
        ("f.parquet", b"PAR1 nonsense", r"cannot be read as features"),
        ("f.npy", b"nonsense", r"cannot be read as features"),
        ("f.npz", b"PK nonsense", r"cannot be read as features"),
        ("f.txt", b"", r"not a feature file\. Features are kept as \.npy"),
        ("none.csv", None, r"there is no such file"),
    ],
)
def test_bad_feature_files_are_named(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=f"{name}: .*(?:{message})"):
        read_features(tmp_path / name)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": VALUES}, "no array 'features' among x"),
        ({"features": VALUES[0]}, r"not float32 of shape \(2,\)"),
        ({"features": np.array([["a"]])}, "features are numbers"),
        ({"features": VALUES, "items": np.array(["a"])}, "3 rows of features, but the array items"),
        ({"features": np.array([[object()]])}, "cannot be read"),
    ],
)
def test_bad_archives(tmp_path: Path, arrays: dict[str, np.ndarray], message: str) -> None:
    np.savez(tmp_path / "f.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=rf"f\.npz: .*{message}"):
        read_features(tmp_path / "f.npz")
