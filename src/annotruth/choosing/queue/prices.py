"""What a label of each rater costs, and how many each can give: as told, from a file, or from how long labels took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from annotruth.data.answers import SYNONYMS
from annotruth.errors import InputError, shorten
from annotruth.io.tables import read_table

PerRater = Mapping[str, float] | float | None


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


def read_prices(path: Path) -> tuple[dict[str, float], dict[str, float] | None]:
    """Read costs by rater, and capacities if the file has them: columns rater, cost and capacity of a CSV or Parquet.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "costs.csv"
    ...     _ = path.write_text("rater,cost,capacity\\nann,2,20\\nbob,0.5,\\n")
    ...     read_prices(path)
    ({'ann': 2.0, 'bob': 0.5}, {'ann': 20.0})
    """
    costs = _read_numbers(path, "cost")
    missing = [rater for rater, cost in costs.items() if cost is None]
    if missing:
        raise InputError(f"{path}: no cost is given for {shorten(missing)}. Fill it in.")
    try:
        capacity = _read_numbers(path, "capacity")
    except InputError as error:
        if "no column 'capacity'" not in str(error):
            raise
        return {name: cost for name, cost in costs.items() if cost is not None}, None
    return (
        {name: cost for name, cost in costs.items() if cost is not None},
        {name: limit for name, limit in capacity.items() if limit is not None},
    )


def _read_numbers(path: Path, column: str) -> dict[str, float | None]:
    table = read_table(path, {"rater": SYNONYMS["rater"], column: (column,)})
    rater, value = table["rater"], table[column]
    found: dict[str, float | None] = {}
    for row, (who, number) in enumerate(zip(rater.codes.tolist(), value.codes.tolist()), start=1):
        if who < 0:
            raise InputError(f"{path}: row {row} names no rater. Fill it in, or remove the row.")
        name = rater.names[who]
        if name in found:
            raise InputError(f"{path}: {name} stands in two rows. Remove the wrong one.")
        try:
            found[name] = None if number < 0 else float(value.names[number])
        except ValueError:
            raise InputError(f"{path}: the {column} of {name} is a number, not {value.names[number]!r}.") from None
    return found


def learn_costs(path: Path, column: str) -> dict[str, float]:
    """What raters cost by how long their labels took: the median of a column of the label table, such as lead_time.

    A rater none of whose rows tell gets the median of all.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "labels.csv"
    ...     _ = path.write_text("item,rater,label,seconds\\na,ann,cat,10\\nb,ann,dog,30\\na,bob,cat,4\\n")
    ...     learn_costs(path, "seconds")
    {'ann': 20.0, 'bob': 4.0}
    """
    table = read_table(path, {"rater": SYNONYMS["rater"], column: (column,)})
    rater, taken = table["rater"], table[column]
    try:
        numbers = np.array([*(float(name) for name in taken.names), np.nan])
    except ValueError:
        raise InputError(
            f"{path}: the column {column!r} holds more than numbers: how long did each label take?"
        ) from None
    times = numbers[taken.codes]
    good = np.isfinite(times) & (times > 0)
    if not good.any():
        raise InputError(f"{path}: the column {column!r} tells of no label how long it took.")
    order = np.argsort(rater.codes[good], kind="stable")
    edges = np.searchsorted(rater.codes[good][order], np.arange(len(rater.names) + 1))
    parts = [times[good][order][start:stop] for start, stop in pairwise(edges)]
    usual = float(np.median(times[good]))
    return {name: float(np.median(part)) if len(part) else usual for name, part in zip(rater.names, parts)}
