"""Retinal vessels: DRIVE, STARE and CHASE_DB1 with two observers each, and LES-AV with arteries and veins."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from annotruth.io.contents import Contents
from annotruth.io.layouts import Case, Drawing, binary_rule, find_named, has_name, make_items, stem
from annotruth.io.masks.rules import MaskRule
from annotruth.io.problems import Problem, Report
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource

PICTURE = r"\.(?:tif|tiff|png|gif|jpg|ppm|ppm\.gz)"
VESSEL = binary_rule("vessel")
AV_COLOURS = {0x000000: 0, 0xFF0000: 1, 0x0000FF: 2, 0x00FF00: 3, 0xFFFFFF: 4}
AV_CLASSES = ("background", "artery", "vein", "crossing", "uncertain")


class Vessels(ImportSource):
    """Photographs, and masks whose names say the photograph and the observer.

    Attributes
    ----------
    mask : fits a mask's name, with the photograph's own name and the observer in two groups
    image : fits a photograph's name, with its own name in a group
    observers : the raters' names by what stands in the masks' names
    """

    kind = "masks"
    mask: ClassVar[str]
    image: ClassVar[str]
    observers: ClassVar[dict[str, str]]

    def matches(self, path: Path) -> bool:
        return has_name(path, self.mask)

    def read(self, path: Path, report: Report, **_: Any) -> Contents:
        masks = find_named(path, self.mask)
        images = {match[1]: file for file, match in find_named(path, self.image).items() if file not in masks}
        cases: dict[str, Case] = {}
        for file, match in masks.items():
            name = match[1]
            if images and name not in images:
                report(
                    Problem("fatal", file, name, None, "there is a mask, but no photograph of that name.", "Add it.")
                )
                continue
            shown = stem(images[name]) if name in images else name
            case = cases.setdefault(name, Case(shown, (images[name],) if name in images else ()))
            case.masks[self.observers[match[2]]] = Drawing.of(file, VESSEL)
        unseen = len(images) - sum(1 for case in cases.values() if case.images)
        notes = [f"{unseen} photographs without a mask are left out."] if unseen > 0 else []
        return Contents(("background", "vessel"), make_items(list(cases.values()), 2, report), notes=notes)


@register
class Drive(Vessels):
    """training and test, each with images/NN_test.tif, 1st_manual/NN_manual1.gif, 2nd_manual/NN_manual2.gif."""

    name = "DRIVE folder"
    key = "drive"
    description = "DRIVE's images/NN_test.tif with 1st_manual/NN_manual1.gif and 2nd_manual/NN_manual2.gif"
    identity = "first or second manual segmentation"
    mask = rf"(\d+)_manual([12]){PICTURE}"
    image = rf"(\d+)_(?:test|training){PICTURE}"
    observers: ClassVar[dict[str, str]] = {"1": "observer_1", "2": "observer_2"}


@register
class Stare(Vessels):
    """stare-images/imNNNN.ppm.gz, labels-ah/imNNNN.ah.ppm.gz, labels-vk/imNNNN.vk.ppm.gz."""

    name = "STARE folder"
    key = "stare"
    description = "STARE's imNNNN.ppm with imNNNN.ah.ppm and imNNNN.vk.ppm, gzipped or not"
    identity = "the initials in the file's name"
    mask = rf"(im\d+)\.(ah|vk){PICTURE}"
    image = rf"(im\d+){PICTURE}"
    observers: ClassVar[dict[str, str]] = {"ah": "Hoover", "vk": "Kouznetsova"}


@register
class Chase(Vessels):
    """Image_NNL.jpg, Image_NNL_1stHO.png, Image_NNL_2ndHO.png."""

    name = "CHASE_DB1 folder"
    key = "chase"
    description = "CHASE_DB1's Image_NNL.jpg with Image_NNL_1stHO.png and Image_NNL_2ndHO.png"
    identity = "first or second human observer"
    mask = rf"(Image_\d+[LR])_(1st|2nd)HO{PICTURE}"
    image = rf"(Image_\d+[LR]){PICTURE}"
    observers: ClassVar[dict[str, str]] = {"1st": "observer_1", "2nd": "observer_2"}


@register
class LesAv(ImportSource):
    """images/N.png and arteries-and-veins/N.png, in colours."""

    name = "LES-AV folder"
    key = "les-av"
    description = "LES-AV's images with arteries-and-veins"
    kind = "masks"
    identity = "none: one annotation, called annotator"

    def matches(self, path: Path) -> bool:
        return has_name(path, rf"arteries-and-veins/[^/]+{PICTURE}")

    def read(self, path: Path, report: Report, **_: Any) -> Contents:
        values, numbers = tuple(AV_COLOURS), tuple(AV_COLOURS.values())
        rule = MaskRule("colours", AV_CLASSES, values, nearest=True, numbers=numbers, palette=False)
        cases = []
        for file in find_named(path, rf".+{PICTURE}"):
            if file.parent.name != "arteries-and-veins":
                continue
            image = next(iter(sorted((file.parent.parent / "images").glob(f"{stem(file)}.*"))), None)
            cases.append(Case(stem(file), () if image is None else (image,), {"annotator": Drawing.of(file, rule)}))
        some = [case for case in cases if case.images] or cases
        note = "Red is artery, blue vein, green where they cross, white where nobody could tell."
        return Contents(AV_CLASSES, make_items(some, 2, report), notes=[note])
