"""Feature files: one row of numbers per item, as NPY, NPZ, CSV or Parquet."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from annotruth.data.annotations import Annotations
from annotruth.data.answers import SYNONYMS, class_name, sort_answers
from annotruth.errors import InputError, shorten
from annotruth.io.names import from_cell
from annotruth.io.tables import csv_head
from annotruth.validation import unique_names

FEATURE_SUFFIXES = (".npy", ".npz", ".csv", ".parquet")
NAMED_COLUMNS = (".csv", ".parquet")


@dataclass(frozen=True)
class Features:
    """What a feature file holds.

    Attributes
    ----------
    items : names; where the file has none, row numbers from 0
    columns : names; where the file has none, column numbers from 0
    values : (items, features) finite float32
    named, named_columns : whether the file names its items, and its columns
    """

    items: tuple[str, ...]
    columns: tuple[str, ...]
    values: np.ndarray
    named: bool
    named_columns: bool

    def select(self, columns: Sequence[str], path: Path) -> np.ndarray:
        """Some columns (items, columns) by their names; ``path`` is for the message."""
        place = {name: number for number, name in enumerate(self.columns)}
        missing = [name for name in columns if name not in place]
        if missing:
            raise InputError(
                f"{path}: columns that the model learnt from are not there, {len(missing)} of {len(columns)}: "
                f"{shorten(missing)}. Add them."
            )
        return self.values[:, [place[name] for name in columns]]

    def of(self, items: Sequence[str], path: Path) -> np.ndarray:
        """The rows (items, features) of some items, in their order; ``path`` is for the message."""
        row = {name: number for number, name in enumerate(self.items)}
        missing = [item for item in items if item not in row]
        if missing:
            unnamed = f" (it names no items, so they are its row numbers, 0 to {len(self.items) - 1})"
            raise InputError(
                f"{path}: items of the label table without features, {len(missing)} of {len(items)}: "
                f"{shorten(missing)}. Add their rows here{'' if self.named else unnamed}, or remove their answers."
            )
        return self.values[[row[item] for item in items]]


def load_features(path: str | Path, classes: Sequence[str] = (), columns: Sequence[str] | None = None) -> Annotations:
    """Load features without raters, to label the items with a model.

    Parameters
    ----------
    path : .csv or .parquet with a column item and a column per feature; .npz with the arrays features (items, features)
        and items (items,); or .npy. Without names, items are row numbers: 0, 1, 2 …
    classes : names
    columns : names of those that a model needs, in its order; None = all, as they stand

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "features.npy", np.zeros((3, 5)))
    ...     found = load_features(Path(folder) / "features.npy")
    >>> found.items, found.images.shape
    (('0', '1', '2'), (3, 5))
    """
    found = read_features(Path(path))
    values = found.values if columns is None or not found.named_columns else found.select(columns, Path(path))
    nobody = np.empty(0, dtype=np.int32)
    return Annotations(
        kind="labels", items=found.items, raters=(), classes=classes, answers=sort_answers(nobody, nobody, nobody),
        images=values,
    )  # fmt: skip


def read_features(path: Path) -> Features:
    """Read a feature file; what is wrong with it names the file, the item and the column."""
    suffix = path.suffix.lower()
    if not path.is_file() or suffix not in FEATURE_SUFFIXES:
        lack = "there is no such file" if not path.exists() else "not a feature file"
        raise InputError(f"{path}: {lack}. Features are kept as {', '.join(FEATURE_SUFFIXES)}.")
    try:
        items, columns, values = (_read_arrays if suffix in (".npy", ".npz") else _read_columns)(path)
        names = tuple(map(str, range(len(values)))) if items is None else unique_names(items, "item")
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (pa.ArrowException, UnicodeDecodeError, csv.Error, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: cannot be read as features ({error}). Save it anew.") from error
    except MemoryError as error:
        raise InputError(f"{path}: needs more memory than there is. Is the file damaged, or simply large?") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be opened: {error.strerror or error}.") from error
    if 0 in values.shape:
        raise InputError(f"{path}: there is no {'item' if len(values) == 0 else 'column of numbers'} in it.")
    with np.errstate(over="ignore"):
        values = values.astype(np.float32)
    _refuse_gaps(path, names, columns, values)
    return Features(names, columns, values, items is not None, suffix in NAMED_COLUMNS)


def column_names(path: Path) -> list[str] | None:
    """Names of the features in a file, in order; None where it has none. Only the file's head is read."""
    if path.suffix.lower() not in NAMED_COLUMNS:
        return None
    names = csv_head(path)[0] if path.suffix.lower() == ".csv" else pyarrow.parquet.read_schema(path).names
    return [name for name in names if name != _item_column(names)]


def _read_arrays(path: Path) -> tuple[list[str] | None, tuple[str, ...], np.ndarray]:
    loaded = np.load(path, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        values, items = loaded, None
    else:
        with loaded:
            arrays = {name: loaded[name] for name in loaded.files}
        if "features" not in arrays:
            raise InputError(
                f"there is no array 'features' among {shorten(sorted(arrays), 10)}. An NPZ file holds the arrays "
                "features (items, features) and, unless items are row numbers, items (items,)."
            )
        values, items = arrays["features"], arrays.get("items")
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        raise InputError(f"features are numbers (items, features), not {values.dtype} of shape {values.shape}.")
    if items is not None and items.shape != values.shape[:1]:
        raise InputError(f"there are {len(values)} rows of features, but the array items has shape {items.shape}.")
    names = None if items is None else [class_name(item) for item in items.tolist()]
    return names, tuple(map(str, range(values.shape[1]))), values


def _read_columns(path: Path) -> tuple[list[str] | None, tuple[str, ...], np.ndarray]:
    if path.suffix.lower() == ".csv":
        delimiter = csv_head(path)[1]
        table = pyarrow.csv.read_csv(
            path,
            parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter),
            convert_options=pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(SYNONYMS["item"], pa.string())),
        )
    else:
        table = pyarrow.parquet.read_table(path)
    names = unique_names(table.column_names, "column")
    item = _item_column(names)
    columns = [name for name in names if name != item]
    words = [name for name in columns if not _is_numeric(table.schema.field(name).type)]
    if words:
        raise InputError(f"column {shorten(words)} does not hold numbers. Remove it, or make numbers of it.")
    values = np.empty((table.num_rows, len(columns)))
    for number, name in enumerate(columns):
        values[:, number] = table[name].cast(pa.float64()).to_numpy()
    if item is None:
        return None, tuple(columns), values
    found = table[item].to_pylist()
    nameless = [row for row, name in enumerate(found, 1) if name is None or name == ""]
    if nameless:
        raise InputError(f"row {nameless[0]} has no {item}. Fill it in, or remove the row.")
    from_file = from_cell if path.suffix.lower() == ".csv" else str
    return [from_file(class_name(name)) for name in found], tuple(columns), values


def _item_column(names: Sequence[str]) -> str | None:
    """The column that names the items, if any does."""
    return next((name for name in SYNONYMS["item"] if name in names), None)


def _is_numeric(kind: pa.DataType) -> bool:
    types = pa.types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_null(kind)


def _refuse_gaps(path: Path, items: Sequence[str], columns: Sequence[str], values: np.ndarray) -> None:
    rows, places = np.nonzero(~np.isfinite(values))
    if len(rows):
        more = f" ({len(rows)} such values in {len(np.unique(rows))} items)" if len(rows) > 1 else ""
        raise InputError(
            f"{path}: item {items[rows[0]]}, column {columns[places[0]]}: the value is missing, NaN or "
            f"infinite{more}. Fill it in, or remove the item."
        )
