"""Objects: who marked which object of which class where. Boxes, points, and areas of pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from annotruth.errors import InputError, shorten
from annotruth.validation import unique_names

if TYPE_CHECKING:
    import pandas as pd

BOX = ("x1", "y1", "x2", "y2")
POINT = ("x", "y")


@dataclass(frozen=True)
class Objects:
    """Several raters' objects in the same images.

    Attributes
    ----------
    items, raters, classes : names; there is no background among the classes
    item, rater, label : (objects,) int, positions in these names
    boxes : (objects, 4) x1, y1, x2, y2 in pixels from the image's upper left corner; a point has x1 = x2 and y1 = y2
    labelled : (items, raters) bool, who looked at which image: whoever did and marked nothing there, saw nothing
    areas : the pixels of each object, bool, of the size of its box, whose corners are then whole numbers; None where
        only the box, or the point, is known
    sizes : (height, width) of each item, where they are known; otherwise empty
    origins : what the source itself calls each item, for the way back; likewise
    """

    items: tuple[str, ...]
    raters: tuple[str, ...]
    classes: tuple[str, ...]
    item: np.ndarray
    rater: np.ndarray
    label: np.ndarray
    boxes: np.ndarray
    labelled: np.ndarray
    areas: tuple[np.ndarray | None, ...]
    sizes: tuple[tuple[int, int], ...] = ()
    origins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for names, what in ((self.items, "item"), (self.raters, "rater"), (self.classes, "class")):
            unique_names(names, what)
        count = len(self.item)
        if not len(self.rater) == len(self.label) == len(self.areas) == count or self.boxes.shape != (count, 4):
            raise InputError("Objects need an item, a rater, a label, a box and an area (or None) each.")
        strange = (~np.isfinite(self.boxes)).any(axis=1)
        if strange.any():
            raise InputError(f"{self._where(strange)}: the box holds no numbers.")
        turned = (self.boxes[:, :2] > self.boxes[:, 2:]).any(axis=1)
        if turned.any():
            raise InputError(f"{self._where(turned)}: the box ends before it begins. Give x1 ≤ x2 and y1 ≤ y2.")
        unseen = ~self.labelled[self.item, self.rater]
        if unseen.any():
            raise InputError(f"{self._where(unseen)}: the rater marked an object but did not look at the image.")
        for number, area in enumerate(self.areas):
            if area is not None and (self.boxes[number, [3, 2]] - self.boxes[number, [1, 0]] != area.shape).any():
                raise InputError(f"{self._where(np.arange(count) == number)}: area and box differ in size.")

    def __len__(self) -> int:
        return len(self.item)

    def __repr__(self) -> str:
        size = f"{len(self.items)} items, {len(self.raters)} raters, {len(self.classes)} classes"
        return f"Objects({len(self)} objects: {size})"

    @classmethod
    def from_table(
        cls,
        frame: pd.DataFrame,
        *,
        classes: Sequence[str] | None = None,
        looked_at: pd.DataFrame | None = None,
    ) -> Objects:
        """From a table with a row per object: item, rater, label and a box (x1, y1, x2, y2) or a point (x, y).

        Parameters
        ----------
        looked_at : a table of who looked at which item (item, rater), for those who marked nothing; by default every
            rater looked at every item

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"item": ["a", "a"], "rater": ["ann", "bob"], "label": ["cell", "cell"],
        ...                       "x1": [1, 2], "y1": [1, 1], "x2": [5, 6], "y2": [4, 4]})
        >>> Objects.from_table(frame)
        Objects(2 objects: 1 items, 2 raters, 1 classes)
        """
        import pandas as pd

        needed = ["item", "rater", "label"]
        where = list(BOX) if set(BOX) <= set(frame.columns) else list(POINT)
        lacking = [name for name in [*needed, *where] if name not in frame]
        if lacking:
            raise InputError(
                f"A table of objects needs item, rater, label and {', '.join(BOX)} or {', '.join(POINT)}; there is no "
                f"{shorten(lacking)} among {shorten([str(name) for name in frame.columns], 10)}."
            )
        if frame[[*needed, *where]].isna().any(axis=None):
            row = int(np.flatnonzero(frame[[*needed, *where]].isna().any(axis=1))[0])
            raise InputError(f"Row {row} of the table of objects is not filled. Fill it in, or remove it.")
        seen = frame if looked_at is None else pd.concat([frame[["item", "rater"]], looked_at[["item", "rater"]]])
        items, raters = (tuple(dict.fromkeys(map(str, seen[name]))) for name in ("item", "rater"))
        names = tuple(map(str, classes)) if classes is not None else tuple(sorted(set(map(str, frame["label"]))))
        labelled = np.full((len(items), len(raters)), looked_at is None)
        if looked_at is not None:
            labelled[_positions(seen["item"], items, "item"), _positions(seen["rater"], raters, "rater")] = True
        places = frame[where].to_numpy(dtype=np.float64)
        return cls(
            items, raters, names, _positions(frame["item"], items, "item"), _positions(frame["rater"], raters, "rater"),
            _positions(frame["label"], names, "class"), places if len(where) == 4 else np.tile(places, 2), labelled,
            (None,) * len(frame),
        )  # fmt: skip

    def table(self) -> pd.DataFrame:
        """A row per object: item, rater, label, x1, y1, x2, y2."""
        import pandas as pd

        names = {
            "item": np.array(self.items, dtype=object)[self.item],
            "rater": np.array(self.raters, dtype=object)[self.rater],
            "label": np.array(self.classes, dtype=object)[self.label],
        }
        return pd.DataFrame(names | dict(zip(BOX, self.boxes.T)))

    def _where(self, which: Any) -> str:
        number = int(np.flatnonzero(which)[0])
        return f"Item {self.items[self.item[number]]}, rater {self.raters[self.rater[number]]}, object {number}"


def _positions(values: pd.Series, names: tuple[str, ...], what: str) -> np.ndarray:
    place = {name: number for number, name in enumerate(names)}
    strangers = sorted({str(value) for value in values} - place.keys())
    if strangers:
        raise InputError(f"Objects name an unknown {what}: {shorten(strangers)}.")
    return np.array([place[str(value)] for value in values], dtype=np.int64)
