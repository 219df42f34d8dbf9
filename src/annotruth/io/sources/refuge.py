"""REFUGE with seven raters: a folder per photograph, with a mask of cup and of disc by each rater."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from annotruth.io.contents import Contents, name_items
from annotruth.io.layouts import Case, Drawing, binary_rule, find_named, has_name, make_items
from annotruth.io.masks.reading import Part
from annotruth.io.problems import Problem, Report
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource

MASK = r"(.+)_seg_(cup|disc)_(\d+)(_cropped)?\.(png|jpg|bmp)"
CLASSES = ("background", "disc", "cup")


@register
class Refuge(ImportSource):
    """<split>/<name>/{<name>.jpg, <name>_seg_disc_R.png, <name>_seg_cup_R.png}."""

    name = "REFUGE folder"
    key = "refuge"
    description = "REFUGE's <name>/<name>.jpg with <name>_seg_disc_R.png and <name>_seg_cup_R.png"
    kind = "masks"
    identity = "the number at the end of the file's name"

    def matches(self, path: Path) -> bool:
        return has_name(path, MASK)

    def read(self, path: Path, report: Report, **_: Any) -> Contents:
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
