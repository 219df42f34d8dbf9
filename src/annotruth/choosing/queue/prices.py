"""What a label costs, by rater and kind of item, and how many labels each rater can give: as told, or from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from annotruth.data.answers import SYNONYMS
from annotruth.errors import InputError, shorten
from annotruth.io.tables import Column, read_table

PerRater = Mapping[str, float] | float | None
Costs = Mapping[str, float | Mapping[str, float]] | float | None
"""Of a label: one number for all; by rater; or by rater and kind of item, "" for all kinds that are not named."""
ANY_KIND = ""


@dataclass(frozen=True)
class Prices:
    """What labels cost.

    Attributes
    ----------
    table : (kinds, raters) by kind of item
    kind : (items,) position of each item's kind
    """

    table: np.ndarray
    kind: np.ndarray

    @property
    def least(self) -> np.ndarray:
        """The least that a label of each rater costs, (raters,)."""
        return np.asarray(self.table.min(axis=0))

    def of(self, items: np.ndarray, raters: np.ndarray) -> np.ndarray:
        """Costs (some items, candidates) of labels by candidates (some items or 1, candidates)."""
        return np.asarray(self.table[self.kind[items][:, None], raters])


def flat_prices(cost: Prices | np.ndarray, n_items: int) -> Prices:
    """Prices as they are, or those of items of one kind from costs (raters,).

    Examples
    --------
    >>> flat_prices(np.array([2.0, 1.0]), 3).of(np.array([0, 2]), np.array([[1], [0]]))
    array([[1.],
           [2.]])
    """
    return cost if isinstance(cost, Prices) else Prices(np.asarray(cost)[None], np.zeros(n_items, dtype=np.int64))


def item_prices(
    costs: Costs, raters: Sequence[str], items: Sequence[str], kinds: Mapping[str, str] | None = None
) -> Prices:
    """Prices of all items; a label costs 1 by default.

    Parameters
    ----------
    kinds : of items, by name; needed where costs differ by kind

    Examples
    --------
    >>> found = item_prices({"ann": {"CT": 5, "": 2}, "bob": 1}, ["ann", "bob"], ["a", "b"], {"a": "CT", "b": "MR"})
    >>> found.of(np.array([0, 1]), np.array([[0, 1]]))
    array([[5., 1.],
           [2., 1.]])
    """
    nested = isinstance(costs, Mapping) and any(isinstance(value, Mapping) for value in costs.values())
    if not nested:
        return flat_prices(rater_costs(costs, raters), len(items))  # type: ignore[arg-type]
    assert isinstance(costs, Mapping)
    if kinds is None:
        raise InputError(
            "Costs differ by kind of item, and of no item is it told what kind it is. Give kinds=, --kinds."
        )
    missing = [item for item in items if item not in kinds]
    if missing:
        raise InputError(
            f"No kind is told of {len(missing)} of {len(items)} items: {shorten(missing)}. Give one for each."
        )
    names = list(dict.fromkeys(kinds[item] for item in items))
    rows = []
    for kind in names:
        here = {who: value.get(kind, value.get(ANY_KIND)) if isinstance(value, Mapping) else value
                for who, value in costs.items()}  # fmt: skip
        lacking = [str(who) for who, value in here.items() if value is None]
        if lacking:
            raise InputError(
                f"Costs are missing for items of the kind {kind!r} by {shorten(lacking)}. Give one for each."
            )
        rows.append(rater_costs({who: value for who, value in here.items() if value is not None}, raters))
    position = {name: number for number, name in enumerate(names)}
    return Prices(np.stack(rows), np.array([position[kinds[item]] for item in items]))


def rater_costs(costs: PerRater, raters: Sequence[str]) -> np.ndarray:
    """Costs (raters,) of one label: one for all, or one for each by name; 1 by default.

    Examples
    --------
    >>> rater_costs({"ann": 2, "bob": 0.5}, ["ann", "bob"])
    array([2. , 0.5])
    >>> rater_costs({"ann": 2}, ["ann", "bob"])
    Traceback (most recent call last):
    annotruth.errors.InputError: Costs are missing for 1 of 2 raters: bob. Give one for each.
    """
    given = _by_rater(costs, raters, "Costs", 1.0)
    if np.isnan(given).any():
        missing = [rater for rater, cost in zip(raters, given) if np.isnan(cost)]
        raise InputError(
            f"Costs are missing for {len(missing)} of {len(raters)} raters: {shorten(missing)}. Give one for each."
        )
    wrong = [f"{rater} ({cost:g})" for rater, cost in zip(raters, given) if not (np.isfinite(cost) and cost > 0)]
    if wrong:
        raise InputError(f"A label costs more than 0, and a finite number: {shorten(wrong)}.")
    return given


def rater_capacity(capacity: PerRater, raters: Sequence[str]) -> np.ndarray:
    """How many labels each can give, (raters,): one number for all, or by name; inf for whoever is not named.

    Examples
    --------
    >>> rater_capacity({"ann": 20}, ["ann", "bob"])
    array([20., inf])
    """
    given = _by_rater(capacity, raters, "Capacities", np.inf)
    given = np.where(np.isnan(given), np.inf, given)
    wrong = [f"{rater} ({limit:g})" for rater, limit in zip(raters, given) if limit < 0]
    if wrong:
        raise InputError(f"A capacity is a number of labels, 0 at least: {shorten(wrong)}.")
    return np.floor(given)


def _by_rater(values: PerRater, raters: Sequence[str], what: str, usual: float) -> np.ndarray:
    """Numbers (raters,), nan for whoever is not named."""
    if values is None or not isinstance(values, Mapping):
        value = usual if values is None else _number(values, what, "all raters")
        return np.full(len(raters), value)
    strangers = [str(name) for name in values if str(name) not in set(raters)]
    if strangers:
        raise InputError(
            f"{what} name raters who labelled nothing: {shorten(strangers)}. "
            f"The raters are {shorten(list(raters), 10)}."
        )
    given = {str(name): _number(value, what, str(name)) for name, value in values.items()}
    return np.array([given.get(rater, np.nan) for rater in raters], dtype=np.float64)


def _number(value: object, what: str, whose: str) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(f"{what} are numbers, not {value!r} ({whose}).") from None
    if np.isnan(number):
        raise InputError(f"{what} are numbers, not nan ({whose}).")
    return number


def read_prices(path: Path) -> tuple[dict[str, float | dict[str, float]], dict[str, float] | None]:
    """Read costs by rater, or by rater and kind of item, and capacities if the file has them, from CSV or Parquet.

    The columns are rater and cost; there may be kind, where an empty cell stands for all kinds that are not named, and
    capacity, which need stand in one of a rater's rows only.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "costs.csv"
    ...     _ = path.write_text("rater,kind,cost,capacity\\nann,CT,2,20\\nann,MR,3,\\nbob,,0.5,\\n")
    ...     read_prices(path)
    ({'ann': {'CT': 2.0, 'MR': 3.0}, 'bob': {'': 0.5}}, {'ann': 20.0})
    """
    kinds = _has_column(path, "kind")
    limits = _has_column(path, "capacity")
    columns = {"rater": SYNONYMS["rater"], "cost": ("cost",)}
    columns |= {"kind": ("kind",)} if kinds else {}
    columns |= {"capacity": ("capacity",)} if limits else {}
    table = read_table(path, columns)
    costs: dict[str, dict[str, float]] = {}
    capacity: dict[str, float] = {}
    for row, who in enumerate(table["rater"].codes.tolist()):
        if who < 0:
            raise InputError(f"{path}: row {row + 1} names no rater. Fill it in, or remove the row.")
        name = table["rater"].names[who]
        kind = _text(table["kind"], row) if kinds else None
        cost = _float(path, table["cost"], row, "cost", name)
        if cost is None:
            raise InputError(f"{path}: no cost is given for {name}{f' and {kind}' if kind else ''}. Fill it in.")
        mine = costs.setdefault(name, {})
        if (kind or ANY_KIND) in mine:
            raise InputError(f"{path}: {name} stands in two rows{f' of {kind}' if kind else ''}. Remove the wrong one.")
        mine[kind or ANY_KIND] = cost
        limit = _float(path, table["capacity"], row, "capacity", name) if limits else None
        if limit is not None and capacity.setdefault(name, limit) != limit:
            raise InputError(
                f"{path}: {name} has two capacities, {capacity[name]:g} and {limit:g}. Remove the wrong one."
            )
    told: dict[str, float | dict[str, float]] = dict(costs) if kinds else {n: c[ANY_KIND] for n, c in costs.items()}
    return told, capacity if limits else None


def read_kinds(path: Path) -> dict[str, str]:
    """Read what kind each item is of: the columns item and kind of a CSV or Parquet file, such as the label table.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "kinds.csv"
    ...     _ = path.write_text("item,kind\\na,CT\\nb,MR\\n")
    ...     read_kinds(path)
    {'a': 'CT', 'b': 'MR'}
    """
    table = read_table(path, {"item": SYNONYMS["item"], "kind": ("kind",)})
    found: dict[str, str] = {}
    for row in range(len(table["item"].codes)):
        item, kind = _text(table["item"], row), _text(table["kind"], row)
        if item and kind and found.setdefault(item, kind) != kind:
            raise InputError(f"{path}: {item} is of two kinds, {found[item]} and {kind}. Remove the wrong one.")
    return found


def _has_column(path: Path, name: str) -> bool:
    try:
        read_table(path, {name: (name,)})
    except InputError as error:
        if f"no column {name!r}" not in str(error):
            raise
        return False
    return True


def _text(column: Column, row: int) -> str:
    code = int(column.codes[row])
    return "" if code < 0 else column.names[code]


def _float(path: Path, column: Column, row: int, what: str, name: str) -> float | None:
    text = _text(column, row)
    try:
        return float(text) if text else None
    except ValueError:
        raise InputError(f"{path}: the {what} of {name} is a number, not {text!r}.") from None
