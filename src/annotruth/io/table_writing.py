"""Label tables and their truth as CSV or Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.io.atomic import atomic
from annotruth.io.tables import SUFFIXES


def write_table(path: str | Path, annotations: Annotations) -> Path:
    """Write the answers as a table with the columns item, rater, label; ``load`` reads it back.

    Examples
    --------
    >>> import tempfile
    >>> annotations = Annotations.from_answers(np.array([[0, 1], [1, -1]]), classes=["cat", "dog"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(write_table(Path(folder) / "answers.csv", annotations).read_text())
    "item","rater","label"
    "item_0","rater_1","cat"
    "item_0","rater_2","dog"
    "item_1","rater_1","dog"
    <BLANKLINE>
    """
    answers = annotations.answers
    columns = {
        "item": _named(answers.item, annotations.items),
        "rater": _named(answers.rater, annotations.raters),
        "label": _named(answers.label, annotations.classes),
    }
    return _write(Path(path), pa.table(columns))


def write_truth_table(
    path: str | Path, annotations: Annotations, labels: np.ndarray, probabilities: np.ndarray | None = None
) -> Path:
    """Write one label per item as a table with the columns item and truth; ``load(…, truth=path)`` reads it back.

    Parameters
    ----------
    labels : (items,) class numbers, -1 = unknown
    probabilities : (items, classes), written into one column per class

    Examples
    --------
    >>> import tempfile
    >>> annotations = Annotations.from_answers(np.array([[0, 1], [1, -1]]), classes=["cat", "dog"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(write_truth_table(Path(folder) / "truth.csv", annotations, np.array([0, 1])).read_text())
    "item","truth"
    "item_0","cat"
    "item_1","dog"
    <BLANKLINE>
    """
    return _write(Path(path), _labelled(annotations, "truth", np.asarray(labels), probabilities))


def write_label_table(path: str | Path, annotations: Annotations, probabilities: np.ndarray) -> Path:
    """Write a model's predictions (items, classes) as a table with the columns item, label and one per class.

    Examples
    --------
    >>> import tempfile
    >>> annotations = Annotations.from_answers(np.array([[0], [1]]), classes=["cat", "dog"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_label_table(Path(folder) / "a.csv", annotations, np.array([[0.9, 0.1], [0.2, 0.8]]))
    ...     print(path.read_text())
    "item","label","probability of cat","probability of dog"
    "item_0","cat",0.9,0.1
    "item_1","dog",0.2,0.8
    <BLANKLINE>
    """
    return _write(Path(path), _labelled(annotations, "label", np.argmax(probabilities, axis=1), probabilities))


def _labelled(annotations: Annotations, column: str, labels: np.ndarray, probabilities: np.ndarray | None) -> pa.Table:
    columns = {"item": pa.array(annotations.items, pa.string()), column: _named(labels, annotations.classes)}
    if probabilities is not None:
        for number, name in enumerate(annotations.classes):
            columns[f"probability of {name}"] = pa.array(np.asarray(probabilities, dtype=np.float32)[:, number])
    return pa.table(columns)


def _named(codes: np.ndarray, names: Sequence[str]) -> pa.Array:
    numbers = pa.array(codes.astype(np.int32), mask=codes < 0)
    return pa.DictionaryArray.from_arrays(numbers, pa.array(names, pa.string()))


def _write(path: Path, table: pa.Table) -> Path:
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: a label table is written as {' or '.join(SUFFIXES)}.")
    with atomic(path) as temporary:
        if path.suffix.lower() == ".csv":
            pyarrow.csv.write_csv(table, temporary)
        else:
            pyarrow.parquet.write_table(table, temporary)
    return path
