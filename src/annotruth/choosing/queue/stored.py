"""A queue read back from the files that ``Queue.write`` left."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from annotruth.choosing.queue.result import COLUMNS, GOLD_COLUMNS, Queue, pays_until
from annotruth.errors import InputError
from annotruth.io.names import from_cell

CURVE_COLUMNS = ("labels", "cost", "accuracy", "low", "high")


def read_queue(path: str | Path) -> Queue:
    """Read a queue, its curve and, where there is some, its hidden gold.

    Parameters
    ----------
    path : the CSV file; ``<name>.curve.csv`` and ``<name>.gold.csv`` lie beside it

    Examples
    --------
    >>> import tempfile
    >>> import annotruth as at
    >>> labels = at.Annotations.from_answers(np.array([[0, 0, 0], [1, 1, 1], [0, 1, -1], [1, 1, 1], [0, 0, 0]]))
    >>> queue = at.next_labels(at.DawidSkene().fit(labels), labels, budget=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = queue.write(Path(folder) / "queue.csv")
    ...     read_queue(Path(folder) / "queue.csv").table["item"].tolist()
    ['item_2']
    """
    path = Path(path)
    table = _read(path, COLUMNS)
    curve = _read(path.with_suffix(".curve.csv"), CURVE_COLUMNS)
    hidden = path.with_suffix(".gold.csv")
    gold = _read(hidden, GOLD_COLUMNS) if hidden.is_file() else pd.DataFrame(columns=list(GOLD_COLUMNS))
    if not len(curve):
        raise InputError(f"{path.with_suffix('.curve.csv')}: the curve is empty. Make the queue again.")
    for column in ("item", "rater"):
        table[column] = [from_cell(str(name)) if isinstance(name, str) else "" for name in table[column]]
    until = pays_until(np.diff(curve["accuracy"]), np.diff(curve["cost"]))
    labels = int(curve["labels"].iloc[until])
    count = int((table["action"] == "label").sum())
    now, then = curve.iloc[0], curve.iloc[-1]
    summary = [
        f"{count:,} labels at a cost of {then['cost']:g}. Expected accuracy: {now['accuracy']:.4f} now, "
        f"{then['accuracy']:.4f} then ({then['low']:.4f} – {then['high']:.4f})."
    ]
    summary.append(f"After {labels:,} labels, more hardly pay." if labels < count else "Labels still pay at the end.")
    advice = {action: tuple(table["item"][table["action"] == action]) for action in ("ask an expert", "drop")}
    return Queue(table, curve, labels, advice["ask an expert"], advice["drop"], tuple(summary), gold)


def _read(path: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    try:
        table = pd.read_csv(path, encoding="utf-8", dtype={"item": str, "rater": str, "reason": str, "truth": str})
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file. Make the queue by annotruth next.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as a queue ({error}). Make it by annotruth next.") from None
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise InputError(f"{path}: no queue of annotruth next: the columns {', '.join(missing)} are missing.")
    numbers = [column for column in columns if column not in ("action", "item", "rater", "reason", "truth")]
    for column in numbers:
        if not pd.api.types.is_numeric_dtype(table[column]):
            raise InputError(f"{path}: the column {column!r} holds more than numbers. Make the queue again.")
    return table
