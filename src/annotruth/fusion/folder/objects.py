"""The run over a labelling tool's export, object by object."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from annotruth.errors import InputError
from annotruth.fusion.object_consensus import ObjectConsensus
from annotruth.io.objects import load_objects, write_objects
from annotruth.io.problems import Problem
from annotruth.io.writing import fresh_folder

OPTIONS = ("min_overlap", "max_distance", "threshold")


def fuse_objects(
    path: str | Path, output: str | Path, options: Mapping[str, Any] | None = None, overwrite: bool = False
) -> tuple[ObjectConsensus, list[Problem]]:
    """Fuse objects and write objects.csv, objects.json (COCO), candidates.csv and raters.csv.

    Returns
    -------
    The fused objects, and what was left out because something is wrong with it.
    """
    for name in options or {}:
        if name not in OPTIONS:
            raise InputError(f"Objects are fused with the options {', '.join(OPTIONS)}, not {name!r}.")
    problems: list[Problem] = []
    fused = ObjectConsensus(**(options or {})).fit(load_objects(path, report=problems.append))
    folder = fresh_folder(output, overwrite)
    write_objects(folder / "objects.csv", fused.truth_)
    write_objects(folder / "objects.json", fused.truth_)
    write_objects(folder / "candidates.csv", fused.candidates_)
    write_objects(folder / "raters.csv", fused.raters_)
    return fused, problems
