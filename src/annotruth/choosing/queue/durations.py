"""What labels cost by how long they took: learnt from durations, or from when labels were given."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np

from annotruth.choosing.queue.prices import ANY_KIND
from annotruth.data.answers import SYNONYMS
from annotruth.errors import InputError
from annotruth.io.tables import Column, read_table
from annotruth.io.timing import parse_times

PRIOR_LABELS = 4.0
"""Labels of a kind that a rater is taken to have given, as fast as rater and kind say apart from each other."""
MOST_SECONDS = 1e8
"""No label takes three years: larger numbers are times, in seconds since 1970."""


def learn_costs(path: Path, column: str, kinds: Mapping[str, str] | None = None) -> dict[str, float | dict[str, float]]:
    """What raters cost by how long their labels took, the median in seconds, perhaps by kind of item.

    A rater none of whose rows tell gets the median of all. Kinds of item make all raters slower or faster alike; a
    rater with many labels of a kind is taken at the median of these, one with few between the two.

    Parameters
    ----------
    path : the label table
    column : numbers, how long each label took; or times, when each was given: then the time since the rater's last one
    kinds : of items, by name

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "labels.csv"
    ...     _ = path.write_text("item,rater,label,seconds\\na,ann,cat,10\\nb,ann,dog,30\\na,bob,cat,4\\n")
    ...     learn_costs(path, "seconds")
    {'ann': 20.0, 'bob': 4.0}
    """
    table = read_table(path, {"item": SYNONYMS["item"], "rater": SYNONYMS["rater"], column: (column,)})
    rater, seconds = table["rater"], _seconds(path, table["rater"], table[column], column)
    good = np.isfinite(seconds) & (seconds > 0) & (rater.codes >= 0)
    if not good.any():
        raise InputError(f"{path}: the column {column!r} tells of no label how long it took.")
    who, logs = rater.codes[good], np.log(seconds[good])
    usual = _medians(who, logs, len(rater.names), float(np.median(logs)))
    if kinds is None:
        medians = _medians(who, seconds[good], len(rater.names), float(np.median(seconds[good])))
        return {name: float(cost) for name, cost in zip(rater.names, medians)}
    names = list(dict.fromkeys(kinds.values()))
    position = {name: number for number, name in enumerate(names)}
    of_item = np.array([position.get(kinds.get(name, ANY_KIND), -1) for name in table["item"].names])
    kind = of_item[table["item"].codes[good]]
    slower = _medians(kind, logs - usual[who], len(names), 0.0)
    own = _medians(who * len(names) + kind, logs, len(rater.names) * len(names), 0.0, kind >= 0)
    count = np.bincount((who * len(names) + kind)[kind >= 0], minlength=len(own)).reshape(-1, len(names))
    between = (count * own.reshape(count.shape) + PRIOR_LABELS * (usual[:, None] + slower)) / (count + PRIOR_LABELS)
    return {
        name: {kind_name: float(np.exp(cost)) for kind_name, cost in zip(names, row)}
        | {ANY_KIND: float(np.exp(any_kind))}
        for name, row, any_kind in zip(rater.names, between, usual)
    }


def _seconds(path: Path, rater: Column, told: Column, column: str) -> np.ndarray:
    """How long each row's label took (rows,): as told, or since the same rater's last one; nan where not known."""
    try:
        numbers = np.array([*map(float, told.names), np.nan])
        if not np.nanmedian(numbers, keepdims=True) > MOST_SECONDS:
            return numbers[told.codes]
    except ValueError:
        pass
    try:
        time = parse_times(told.names, path, column)[told.codes]
    except InputError:
        raise InputError(
            f"{path}: the column {column!r} holds neither numbers, how long each label took, nor times, when it was "
            "given."
        ) from None
    order = np.lexsort((time, rater.codes))
    since = np.full(len(time), np.nan)
    same = rater.codes[order][1:] == rater.codes[order][:-1]
    since[order[1:]] = np.where(same, np.diff(time[order]), np.nan)
    return since


def _medians(
    group: np.ndarray, values: np.ndarray, count: int, usual: float, counted: np.ndarray | None = None
) -> np.ndarray:
    """Median (count,) of the values (rows,) of each group; the usual one for a group of none."""
    kept = (group >= 0) if counted is None else counted
    order = np.argsort(group[kept], kind="stable")
    edges = np.searchsorted(group[kept][order], np.arange(count + 1))
    parts = [values[kept][order][start:stop] for start, stop in pairwise(edges)]
    return np.array([np.median(part) if len(part) else usual for part in parts])
