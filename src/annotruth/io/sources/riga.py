"""RIGA: photographs of the optic nerve head, and copies on which six ophthalmologists drew disc and cup."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from annotruth.io.contents import Contents, Mask, name_items
from annotruth.io.files import read_image
from annotruth.io.layouts import Case, find_named, has_name, make_items
from annotruth.io.masks.contours import fill_nested_contours
from annotruth.io.masks.joining import join_layers
from annotruth.io.masks.reading import unnamed
from annotruth.io.problems import Problem, Report
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource

PLAIN = r"[iI]mage ?(\d+)prime\.(tif|tiff|jpg|png)"
DRAWN = r"[iI]mage ?(\d+)-(\d)\.(tif|tiff|jpg|png)"


@register
class Riga(ImportSource):
    """<camera>/{imageNprime.tif, imageN-1.tif … imageN-6.tif}."""

    name = "RIGA folder"
    key = "riga"
    description = "RIGA's imageNprime.tif with imageN-1.tif … imageN-6.tif, on which lines are drawn"
    kind = "masks"
    identity = "the number behind the dash"

    def matches(self, path: Path) -> bool:
        return has_name(path, PLAIN)

    def read(self, path: Path, report: Report, **_: Any) -> Contents:
        plain = {(file.parent, match[1]): file for file, match in find_named(path, PLAIN).items()}
        names = name_items({key: file.relative_to(path).as_posix() for key, file in plain.items()})
        cases = {key: Case(names[key].removesuffix("prime"), (file,)) for key, file in plain.items()}
        for file, match in find_named(path, DRAWN).items():
            case = cases.get((file.parent, match[1]))
            if case is None:
                message = "there is a drawing, but no photograph without lines (…prime)."
                report(Problem("fatal", file, None, f"rater_{match[2]}", message, "Add it, or remove the drawing."))
                continue
            case.masks[f"rater_{match[2]}"] = Mask(file, partial(read_lines, file, case.images[0]))
        note = "Lines are found as the difference to the photograph without them, and filled: disc, and cup inside it."
        drawn = [case for case in cases.values() if case.masks]
        return Contents(("background", "disc", "cup"), make_items(drawn, 2, report), notes=[note])


def read_lines(drawn: Path, plain: Path) -> np.ndarray:
    """Disc (1) and cup (2) of lines drawn on a copy of a photograph: (height, width) uint8."""
    with unnamed(drawn):
        disc, cup = fill_nested_contours(read_image(drawn, 2, str(drawn)), read_image(plain, 2, str(plain)))
        return join_layers([disc, cup], [1, 2])
