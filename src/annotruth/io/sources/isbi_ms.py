"""ISBI 2015 multiple sclerosis challenge: four MR images of each visit, and lesions drawn by two raters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from annotruth.io.contents import Contents
from annotruth.io.layouts import Case, Drawing, binary_rule, find_named, has_name, make_items
from annotruth.io.problems import Problem, Report
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource

MASK = r"((training\d+)_\d+)_mask(\d)\.nii(\.gz)?"
CHANNELS = ("flair", "mprage", "pd", "t2")


@register
class IsbiMs(ImportSource):
    """trainingPP/preprocessed/trainingPP_TT_flair_pp.nii …, trainingPP/masks/trainingPP_TT_maskR.nii."""

    name = "ISBI MS 2015 folder"
    key = "isbi-ms"
    description = "the ISBI 2015 MS challenge's trainingPP/preprocessed and trainingPP/masks"
    kind = "masks"
    holds = ("image", "mask", "3D")
    identity = "the number of the mask"

    def matches(self, path: Path) -> bool:
        return has_name(path, MASK)

    def read(self, path: Path, report: Report, **_: Any) -> Contents:
        images = {
            (match[1], match[2]): file
            for file, match in find_named(path, rf"(training\d+_\d+)_({'|'.join(CHANNELS)})_pp\.nii(?:\.gz)?").items()
        }
        cases: dict[str, Case] = {}
        for file, match in find_named(path, MASK).items():
            visit = match[1]
            channels = tuple(images[visit, name] for name in CHANNELS if (visit, name) in images)
            if visit not in cases and len(channels) not in (0, len(CHANNELS)):
                lacking = [name for name in CHANNELS if (visit, name) not in images]
                message = f"the image lacks {', '.join(lacking)}; the case has no image."
                report(Problem("fatal", file, visit, None, message, "Add the files."))
            whole = channels if len(channels) == len(CHANNELS) else ()
            case = cases.setdefault(visit, Case(visit, whole, group=match[2]))
            case.masks[f"rater_{match[3]}"] = Drawing.of(file, binary_rule("lesion", 0.5))
        some = [case for case in cases.values() if case.images] or list(cases.values())
        notes = [f"The image's channels are {', '.join(CHANNELS)}."] if any(case.images for case in some) else []
        return Contents(("background", "lesion"), make_items(some, 3, report), notes=notes)
