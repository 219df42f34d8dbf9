"""What tables of answers that are no classes have in common: a row per answer, columns under one of several names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from annotruth.data.answers import class_name
from annotruth.errors import InputError, shorten

if TYPE_CHECKING:
    import pandas as pd

Columns = Mapping[str, tuple[str, ...]]
"""Names that a column may have, our own first, by our own."""


def take_columns(frame: pd.DataFrame, columns: Columns, table: str) -> dict[str, pd.Series]:
    """Find the columns of a table, each under the first of its possible names.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"task": ["a"], "score": [3.5]})
    >>> list(take_columns(frame, {"item": ("item", "task"), "value": ("value", "score")}, "table of marks"))
    ['item', 'value']
    """
    found = {}
    for ours, names in columns.items():
        present = [name for name in names if name in frame.columns]
        if not present:
            other = f" (nor {', '.join(names[1:])})" if len(names) > 1 else ""
            raise InputError(
                f"A {table} needs the columns {', '.join(columns)}; there is no {ours!r}{other} among "
                f"{shorten([str(name) for name in frame.columns], 10)}."
            )
        found[ours] = frame[present[0]].reset_index(drop=True)
    if not len(frame):
        raise InputError(f"The {table} has a head but no row.")
    return found


def number_names(values: pd.Series, what: str, table: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Number names in the order of their first appearance; give the numbers (rows,) int64, and the names.

    Examples
    --------
    >>> import pandas as pd
    >>> number_names(pd.Series(["b", 7.0, "b"]), "item", "table of marks")
    (array([0, 1, 0]), ('b', '7'))
    """
    import pandas as pd

    codes, distinct = pd.factorize(values)
    names: dict[str, int] = {}
    place = np.full(len(distinct) + 1, -1, dtype=np.int64)  # the last is that of cells that hold nothing
    for number, value in enumerate(distinct):
        name = class_name(value).strip()
        if name:
            place[number] = names.setdefault(name, len(names))
    numbers = place[codes]
    if (numbers < 0).any():
        row = int(np.flatnonzero(numbers < 0)[0]) + 1
        raise InputError(f"Row {row} of the {table} has no {what}. Fill it in, or remove the row.")
    return numbers, tuple(names)


def refuse_outside(numbers: np.ndarray, count: int, what: str) -> None:
    """Refuse positions that are none of ``count`` names."""
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < count):
        raise InputError(f"An answer names the {what} number {numbers.max()}, and there are {count}.")
