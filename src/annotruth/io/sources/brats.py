"""BraTS (and QU-BraTS, which has the same cases): four MR images and one segmentation of each tumour.

What QU-BraTS adds are models' uncertainties, which those who take part hand in. They are nobody's labels.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from annotruth.errors import InputError
from annotruth.io.contents import Contents
from annotruth.io.layouts import Case, Drawing, find_named, has_name, make_items, value_rule
from annotruth.io.problems import Problem, Report
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource

MASK = r"([Bb]ra[Tt][Ss].+?)[_-]seg(?:[_-]?(?:rater)?_?(\w+))?\.nii(\.gz)?"
UNCERTAINTY = r".+_unc_(?:whole|core|enhance)\.nii(?:\.gz)?"
CHANNELS = (("_t1", "-t1n"), ("_t1ce", "-t1c"), ("_t2", "-t2w"), ("_flair", "-t2f"))
CLASSES = ("background", "necrotic core", "oedema", "enhancing tumour")
CONSENSUS = "consensus"


@register
class Brats(ImportSource):
    """<case>/{<case>_t1.nii.gz, _t1ce, _t2, _flair, _seg}, or from 2023 on -t1n, -t1c, -t2w, -t2f, -seg."""

    name = "BraTS folder"
    key = "brats"
    description = "BraTS' <case>/<case>_t1.nii.gz, _t1ce, _t2, _flair and _seg"
    kind = "masks"
    holds = ("image", "mask", "3D")
    identity = "none: one segmentation, called consensus; what stands behind _seg_ where somebody has several"

    def matches(self, path: Path) -> bool:
        return has_name(path, MASK) or has_name(path, UNCERTAINTY)

    def read(self, path: Path, report: Report, **_: Any) -> Contents:
        cases: dict[str, Case] = {}
        # Label 4 of older years is label 3 of newer ones.
        rule = value_rule(CLASSES, {0: 0, 1: 1, 2: 2, 3: 3, 4: 3})
        for file, match in find_named(path, MASK).items():
            name = match[1]
            if name not in cases:
                ends = (".nii.gz", ".nii")
                files = [
                    next((file.parent / f"{name}{mark}{end}" for mark in marks for end in ends
                          if (file.parent / f"{name}{mark}{end}").is_file()), None)
                    for marks in CHANNELS
                ]  # fmt: skip
                images = tuple(each for each in files if each is not None)
                if images and len(images) < len(CHANNELS):
                    lacking = [marks[0][1:] for marks, each in zip(CHANNELS, files) if each is None]
                    message = f"the image lacks {', '.join(lacking)}; the case is left out."
                    report(Problem("fatal", file, name, None, message, "Add the files."))
                    continue
                cases[name] = Case(name, images)
            cases[name].masks[match[2] or CONSENSUS] = Drawing.of(file, rule)
        notes = [
            "The image's channels are T1, T1 with contrast agent, T2 and FLAIR; labels 3 and 4 are enhancing tumour."
        ]
        maps = len(find_named(path, UNCERTAINTY))
        if maps and not cases:
            raise InputError(
                f"{path}: there are {maps} uncertainty maps of a model (QU-BraTS), and no rater's segmentation "
                "(<case>_seg.nii.gz). Name BraTS' own folder."
            )
        if maps:
            notes.append(f"{maps} uncertainty maps (QU-BraTS) are left out: they are a model's, and no rater's labels.")
        return Contents(CLASSES, make_items(list(cases.values()), 3, report), notes=notes)
