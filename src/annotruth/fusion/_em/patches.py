"""Which labels a rater gave to pixels around that look like the one in question, by comparing patches."""

from __future__ import annotations

from itertools import product

import numpy as np
from numba import njit

from annotruth.parallel.threads import run_parts, split_range
from annotruth.validation import MISSING_PIXEL

_PART = 2**9  # pixels per part


class PatchSearch:
    """Soft labels of raters: the shares of their labels in a search box, each weighing as its patch resembles.

    soft[r, k, v] = Σ_{v′ in the box, labelled k} w(v, v′) / Σ_{v′ labelled} w(v, v′)
    w(v, v′) = exp(- mean squared difference of the patches of target at v and source at v′ / (2 intensity_scale²))
             · exp(- |v - v′|² / (2 distance_scale²))

    Parameters
    ----------
    target, source : (channels, pixels) images; the source is where the raters drew
    shape : the pixels' grid, of any dimension. Patches that reach beyond it repeat its border
    search_radius, patch_radius : in pixels along each axis; 0 for the pixel alone
    intensity_scale : in standard deviations of an image
    distance_scale : in pixels (of the smallest side, where ``spacing`` is given)
    """

    def __init__(
        self,
        target: np.ndarray,
        source: np.ndarray,
        shape: tuple[int, ...],
        *,
        search_radius: int,
        patch_radius: int,
        intensity_scale: float,
        distance_scale: float,
        spacing: tuple[float, ...] | None = None,
    ) -> None:
        self._shape = np.array(shape, dtype=np.int64)
        self._target = _padded(target, shape, patch_radius)
        self._source = self._target if source is target else _padded(source, shape, patch_radius)
        self._radius = patch_radius
        steps = self._steps(search_radius)
        widths = np.ones(len(shape)) if spacing is None else np.asarray(spacing) / min(spacing)
        self._offset, self._apart = steps, ((steps * widths) ** 2).sum(axis=1) / (2 * distance_scale**2)
        inner = np.cumprod([1, *(self._shape + 2 * patch_radius)[:0:-1]])[::-1]
        self._strides, self._patch = inner.astype(np.int64), self._steps(patch_radius) @ inner
        self._sharpness = 1 / (2 * intensity_scale**2 * len(target) * len(self._patch))

    def _steps(self, radius: int) -> np.ndarray:
        return np.array(list(product(range(-radius, radius + 1), repeat=len(self._shape))), dtype=np.int64)

    def soft_labels(self, masks: np.ndarray, pixels: np.ndarray, n_classes: int) -> np.ndarray:
        """Soft labels (raters, classes, pixels) float32 at some pixels, of masks (raters, all pixels).

        They sum to 1 over the classes, or are 0 where the rater left out the pixel itself.
        """
        soft = np.zeros((len(masks), n_classes, len(pixels)), dtype=np.float32)
        masks = np.ascontiguousarray(masks)

        def work(first: int, last: int) -> None:
            _search(
                self._target, self._source, self._shape, self._strides, self._radius, self._offset, self._apart,
                self._patch, self._sharpness, masks, pixels, soft, first, last,
            )  # fmt: skip

        run_parts(work, split_range(len(pixels), _PART))
        return soft


def _padded(image: np.ndarray, shape: tuple[int, ...], radius: int) -> np.ndarray:
    """Image (padded pixels, channels) float32 of mean 0 and standard deviation 1 in each channel."""
    spread = image.std(axis=1, keepdims=True)
    image = (image - image.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    grid = np.pad(image.reshape(len(image), *shape), [(0, 0)] + [(radius, radius)] * len(shape), mode="edge")
    return np.ascontiguousarray(grid.reshape(len(image), -1).T, dtype=np.float32)


@njit(nogil=True, cache=True)
def _search(  # type: ignore[no-untyped-def]
    target, source, shape, strides, radius, offset, apart, patch, sharpness, masks, pixels, soft, first, last
):
    n_axes, n_channels = len(shape), target.shape[1]
    place, score, where = np.empty(n_axes, dtype=np.int64), np.empty(len(offset)), np.empty(len(offset), dtype=np.int64)
    for number in range(first, last):
        rest, home = pixels[number], 0
        for axis in range(n_axes - 1, -1, -1):
            place[axis] = rest % shape[axis]
            rest //= shape[axis]
            home += (place[axis] + radius) * strides[axis]
        count, best = 0, -np.inf
        for o in range(len(offset)):
            there, padded, inside = 0, 0, True
            for axis in range(n_axes):
                at = place[axis] + offset[o, axis]
                if at < 0 or at >= shape[axis]:
                    inside = False
                    break
                there = there * shape[axis] + at
                padded += (at + radius) * strides[axis]
            if not inside:
                continue
            total = np.float32(0)
            for p in range(len(patch)):
                for c in range(n_channels):
                    gap = target[home + patch[p], c] - source[padded + patch[p], c]
                    total += gap * gap
            score[count], where[count] = -(total * sharpness + apart[o]), there
            best = max(best, score[count])
            count += 1
        for n in range(count):
            score[n] = np.exp(score[n] - best)
        for rater in range(len(masks)):
            if masks[rater, pixels[number]] == MISSING_PIXEL:
                continue
            total_weight = 0.0
            for n in range(count):
                label = masks[rater, where[n]]
                if label != MISSING_PIXEL:
                    soft[rater, label, number] += score[n]
                    total_weight += score[n]
            if total_weight > 0:
                for k in range(soft.shape[1]):
                    soft[rater, k, number] /= total_weight
