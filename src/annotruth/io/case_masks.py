"""What the raters drew on one case: masks, and coarse drawings of what is there and what is not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from annotruth.data.drawings import NEGATIVE_FOLDER, warn_contradictions, without_contradictions
from annotruth.io.files import read_mask
from annotruth.io.pixels import Pixels
from annotruth.io.problems import place
from annotruth.validation import MISSING_PIXEL, same_grid


@dataclass(frozen=True)
class Drawn:
    """One case's files, read when they are asked for.

    Attributes
    ----------
    files : each rater's mask, or positive drawing; None = not labelled
    said_not : each rater's negative drawing
    """

    case: str
    raters: tuple[str, ...]
    files: tuple[Path | None, ...]
    said_not: tuple[Path | None, ...]
    shape: tuple[int, ...]
    pixels: Pixels

    def positive(self) -> np.ndarray:
        """What was drawn as being there (raters, *spatial), 255 = not labelled."""
        return self._positive() if not self._has_negative else self.both()[0]

    def negative(self) -> np.ndarray:
        """What was drawn as not being there (raters, *spatial), 255 = nothing said; warns of what is contradicted."""
        _, negative, contradicted = self.both()
        if contradicted:
            warn_contradictions([f"case {self.case}"], contradicted)
        return negative

    def both(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Positive and negative drawings without the pixels that are contradicted, and how many these were."""
        return without_contradictions(self._positive(), self._negative())

    @property
    def _has_negative(self) -> bool:
        return bool(self.pixels.negative) or any(path is not None for path in self.said_not)

    def _positive(self) -> np.ndarray:
        pairs = zip(self.files, self.raters)
        return np.stack([case_mask(path, rater, self.case, self.shape, self.pixels) for path, rater in pairs])

    def _negative(self) -> np.ndarray:
        drawn = []
        for path, also, rater in zip(self.said_not, self.files, self.raters):
            mask = case_mask(path, f"{rater}{NEGATIVE_FOLDER}", self.case, self.shape, self.pixels)
            if also is not None and self.pixels.negative:
                where = place(also, self.case, rater)
                mask = np.where(
                    mask == MISSING_PIXEL, self.pixels.negative_numbers(read_mask(also, where), where), mask
                )
            drawn.append(mask)
        return np.stack(drawn)


def case_mask(path: Path | None, rater: str | None, case: str, shape: tuple[int, ...], pixels: Pixels) -> np.ndarray:
    """Read one mask (*spatial); without a file nothing is labelled."""
    if path is None:
        return np.full(shape, MISSING_PIXEL, dtype=np.uint8)
    where = place(path, case, rater)
    array = read_mask(path, where)
    same_grid(array.shape, shape, where, "the case, when it was loaded,")
    return pixels.class_numbers(array, where)
