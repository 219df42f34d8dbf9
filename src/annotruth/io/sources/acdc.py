"""ACDC: cardiac MR at two moments of the heart's beat, with masks and, where they are there, scribbles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from annotruth.io.contents import Contents
from annotruth.io.layouts import Case, Drawing, find_named, has_name, make_items, value_rule
from annotruth.io.problems import Report
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource
from annotruth.validation import MISSING_PIXEL

FILE = r"((patient\d+)_frame\d+)(?:_0000)?(_gt|_scribble)?\.nii(\.gz)?"
CLASSES = ("background", "right ventricle", "myocardium", "left ventricle")
NOT_DRAWN = 4
"""Where no stroke was drawn, in the scribbles of Valvano et al. (2021)."""


@register
class Acdc(ImportSource):
    """patientNNN/patientNNN_frameFF.nii.gz, …_gt.nii.gz, …_scribble.nii.gz."""

    name = "ACDC folder"
    key = "acdc"
    description = "ACDC's patientNNN_frameFF.nii.gz with _gt and, where there are any, _scribble"
    kind = "masks"
    holds = ("image", "mask", "3D")
    identity = "scribbles are one rater's, whole masks then the truth; without scribbles masks are the expert's"

    def matches(self, path: Path) -> bool:
        return has_name(path, r"patient\d+_frame\d+_(gt|scribble)\.nii(\.gz)?")

    def read(self, path: Path, report: Report, **_: Any) -> Contents:
        whole = value_rule(CLASSES, {number: number for number in range(len(CLASSES))})
        strokes = value_rule(CLASSES, {number: number for number in range(len(CLASSES))} | {NOT_DRAWN: MISSING_PIXEL})
        files: dict[str, dict[str, Path]] = {}
        for file, match in find_named(path, FILE).items():
            files.setdefault(match[1], {"group": Path(match[2])})[match[3] or ""] = file
        scribbled = any("_scribble" in found for found in files.values())
        cases = []
        for name, found in files.items():
            case = Case(name, (found[""],) if "" in found else (), group=found["group"].name)
            mask = Drawing.of(found["_gt"], whole) if "_gt" in found else None
            if "_scribble" in found:
                case.masks["scribbles"] = Drawing.of(found["_scribble"], strokes)
            if scribbled:
                case.truth = mask
            elif mask is not None:
                case.masks["expert"] = mask
            if case.masks:
                cases.append(case)
        some = [case for case in cases if case.images] or cases
        note = "Scribbles are a rater's; whole masks are the truth." if scribbled else "Masks are one expert's."
        return Contents(CLASSES, make_items(some, 3, report), notes=[note])
