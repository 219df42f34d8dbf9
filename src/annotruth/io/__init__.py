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

A label table is a CSV or Parquet file, or a folder of Parquet files, with the columns item, rater, label. Its items may
have pictures, one file each in a folder, or features, one row each in a file.

These two are sources; ``sources`` holds one module for each, and what ``load`` and ``check`` ask. Others are what
labelling tools export and how papers lay out their data; ``import_source`` turns them into a case folder or a table.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from annotruth.io.sources import (
    Source,
    check,
    describe_takers,
    find_source,
    load,
    nothing_to_load,
    register,
)
from annotruth.io.writing import (
    atomic,
    fresh_folder,
    refuse_used_folder,
    write_case_folder,
    write_mask,
    write_probabilities,
)

if TYPE_CHECKING:
    from annotruth.io.features import column_names, load_features
    from annotruth.io.files import case_of, suffix_of
    from annotruth.io.importing import Imported, import_source
    from annotruth.io.objects import load_objects, write_objects
    from annotruth.io.problems import Problem
    from annotruth.io.sources import SOURCES
    from annotruth.io.sources.case_folder import load_images, nothing_sound
    from annotruth.io.tables import read_truth, write_label_table, write_table, write_truth_table

_HOME = {
    "column_names": "features", "load_features": "features", "case_of": "files", "suffix_of": "files",
    "Imported": "importing", "import_source": "importing", "load_objects": "objects", "write_objects": "objects",
    "Problem": "problems", "SOURCES": "sources",
    "load_images": "sources.case_folder", "nothing_sound": "sources.case_folder",
    "read_truth": "tables", "write_label_table": "tables", "write_table": "tables", "write_truth_table": "tables",
}  # fmt: skip
"""What not every job needs, and where it is: loaded on first use, tables and imports with libraries of their own."""

__all__ = [
    "SOURCES",
    "Imported",
    "Problem",
    "Source",
    "atomic",
    "case_of",
    "check",
    "column_names",
    "describe_takers",
    "find_source",
    "fresh_folder",
    "import_source",
    "load",
    "load_features",
    "load_images",
    "load_objects",
    "nothing_sound",
    "nothing_to_load",
    "read_truth",
    "refuse_used_folder",
    "register",
    "suffix_of",
    "write_case_folder",
    "write_label_table",
    "write_mask",
    "write_objects",
    "write_probabilities",
    "write_table",
    "write_truth_table",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'annotruth.io' has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
