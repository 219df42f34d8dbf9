"""Read annotations from files, check them, and write results back in the same format.

A case folder::

    cases/
      images/<case>.<ext>           optional: fusion needs none
      raters/<rater>/<case>.<ext>   a missing file = not labelled
      truth/<case>.<ext>            optional
      dataset.json                  optional: classes, channels, raters, groups, missing

NIfTI, PNG, TIFF and NPY are told apart by suffix. The masks decide how many axes are spatial: they have two or three.
An image has the same axes, or one more for channels: the last of a NIfTI file, the first of an NPY array, the colours
of a PNG, the colours, channels or pages of a TIFF.

A label table is one CSV or Parquet file with the columns item, rater, label.
"""

from __future__ import annotations

from pathlib import Path

from annotruth.annotations import Annotations
from annotruth.errors import InputError
from annotruth.io.atomic import atomic, fresh_folder
from annotruth.io.cases import load_cases, load_images
from annotruth.io.check import check, nothing_to_load
from annotruth.io.problems import Problem
from annotruth.io.table_writing import write_table, write_truth_table
from annotruth.io.tables import SUFFIXES, load_table
from annotruth.io.writing import write_case_folder, write_mask, write_probabilities

__all__ = [
    "Problem",
    "atomic",
    "check",
    "fresh_folder",
    "load",
    "load_images",
    "write_case_folder",
    "write_mask",
    "write_probabilities",
    "write_table",
    "write_truth_table",
]


def load(path: str | Path, truth: str | Path | None = None) -> Annotations:
    """Load a case folder or a label table.

    Of a case folder only the heads of files are read now, masks and images when they are needed; without ``classes``
    in dataset.json all masks are read once to find them.

    Parameters
    ----------
    path : a case folder, or a label table (.csv, .parquet) with the columns item, rater, label
    truth : for a label table, a second table with the columns item and truth

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder) / "answers.csv"
    ...     _ = table.write_text("item,rater,label\\na,ann,cat\\na,bob,dog\\nb,ann,cat\\n")
    ...     load(table)
    Annotations(labels: 2 items, 2 raters, 2 classes, 3 answers)
    """
    path = Path(path)
    if path.is_dir():
        if truth is not None:
            raise InputError(f"{path}: truth= goes with a label table; put a case folder's true masks into truth/.")
        return load_cases(path)
    if path.is_file() and path.suffix.lower() in SUFFIXES:
        return load_table(path, None if truth is None else Path(truth))
    raise InputError(nothing_to_load(path))
