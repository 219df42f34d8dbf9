"""Tables of answers that are no classes: comparisons, marks, findings. Which one a file is, and reading it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from annotruth.data.answers import SYNONYMS
from annotruth.data.comparisons import Comparisons
from annotruth.data.findings import Findings
from annotruth.data.long_tables import Columns
from annotruth.data.marks import Marks
from annotruth.errors import InputError

Kind = TypeVar("Kind", Comparisons, Findings, Marks)


def kind_of(names: Sequence[str]) -> type[Comparisons] | type[Findings] | type[Marks] | None:
    """The kind of answers that a table's columns speak for, if they cannot be classes; None otherwise.

    Marks are told from classes by their values alone, and so never by their columns.

    Examples
    --------
    >>> kind_of(["left", "right", "worker", "label"]).__name__
    'Comparisons'
    >>> kind_of(["item", "rater", "label"]) is None
    True
    """
    if _has(names, Comparisons.columns):
        return Comparisons
    if _has(names, Findings.long_columns) or ("findings" in names and _has(names, Findings.columns)):
        return Findings
    return None


def advise_method(names: Sequence[str]) -> str:
    """A sentence, after a space, on the method for a table with such columns; nothing where none is known.

    Examples
    --------
    >>> advise_method(["item", "rater", "findings"])
    ' This is a table of findings: take --method multi-label.'
    """
    kind = kind_of(names)
    if kind is not None:
        return f" This is a {kind.table_name}: take --method {' or '.join(kind.methods)}."
    if _has(names, SYNONYMS):
        return (
            f" This is a label table: take --method dawid-skene; {Marks.methods[0]} where labels are numbers; "
            f"{Findings.methods[0]} where a cell holds several, as a|b."
        )
    if _has(names, Marks.columns):
        return f" This is a {Marks.table_name}: take --method {Marks.methods[0]}."
    return ""


def load_answers(path: str | Path, kind: type[Kind], duplicates: str = "error") -> Kind:
    """Load a table of one kind; what is wrong with it names the file, and a method for what it holds instead.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "marks.csv").write_text("item,rater,value\\na,ann,3.5\\na,bob,4\\n")
    ...     load_answers(Path(folder) / "marks.csv", Marks)
    Marks(2 answers: 1 items, 2 raters)
    """
    from annotruth.io.crowd import read_frame  # which loads pandas

    path = Path(path)
    if path.is_dir():
        raise InputError(
            f"{path}: is a folder. A {kind.table_name} is one file, CSV or Parquet, with the columns "
            f"{', '.join(kind.columns)}; for a folder of masks, take --method staple."
        )
    frame = read_frame(path)
    try:
        return kind.from_table(frame, duplicates) if issubclass(kind, Findings) else kind.from_table(frame)
    except InputError as error:
        names = [str(name) for name in frame.columns]
        other = kind_of(names) is not kind and not _has(names, kind.columns)
        raise InputError(f"{path}: {error}{advise_method(names) if other else ''}") from None


def _has(names: Sequence[str], columns: Columns) -> bool:
    return all(any(name in names for name in synonyms) for synonyms in columns.values())
