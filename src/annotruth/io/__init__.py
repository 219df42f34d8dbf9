"""Read annotations from files, check them, and write results back in the same format.

A case folder::

    cases/
      images/<case>.<ext>           optional: fusion needs none
      raters/<rater>/<case>.<ext>   a missing file = not labelled
      raters/<rater>.negative/…     optional: coarse drawings of what is not there, the class that a pixel is not
      truth/<case>.<ext>            optional
      dataset.json                  optional: classes, channels, raters, groups, missing

NIfTI, PNG, TIFF, NPY and, for images alone, JPEG are told apart by suffix. The masks decide how many axes are spatial:
they have two or three. An image has the same axes, or one more for channels: the last of a NIfTI file, the first of an
NPY array, the colours of a PNG or JPEG, the colours, channels or pages of a TIFF.

A label table is one CSV or Parquet file with the columns item, rater, label. Its items may have pictures, one file each
in a folder, or features, one row each in a file.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from annotruth.data.annotations import Annotations
from annotruth.data.lazy import Lazy
from annotruth.errors import InputError
from annotruth.io.atomic import atomic, fresh_folder
from annotruth.io.cases import load_cases, load_images
from annotruth.io.check import check, nothing_to_load
from annotruth.io.features import load_features, read_features
from annotruth.io.pictures import find_pictures, read_picture
from annotruth.io.problems import Problem, refuse
from annotruth.io.table_writing import write_label_table, write_table, write_truth_table
from annotruth.io.tables import SUFFIXES, load_table
from annotruth.io.writing import write_case_folder, write_mask, write_probabilities

__all__ = [
    "Problem",
    "atomic",
    "check",
    "fresh_folder",
    "load",
    "load_features",
    "load_images",
    "write_case_folder",
    "write_label_table",
    "write_mask",
    "write_probabilities",
    "write_table",
    "write_truth_table",
]


def load(
    path: str | Path,
    truth: str | Path | None = None,
    *,
    images: str | Path | None = None,
    features: str | Path | None = None,
    duplicates: str = "error",
) -> Annotations:
    """Load a case folder or a label table.

    Of a case folder only the heads of files are read now, masks and images when they are needed; without ``classes``
    in dataset.json all masks are read once to find them.

    Parameters
    ----------
    path : a case folder, or a label table (.csv, .parquet) with the columns item, rater, label
    truth : for a label table, a second table with the columns item and truth
    images : for a label table, a folder of pictures, one file ``<item>.<ext>`` each
    features : for a label table, a file with one row of numbers per item, see :func:`load_features`
    duplicates : for a label table, what to do when a rater labelled an item twice and differently: "error" lists these
        answers, "keep-last" takes the one that stands last in the table

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
        for name, given in (("truth", truth), ("images", images), ("features", features)):
            if given is not None:
                raise InputError(f"{path}: {name}= goes with a label table; a case folder holds all of its own files.")
        return load_cases(path)
    if path.is_file() and path.suffix.lower() in SUFFIXES:
        table = load_table(path, None if truth is None else Path(truth), duplicates)
        return _with_inputs(table, images, features)
    raise InputError(nothing_to_load(path))


def _with_inputs(table: Annotations, images: str | Path | None, features: str | Path | None) -> Annotations:
    """Put pictures or features to the items of a label table."""
    if images is not None and features is not None:
        raise InputError("Give either pictures or features of the items, not both.")
    if features is not None:
        return table.with_images(read_features(Path(features)).of(table.items, Path(features)))
    if images is None:
        return table
    found = find_pictures(Path(images), table.items, refuse)
    pictures = [
        Lazy(partial(read_picture, found.files[item], found.rank, item), found.shapes[item]) for item in table.items
    ]
    return table.with_images(pictures, sources=[found.files[item] for item in table.items])
