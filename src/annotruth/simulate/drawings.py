"""Coarse drawings as a hurried person would make them: on an object, beside it, or as a box around it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import ndimage

from annotruth.errors import InputError
from annotruth.simulate.mask_raters import CUT_WIDTH, N_CUTS, WRONG_RADIUS
from annotruth.simulate.morphology import cut, grow, smooth_field
from annotruth.simulate.simulation import Simulation, check_true_masks, simulation_of_masks
from annotruth.validation import MISSING_PIXEL

SCRIBBLE_SHARE = 0.01
"""Share of a drawing's area that is left of it as a scribble."""


def simulate_drawings(
    truth: np.ndarray | Sequence[np.ndarray],
    *,
    positive: float | None = 1.0,
    negative: float | None = 1.0,
    strength: float = 1.0,
    raters: int | Sequence[str] = 1,
    n_classes: int | None = None,
    seed: int = 0,
) -> Simulation:
    """Simulate coarse drawings of every foreground class, of what is there and of what is not, in 2D or 3D.

    A positive drawing covers a class, too generously and with gaps in it; a negative one everything else in the same
    way. Of each, the part nearest to a random point of its own is kept. Where strokes of several classes meet, one of
    them lies on top.

    Parameters
    ----------
    truth : (items, *spatial) class numbers, 0 = background, 255 = unknown (nothing is drawn there); or one (*spatial)
        array per item where sizes differ
    positive, negative : the share of the drawing's area that is kept, 1 = all of it, 0.01 = a scribble; None = nothing
        of the kind is drawn
    strength : how carelessly is drawn, as of :class:`MaskRater`; at 0 no drawing ever leaves what it marks
    raters : how many people draw, or their names
    seed : an item's drawings depend on the seed, its position and the rater's position only

    Returns
    -------
    Simulation with ``masks`` and ``negatives`` (items, raters, *spatial); ``confusion`` is that of the positive
    drawings, where something is drawn

    Examples
    --------
    >>> truth = np.zeros((1, 32, 32), dtype=np.uint8)
    >>> truth[:, 8:18, 8:18] = 1
    >>> drawn = simulate_drawings(truth, positive=0.5, negative=0.1, strength=0)
    >>> int((drawn.masks == 1).sum()), int((drawn.negatives == 1).sum())  # of 100 pixels, of 924 pixels
    (50, 92)
    """
    names = [f"rater_{number + 1}" for number in range(raters)] if isinstance(raters, int) else list(raters)
    for ratio in (positive, negative):
        if ratio is not None and not 0 < ratio <= 1:
            raise InputError(
                f"positive and negative are shares of a drawing's area, above 0 and at most 1, not {ratio}."
            )
    if not 0 <= strength < np.inf:
        raise InputError(f"The strength must be 0 or more, found {strength}.")
    if (positive is None and negative is None) or not names:
        raise InputError("Nothing is drawn: give positive or negative, and at least one rater.")
    items, n_classes = check_true_masks(truth, n_classes)

    def draw(item: np.ndarray, index: int, person: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index, person)))
        return _draw(item, n_classes, (positive, negative), strength, rng)

    drawn = [[draw(item, index, person) for person in range(len(names))] for index, item in enumerate(items)]
    masks, negatives = ([np.stack([both[side] for both in people]) for people in drawn] for side in (0, 1))
    return simulation_of_masks(items, names, masks, n_classes, negatives if negative is not None else None)


def simulate_boxes(
    truth: np.ndarray | Sequence[np.ndarray], *, n_classes: int | None = None, rater: str = "rater_1"
) -> Simulation:
    """Draw the tightest box around every object, in 2D or 3D.

    Inside a box the mask holds its class, the smaller box on top; outside all boxes it holds 0, the background.

    Parameters
    ----------
    truth : as of :func:`simulate_drawings`; an object is what hangs together, corners included

    Examples
    --------
    >>> truth = np.zeros((1, 5, 6), dtype=np.uint8)
    >>> truth[0, 1, 1] = truth[0, 2, 2] = truth[0, 3, 3] = 1
    >>> simulate_boxes(truth).masks[0, 0]
    array([[0, 0, 0, 0, 0, 0],
           [0, 1, 1, 1, 0, 0],
           [0, 1, 1, 1, 0, 0],
           [0, 1, 1, 1, 0, 0],
           [0, 0, 0, 0, 0, 0]], dtype=uint8)
    """
    items, n_classes = check_true_masks(truth, n_classes)
    return simulation_of_masks(items, [rater], [_draw_boxes(item, n_classes)[None] for item in items], n_classes)


def _draw(
    truth: np.ndarray,
    n_classes: int,
    ratios: tuple[float | None, float | None],
    strength: float,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """One person's positive and negative drawing (*spatial) of one item."""
    drawings = np.full((2, *truth.shape), MISSING_PIXEL, dtype=np.uint8)
    for number in rng.permutation(np.arange(1, n_classes)):
        for drawing, ratio, region in zip(
            drawings, ratios, (truth == number, (truth != number) & (truth != MISSING_PIXEL))
        ):
            if ratio is not None and region.any():
                careless = _draw_carelessly(region, strength, rng) & (truth != MISSING_PIXEL)
                drawing[_keep_nearest(careless, ratio, rng)] = number
    return drawings[0], drawings[1]


def _draw_carelessly(region: np.ndarray, strength: float, rng: np.random.Generator) -> np.ndarray:
    """A region as it is drawn: grown beyond its border, and with gaps across it."""
    if strength == 0:
        return region
    radius = WRONG_RADIUS * strength
    grown = grow(region, radius, smooth_field(region.shape, rng))
    drawn = grown & ~cut(region, CUT_WIDTH * strength, radius + 1, rng, N_CUTS)
    return drawn if drawn.any() else grown


def _keep_nearest(drawn: np.ndarray, ratio: float, rng: np.random.Generator) -> np.ndarray:
    """The share of a drawing that lies nearest to a random point of it, one pixel at least."""
    pixels = np.argwhere(drawn)
    distance = ((pixels - pixels[rng.integers(len(pixels))]) ** 2).sum(axis=1)
    kept = pixels[np.argsort(distance, kind="stable")[: max(1, round(ratio * len(pixels)))]]
    part = np.zeros_like(drawn)
    part[tuple(kept.T)] = True
    return part


def _draw_boxes(truth: np.ndarray, n_classes: int) -> np.ndarray:
    """Boxes (*spatial) around the objects of one item, the largest painted first."""
    mask = np.zeros(truth.shape, dtype=np.uint8)
    touching = np.ones([3] * truth.ndim)
    boxes = [
        (number, box)
        for number in range(1, n_classes)
        for box in ndimage.find_objects(ndimage.label(truth == number, touching)[0])
    ]
    for number, box in sorted(boxes, key=lambda each: -np.prod([side.stop - side.start for side in each[1]])):
        mask[box] = number
    mask[truth == MISSING_PIXEL] = MISSING_PIXEL
    return mask
