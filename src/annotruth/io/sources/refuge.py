"""REFUGE: a folder per photograph with a mask of cup and of disc by each of seven raters, or the merged masks alone.

The challenge itself gives out one mask per photograph, which an eighth person made of the seven.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from annotruth.errors import shorten
from annotruth.io.contents import Contents, name_items
from annotruth.io.layouts import Case, Drawing, binary_rule, find_named, has_name, make_items, stem, value_rule
from annotruth.io.masks.reading import Part
from annotruth.io.problems import Problem, Report
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource

MASK = r"(.+)_seg_(cup|disc)_(\d+)(_cropped)?\.(png|jpg|bmp)"
MERGED = r"Disc_Cup_Masks/(?:.+/)?[^/]+\.(?:bmp|png)"
CLASSES = ("background", "disc", "cup")
VALUES = {255: 0, 128: 1, 0: 2}
"""Class numbers by the merged masks' values: the cup is black."""
CONSENSUS = "consensus"
ELSEWHERE = re.compile("mask|annotation|illustration|-gt", re.IGNORECASE)
"""Folders that hold no photographs."""


@register
class Refuge(ImportSource):
    """<split>/<name>/{<name>.jpg, <name>_seg_disc_R.png, <name>_seg_cup_R.png}, or Disc_Cup_Masks/…/<name>.bmp."""

    name = "REFUGE folder"
    key = "refuge"
    description = (
        "REFUGE's <name>/<name>.jpg with <name>_seg_disc_R.png and <name>_seg_cup_R.png; or the challenge's "
        "<name>.jpg with Disc_Cup_Masks/<name>.bmp"
    )
    kind = "masks"
    identity = "the number at the end of the file's name; none in the challenge's own masks, called consensus"

    def matches(self, path: Path) -> bool:
        return has_name(path, MASK) or has_name(path, MERGED)

    def read(self, path: Path, report: Report, **_: Any) -> Contents:
        raters = has_name(path, MASK)
        contents = self._of_raters(path, report) if raters else _merged(path, report)
        if raters and has_name(path, MERGED):
            contents.notes.append("The merged masks (Disc_Cup_Masks) are left out, as there are the raters' own.")
        return contents

    def _of_raters(self, path: Path, report: Report) -> Contents:
        found: dict[tuple[Path, str], dict[str, dict[str, Path]]] = {}
        for file, match in find_named(path, MASK).items():
            home = (file.parent, f"{match[1]}{match[4] or ''}")
            found.setdefault(home, {}).setdefault(f"rater_{int(match[3])}", {})[match[2]] = file
        names = name_items({key: (key[0].relative_to(path) / key[1]).as_posix() for key in found})
        rule = binary_rule("marked")
        cases = []
        for key, raters in found.items():
            folder, photograph = key
            images = [folder / f"{photograph}{end}" for end in (".jpg", ".png", ".bmp", ".jpeg")]
            case = Case(names[key], tuple(image for image in images if image.is_file())[:1])
            for rater, files in sorted(raters.items()):
                lacking = [label for label in CLASSES[1:] if label not in files]
                if lacking:
                    message = f"the rater has no mask of the {' and the '.join(lacking)}; the other is left out."
                    report(Problem("warning", folder, case.name, rater, message))
                else:  # the cup lies in the disc
                    parts = tuple(Part(files[label], number) for number, label in enumerate(CLASSES[1:], 1))
                    case.masks[rater] = Drawing(parts, rule)
            if case.masks:
                cases.append(case)
        note = "Bright pixels of each rater's two masks are taken as disc and cup, the cup on top."
        return Contents(CLASSES, make_items(cases, 2, report), notes=[note])


def _merged(path: Path, report: Report) -> Contents:
    """The challenge's own masks, and the photographs of the same name."""
    photographs: dict[str, Path] = {}
    for file in find_named(path, r".+\.jpe?g|.+\.JPG"):
        if not any(ELSEWHERE.search(part) for part in file.relative_to(path).parts[:-1]):
            photographs.setdefault(stem(file), file)
    masks = [
        file for file in find_named(path, r".+\.(bmp|png)") if "Disc_Cup_Masks" in file.relative_to(path).parts[:-1]
    ]
    names = name_items({file: file.relative_to(path).as_posix() for file in masks})
    rule = replace(value_rule(CLASSES, VALUES), palette=False)
    cases, bare = [], []
    for file in masks:
        image = photographs.get(stem(file))
        if image is None and photographs:
            bare.append(stem(file))
        else:
            cases.append(Case(names[file], () if image is None else (image,)))
            cases[-1].masks[CONSENSUS] = Drawing.of(file, rule)
    if bare:
        message = f"there is no photograph of {len(bare)} masks: {shorten(bare)}."
        report(Problem("warning", path, None, None, message, "They are left out."))
    note = "The challenge's masks are merged of seven people's, who are not told apart: there is one rater, consensus."
    return Contents(CLASSES, make_items(cases, 2, report), notes=[note])
