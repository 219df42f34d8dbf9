"""The run over a labelling tool's export, object by object."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from annotruth.data.objects import Objects
from annotruth.errors import InputError
from annotruth.fusion.object_consensus import ObjectConsensus
from annotruth.io.exports.objects import (
    Area,
    can_export_objects,
    write_objects_for_cvat,
    write_objects_for_label_studio,
)
from annotruth.io.objects import load_objects, write_objects
from annotruth.io.problems import Problem
from annotruth.io.writing import fresh_folder

OPTIONS = ("min_overlap", "max_distance", "threshold")


def fuse_objects(
    path: str | Path, output: str | Path, options: Mapping[str, Any] | None = None, overwrite: bool = False
) -> tuple[ObjectConsensus, list[Problem]]:
    """Fuse objects and write objects.csv, objects.json (COCO), candidates.csv and raters.csv.

    Where the images' sizes are known, also cvat/annotations.xml and label_studio/predictions.json.

    Returns
    -------
    The fused objects, and what was left out because something is wrong with it.
    """
    for name in options or {}:
        if name not in OPTIONS:
            raise InputError(f"Objects are fused with the options {', '.join(OPTIONS)}, not {name!r}.")
    problems: list[Problem] = []
    objects = load_objects(path, report=problems.append)
    fused = ObjectConsensus(**(options or {})).fit(objects)
    folder = fresh_folder(output, overwrite)
    write_objects(folder / "objects.csv", fused.truth_)
    write_objects(folder / "objects.json", fused.truth_)
    write_objects(folder / "candidates.csv", fused.candidates_)
    write_objects(folder / "raters.csv", fused.raters_)
    if can_export_objects(objects):
        there = np.flatnonzero(fused.candidates_["probability"] >= fused.threshold)
        areas = [_area(fused, objects, int(row)) for row in there]
        for name in ("cvat", "label_studio"):
            (folder / name).mkdir(exist_ok=True)
        write_objects_for_cvat(folder / "cvat" / "annotations.xml", fused.truth_, objects, areas)
        write_objects_for_label_studio(folder / "label_studio" / "predictions.json", fused.truth_, objects, areas)
    return fused, problems


def _area(fused: ObjectConsensus, objects: Objects, candidate: int) -> Area | None:
    """The pixels of a thing; None where its box is all that is known: raters drew boxes, or have no pixel in common."""
    area = fused.area(objects, candidate)
    own = [objects.areas[member] for member in np.flatnonzero(fused.groups_ == candidate)]
    if area is None or not area[0].any() or all(each is not None and each.all() for each in own):
        return None
    return area
