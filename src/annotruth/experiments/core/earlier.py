"""Trainings that an earlier table already tells: what it has is not trained again to add a seed or renew a row."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from annotruth.errors import InputError
from annotruth.experiments.core.columns import Column
from annotruth.experiments.core.writing import environment


@dataclass(frozen=True)
class EarlierTable:
    """A finished table, read as the trainings that it was made of; by default one of none.

    Attributes
    ----------
    rows : of the table, by setting and label
    data : which data they were made with, in words
    date : when, where a row does not tell it
    """

    rows: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    data: Sequence[str] = ()
    date: str = ""

    @classmethod
    def read(cls, path: Path, renew: Sequence[str]) -> EarlierTable:
        """Of a table's JSON; rows named in ``renew`` are left out. What was made elsewhere cannot stand beside it."""
        if not path.is_file():
            raise InputError(f"{path}: there is no such table to go on from. Make it whole first.")
        table = json.loads(path.read_text())
        rows = {(row["setting"], row["method"]): row for row in table["rows"]}
        if unknown := set(renew) - {label for _, label in rows}:
            raise InputError(
                f"{path}: it has no row {', '.join(sorted(unknown))}. Its rows: "
                f"{', '.join(dict.fromkeys(label for _, label in rows))}."
            )
        then, now = ({**each, "date": None} for each in (table["environment"], environment()))
        if changed := [key for key in now if then.get(key) != now[key]]:
            raise InputError(
                f"{path}: it was made with other {' and '.join(changed)} ({then.get(changed[0])}, here "
                f"{now[changed[0]]}), so its rows and new ones do not compare. Make the whole table anew."
            )
        kept = {key: row for key, row in rows.items() if key[1] not in renew}
        return cls(kept, table["data"], table["environment"]["date"])

    def training(
        self, setting: str, label: str, seed: int, asked: Mapping[str, Any], columns: Sequence[Column]
    ) -> dict[str, Any] | None:
        """What the runner knows of a finished training, None where the table has not all of it."""
        row = self.rows.get((setting, label))
        if row is None or seed not in row["seeds"] or row["settings"] != settings_of(asked):
            return None
        place = row["seeds"].index(seed)
        scores = {column.name: _score(row, column, place) for column in columns}
        if None in scores.values():
            return None
        return {
            "asked": asked,
            "about": None,  # the table tells it of all its rows together
            "scores": scores,
            "wall_time": row["wall_time"]["each"][place],
            "warnings": ["warned"] * (seed in row["warned_seeds"]),
            "date": row.get("dates", [self.date] * len(row["seeds"]))[place],
        }


def settings_of(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """What a table says of how a row was trained; the seed stands beside it."""
    settings = {
        "method": configuration["method"], **configuration["options"], **configuration["data"],
        **configuration["training"],
    }  # fmt: skip
    return {name: value for name, value in settings.items() if name != "seed"}


def _score(row: Mapping[str, Any], column: Column, place: int) -> float | None:
    """Of one seed; a count of several seeds tells it where all were alike."""
    if column.name not in row:
        return None
    seeds = len(row["seeds"])
    if column.counted:
        return {0: 0.0, seeds: 1.0}.get(row[column.name])
    each = row[column.name]["each"]
    return each[place] if len(each) == seeds else None
