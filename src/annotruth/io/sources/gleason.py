"""Gleason 2019: prostate tissue, each core graded pixel by pixel by up to six pathologists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from annotruth.io.contents import Contents
from annotruth.io.layouts import Case, Drawing, find_named, has_name, make_items, value_rule
from annotruth.io.problems import Problem, Report
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource

MASK = r"((slide\d+)_core\d+)_classimg_nonconvex\.png"
CLASSES = ("background", "benign", "grade 3", "grade 4", "grade 5")
VALUES = {0: 0, 1: 1, 6: 1, 3: 2, 4: 3, 5: 4}


@register
class Gleason(ImportSource):
    """Train Imgs/slideSSS_coreCCC.jpg, MapsR_T/slideSSS_coreCCC_classimg_nonconvex.png."""

    name = "Gleason 2019 folder"
    key = "gleason-2019"
    description = "Gleason 2019's Train Imgs with Maps1_T to Maps6_T"
    kind = "masks"
    identity = "the number of the folder of maps"

    def matches(self, path: Path) -> bool:
        return has_name(path, MASK)

    def read(self, path: Path, report: Report, **_: Any) -> Contents:
        images = {match[1]: file for file, match in find_named(path, r"(slide\d+_core\d+)\.(?:jpg|png)").items()}
        rule = value_rule(CLASSES, VALUES)
        cases: dict[str, Case] = {}
        for file, match in find_named(path, MASK).items():
            folder = next((each for each in (file.parent, file.parent.parent) if each.name.startswith("Maps")), None)
            name, number = match[1], "".join(filter(str.isdigit, folder.name)) if folder is not None else ""
            if not number or (images and name not in images):
                lack = "no folder MapsR_T says whose it is" if not number else "there is no image of that name"
                report(
                    Problem("fatal", file, name, None, f"there is a map, but {lack}.", "Put the files as published.")
                )
                continue
            case = cases.setdefault(name, Case(name, (images[name],) if name in images else (), group=match[2]))
            case.masks[f"pathologist_{number}"] = Drawing.of(file, rule)
        note = "Values 1 and 6 are benign, 3 to 5 the Gleason grade; splits keep slides whole."
        return Contents(CLASSES, make_items(list(cases.values()), 2, report), notes=[note])
