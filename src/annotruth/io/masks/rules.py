"""What the values in masks' files mean: settled once for a whole data set, in words that can be shown, and applied."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from annotruth.errors import InputError, shorten
from annotruth.io.masks.joining import join_layers
from annotruth.io.masks.planes import Planes
from annotruth.io.masks.tally import Tally, carries_mask, colour_codes, distinct, marked
from annotruth.validation import MAX_MASK_CLASSES, MISSING_PIXEL, mask_labels

MAX_EDGE_SHARE = 0.2
"""Share of pixels between clear values up to which they can be edges."""
FEW_CLASSES = 12
"""Class numbers that need not fill areas to be told from grey values."""
BINARY = ("background", "marked")


@dataclass(frozen=True)
class MaskRule:
    """How files' values become class numbers.

    Attributes
    ----------
    kind : "numbers" (they are class numbers), "values" or "colours" (a class each), "threshold" (marked above it) or
        "layers" (a layer for each class)
    classes : names
    values : of "values" and "colours", that of each class; of "threshold", the threshold; of "layers", the class number
        of each layer, those that lie on top last
    nearest : whether values in between belong to the nearest; otherwise they are refused
    notes : what is done to the files, in sentences
    numbers : the class number of each of the values, where these are more than the classes
    palette : whether a palette's numbers count; False takes its colours
    """

    kind: Literal["numbers", "values", "threshold", "colours", "layers"]
    classes: tuple[str, ...]
    values: tuple[float, ...] = ()
    nearest: bool = False
    notes: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    palette: bool = True

    def apply(self, planes: Planes, where: str) -> np.ndarray:
        """Class numbers (*spatial) as uint8, 255 = not labelled.

        Examples
        --------
        >>> rule = MaskRule("threshold", BINARY, (127.5,))
        >>> rule.apply(Planes(np.array([[[0, 90, 255]]])), "a.png")
        array([[0, 0, 1]], dtype=uint8)
        """
        if self.kind == "layers":
            return self._join(planes, where)
        if len(planes.pixels) > 1 and not planes.coloured:
            raise InputError(f"{where}: the mask has {len(planes.pixels)} layers, others have one. Keep to one kind.")
        if self.kind == "colours":
            pixels = planes.pixels if planes.coloured else np.repeat(planes.pixels, 3, axis=0)
            return self._numbers(colour_codes(pixels), where)
        plane = np.asarray(planes.alpha) if carries_mask(planes) else planes.grey()
        if not (planes.is_grey or carries_mask(planes)):
            raise InputError(f"{where}: the mask is coloured, others are not. Save it as the others are.")
        if self.kind == "numbers":
            return mask_labels(plane, len(self.classes), where)
        if self.kind == "threshold":
            return (plane if plane.dtype == bool else plane > self.values[0]).astype(np.uint8)
        return self._numbers(plane, where)

    def _numbers(self, plane: np.ndarray, where: str) -> np.ndarray:
        values, codes = distinct(plane)
        known = np.array(self.values)
        distance = np.abs(_coordinates(values, self.kind)[:, None] - _coordinates(known, self.kind)[None]).sum(axis=2)
        strange = values[distance.min(axis=1) > 0]
        if len(strange) and not self.nearest:
            names = [self._word(value) for value in strange.tolist()]
            meant = [self._word(value) for value in self.values]
            raise InputError(
                f"{where}: {shorten(names)} means nothing here (known are {shorten(meant, 10)}). Correct the mask, or "
                "say what it means."
            )
        numbers = np.array(self.numbers or range(len(self.values)), dtype=np.uint8)
        return numbers[distance.argmin(axis=1)][codes]

    def _join(self, planes: Planes, where: str) -> np.ndarray:
        if len(planes.pixels) != len(self.values):
            raise InputError(
                f"{where}: the mask has {len(planes.pixels)} layers, most have {len(self.values)}. Keep to one kind."
            )
        first = min(self.values)  # 0 where the first layer is the background
        on = marked(planes.pixels)
        return join_layers([on[int(number - first)] for number in self.values], [int(number) for number in self.values])

    def _word(self, value: float) -> str:
        return f"#{int(value):06x}" if self.kind == "colours" else f"{value:g}"


def settle_rule(
    tally: Tally,
    colours: Mapping[str, str] | None = None,
    threshold: float | None = None,
    classes: Sequence[str] | None = None,
) -> MaskRule:
    """Say how masks are to be read, from what all of them hold.

    Parameters
    ----------
    colours : class by colour, {"#ff0000": "tumour"}; black is the background unless it is named
    threshold : the value above which a pixel is marked; by default the middle, where edges are interpolated
    classes : names, in the order of the numbers, values, colours or layers found

    Examples
    --------
    >>> tally = Tally()
    >>> tally.add(Planes(np.tile([[0, 0, 0, 0, 255, 255, 255]], (1, 5, 1))), "a.png")
    >>> settle_rule(tally).classes
    ('background', 'marked')
    >>> print(*settle_rule(tally).notes)
    Masks hold 0 and 255: 255 is taken as marked.
    """
    if not tally.n_files:
        raise InputError("There is no mask to read.")
    if tally.layers:
        rule = _layer_rule(tally)
    elif colours is not None or tally.coloured:
        rule = _colour_rule(tally, colours)
    else:
        rule = _grey_rule(tally, threshold)
    names = rule.classes if classes is None else tuple(classes)
    if len(names) != len(rule.classes):
        raise InputError(
            f"{len(names)} classes are named ({shorten(names)}), but masks show {len(rule.classes)} "
            f"({shorten(rule.classes)}). Name each of them, the background too."
        )
    return replace(rule, classes=names, notes=(*_file_notes(tally), *rule.notes))


def read_colours(texts: Sequence[str]) -> dict[str, str]:
    """Read colours with their classes, written "#ff0000=tumour".

    Examples
    --------
    >>> read_colours(["#FF0000=tumour", "00ff00=organ"])
    {'#ff0000': 'tumour', '#00ff00': 'organ'}
    """
    found: dict[str, str] = {}
    for text in texts:
        match = re.fullmatch(r"#?([0-9a-fA-F]{6})=(.+)", text.strip())
        if match is None:
            raise InputError(f'A colour is written "#ff0000=tumour", not {text!r}.')
        if found.setdefault(f"#{match[1].lower()}", match[2].strip()) != match[2].strip():
            raise InputError(f"The colour #{match[1].lower()} is given two classes. Name one.")
    return found


def _file_notes(tally: Tally) -> list[str]:
    many, notes = tally.n_files, []
    if tally.equal_channels:
        notes.append(f"{tally.equal_channels} of {many} masks are in colour with equal channels: one of them is read.")
    if tally.from_alpha:
        notes.append(f"{tally.from_alpha} of {many} masks have one colour only: their opaqueness is taken as the mask.")
    if tally.alpha_dropped:
        notes.append(f"{tally.alpha_dropped} of {many} masks have transparency that says nothing: it is dropped.")
    if tally.lossy:
        notes.append(f"{tally.lossy} of {many} masks were saved in a format that changes values (JPEG).")
    return notes


def _grey_rule(tally: Tally, threshold: float | None) -> MaskRule:
    counts, values = tally.values, sorted(tally.values.all)
    low, high = values[0], values[-1]
    if threshold is not None:
        return MaskRule("threshold", BINARY, (threshold,), notes=(f"Pixels above {threshold:g} are marked.",))
    if _are_class_numbers(values, counts.clear) and not tally.lossy:
        highest = max((value for value in values if value != MISSING_PIXEL), default=0)
        return MaskRule("numbers", tuple(str(number) for number in range(max(int(highest) + 1, 2))))
    if len(values) == 1:
        return MaskRule("values", BINARY, (0, low), notes=(f"Masks hold nothing but {low:g}, taken as marked.",))
    if len(values) == 2:
        note = f"Masks hold {low:g} and {high:g}: {high:g} is taken as marked."
        return MaskRule("values", BINARY, (low, high), notes=(note,))
    clear = counts.clear
    between = 1 - sum(counts.all[value] for value in {*clear, low, high}) / counts.total
    if all(min(value - low, high - value) <= (high - low) / 8 for value in clear):
        middle = (low + high) / 2
        note = (
            f"Masks have {len(values)} values from {low:g} to {high:g}, soft edges among them: pixels above {middle:g} "
            f"are taken as marked ({between:.2%} of pixels lie in between)."
        )
        return MaskRule("threshold", BINARY, (middle,), notes=(note,))
    if len(clear) > MAX_MASK_CLASSES or between > MAX_EDGE_SHARE:
        raise InputError(
            f"masks hold {len(values)} values from {low:g} to {high:g}, {between:.0%} of pixels between those that "
            "fill areas. Are these probabilities? Give the threshold above which a pixel is marked."
        )
    names = tuple(f"{value:g}" for value in clear)
    note = f"Each value is a class: {shorten(names, 10)}." + _edge_note(between, len(values) > len(clear))
    return MaskRule("values", names, tuple(clear), nearest=len(values) > len(clear), notes=(note,))


def _colour_rule(tally: Tally, colours: Mapping[str, str] | None) -> MaskRule:
    counts = tally.all_colours()
    clear = [int(value) for value in counts.clear] or [int(value) for value, _ in counts.all.most_common(2)]
    if colours is None:
        background = 0 if 0 in counts.all else max(clear, key=counts.all.__getitem__)
        others = sorted(code for code in clear if code != background)
        named = {background: "background"} | {code: f"#{code:06x}" for code in others}
    else:
        named = {int(colour[1:], 16): name for colour, name in colours.items()}
        if 0 not in named and "background" not in named.values():
            named = {0: "background", **named}
    if not 2 <= len(named) <= MAX_MASK_CLASSES:
        raise InputError(f"masks show {len(named)} colours that fill areas. Say which mean a class (--colour).")
    strangers = [f"#{code:06x}" for code in clear if code not in named]
    if strangers:
        raise InputError(f"the colour {shorten(strangers)} fills areas and has no class. Give it one (--colour).")
    between = sum(count for code, count in counts.all.items() if code not in named) / counts.total
    if between > MAX_EDGE_SHARE:
        raise InputError(f"{between:.0%} of pixels have none of the colours that fill areas. Save the masks anew.")
    meant = [f"{name} = #{code:06x}" for code, name in named.items()]
    note = f"Each colour is a class: {shorten(meant, 10)}." + _edge_note(between, between > 0)
    # Several colours may mean one class.
    names = tuple(dict.fromkeys(named.values()))
    numbers = tuple(map(names.index, named.values()))
    return MaskRule("colours", names, tuple(named), between > 0, (note,), numbers, palette=colours is None)


def _layer_rule(tally: Tally) -> MaskRule:
    count = tally.layers.most_common(1)[0][0]
    if tally.n_files > sum(tally.layers.values()):
        few = tally.n_files - sum(tally.layers.values())
        raise InputError(f"most masks have {count} layers, {few} have one. Keep to one kind.")
    sizes = [tally.layer_sizes[layer] for layer in range(count)]
    if not tally.overlap and not tally.uncovered:
        names = tuple(map(str, range(count)))
        note = f"Masks have {count} layers of which one marks each pixel: each is a class, the first the background."
        return MaskRule("layers", names, tuple(range(count)), notes=(note,))
    order = sorted(range(count), key=lambda layer: -sizes[layer])
    names = ("background", *(str(layer + 1) for layer in range(count)))
    note = f"Masks have {count} layers: each is a class, what none marks is background."
    if tally.overlap:
        note += f" {tally.overlap} pixels are marked by several: there the layer that marks less in all lies on top."
    return MaskRule("layers", names, tuple(layer + 1 for layer in order), notes=(note,))


def _are_class_numbers(values: Sequence[float], clear: Sequence[float]) -> bool:
    """Whether values count 0, 1, 2 … with few gaps, and 255 for pixels without a label where there are classes.

    Many grey values along soft edges may have few gaps, too, but hardly any of them fills an area.
    """
    numbers = [value for value in values if value != MISSING_PIXEL]
    if any(value != int(value) or value < 0 for value in numbers) or (values[-1] == MISSING_PIXEL and len(numbers) < 2):
        return False
    if len(numbers) > FEW_CLASSES and len(clear) < len(numbers) / 2:
        return False
    return bool(numbers) and numbers[-1] < MAX_MASK_CLASSES and numbers[-1] < 2 * len(numbers)


def _edge_note(share: float, soft: bool) -> str:
    return f" Along soft edges ({share:.2%} of pixels) the nearest counts." if soft else ""


def _coordinates(values: np.ndarray, kind: str) -> np.ndarray:
    """Values (n,) as points (n, axes) whose distance says how alike they are."""
    if kind != "colours":
        return np.asarray(values, dtype=float)[:, None]
    codes = np.asarray(values).astype(np.int64)
    return np.stack([codes >> 16, (codes >> 8) & 255, codes & 255], axis=1).astype(float)
