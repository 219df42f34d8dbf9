"""What a page is told of one case: its picture, everybody's labels, what the fusion and other methods say."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import numpy as np

from annotruth.desk.coding import bundle, decode_runs, encode_runs
from annotruth.desk.fusing import MaskFusion, TableFusion
from annotruth.desk.journal import Entry
from annotruth.desk.live import Desk
from annotruth.desk.views import Picture, View, picture_of, view_of
from annotruth.errors import InputError
from annotruth.validation import MISSING_PIXEL

PROBABILITY_STEPS = 200
"""A probability is sent as a whole number from 0 to this."""
_KEPT_BYTES, _KEPT_PICTURES = 2**29, 8


class Cases:
    """Cases as pages see them; the pictures of the last few are kept."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._study = desk, desk.study
        self._pictures: OrderedDict[int, Picture] = OrderedDict()
        self._lock = threading.Lock()

    def view(self, index: int) -> View:
        """How a case is laid out on the page."""
        return view_of(self._study.base, index, self._study.base.shape(index))

    def shape(self, index: int) -> tuple[int, ...]:
        """(slices, rows, columns) on the page; () where there is nothing to be shown."""
        spatial = self._study.base.shape(index)
        if len(spatial) not in (2, 3):
            return ()
        sizes = tuple(spatial[axis] for axis in self.view(index).axes)
        return sizes if len(sizes) == 3 else (1, *sizes)

    def picture(self, index: int) -> Picture | None:
        """A case's image, if it has one that can be shown."""
        if not self._study.base.has_images or not self.shape(index):
            return None
        with self._lock:
            if index in self._pictures:
                self._pictures.move_to_end(index)
                return self._pictures[index]
        made = picture_of(self._study.base.item_image(index), self.view(index))
        with self._lock:
            self._pictures[index] = made
            while len(self._pictures) > 1 and (
                len(self._pictures) > _KEPT_PICTURES
                or sum(each.pixels.nbytes for each in self._pictures.values()) > _KEPT_BYTES
            ):
                self._pictures.popitem(last=False)
        return made

    def plane(self, index: int, slice_: int, channel: int) -> bytes:
        """One slice of a case's image, row by row."""
        picture = self.picture(index)
        if picture is None or not (0 <= channel < len(picture.pixels) and 0 <= slice_ < picture.pixels.shape[1]):
            raise InputError("There is no such slice or channel.")
        plane = picture.pixels[channel, slice_]
        return np.ascontiguousarray(plane, dtype=plane.dtype.newbyteorder("<")).tobytes()

    def about(self, index: int, rater: str = "") -> dict[str, Any]:
        """What a page must know of a case before it shows it; with ``rater``, without what others said."""
        desk, study = self._desk, self._study
        picture, shape = self.picture(index), self.shape(index)
        told: dict[str, Any] = {
            "index": index, "item": study.base.items[index], "shape": list(shape),
            "aspect": self.view(index).aspect if shape else 1.0,
            "image": None if picture is None else picture.about(), "seen": self.seen(index),
        }  # fmt: skip
        if rater:
            own = None if study.is_masks else study.label(index, rater)
            return told | {"own": own, "status": "open", "entries": [], "gains": [], "seen": 0}
        record = study.record(index)
        told |= {
            "status": record.status, "entries": [_plain(entry) for entry in record.entries], "sent": list(record.sent),
            "gains": [{"rater": name, "gain": round(gain, 4)} for name, gain in desk.gains(index)],
            "reason": desk.reason(index),
        }  # fmt: skip
        if isinstance(desk.fusion, TableFusion):
            answers = study.annotations.answers
            first, last = np.searchsorted(answers.item, [index, index + 1])
            told["answers"] = np.stack([answers.rater[first:last], answers.label[first:last]], axis=1).tolist()
            posterior = desk.fusion.posterior(index)
            told["posterior"] = None if posterior is None else posterior.round(4).tolist()
            told["gold"] = study.gold(index)
        return told

    def seen(self, index: int) -> int:
        """The number of the last decision of a case: what is decided next was decided in view of it."""
        entries = self._study.record(index).entries
        return entries[-1].number if entries else 0

    def layers(self, index: int, rater: str = "") -> bytes:
        """All labels of a case in one answer; with ``rater``, only that rater's own."""
        view, study = self.view(index), self._study
        if rater:
            own = study.label(index, rater)
            masks = [] if own is None else [np.asarray(own)]
            return bundle({"layers": [{"kind": "own"}] * len(masks)}, [encode_runs(view.turn(mask)) for mask in masks])
        assert isinstance(self._desk.fusion, MaskFusion)
        labels, probability = self._desk.fusion.fused(index)
        doubt = view.turn(1 - probability).sum(axis=(1, 2))
        named: list[dict[str, Any]] = [{"kind": "fused"}, {"kind": "probability"}]
        found = [labels, np.rint(probability * PROBABILITY_STEPS).astype(np.uint8)]
        gold = study.gold(index)
        if isinstance(gold, np.ndarray):
            named.append({"kind": "gold"})
            found.append(gold)
        for number, mask in enumerate(study.annotations.item_masks(index, checked=False)):
            if (mask != MISSING_PIXEL).any():
                named.append({"kind": "rater", "number": number})
                found.append(mask)
        about = {"layers": named, "slice": int(doubt.argmax()), "version": self._desk.version}
        return bundle(about, [encode_runs(view.turn(mask)) for mask in found])

    def method(self, index: int, number: int) -> bytes:
        """What one of the methods says of a case."""
        fusion = self._desk.fusion
        if not 0 <= number < len(fusion.methods):
            raise InputError("There is no such method.")
        name = fusion.methods[number]
        if isinstance(fusion, MaskFusion):
            labels, _ = fusion.say(index, name)
            return bundle(
                {"layers": [{"kind": "method", "number": number}]}, [encode_runs(self.view(index).turn(labels))]
            )
        if name == "model":
            posterior = fusion.ask_model(index)
            return bundle({"label": int(posterior.argmax()), "probability": round(float(posterior.max()), 4)}, [])
        return bundle({"label": int(fusion.say(name)[index])}, [])

    def drawn(self, index: int, code: bytes) -> np.ndarray:
        """The mask (*spatial) that a page sends."""
        shape = self.shape(index)
        labels = decode_runs(code, int(np.prod(shape))).reshape(shape)
        return np.ascontiguousarray(self.view(index).turn_back(labels))


def _plain(entry: Entry) -> dict[str, Any]:
    """An entry as the page lists it."""
    names = ("number", "time", "who", "role", "action", "source", "why", "rater", "label")
    return {name: getattr(entry, name) for name in names}
