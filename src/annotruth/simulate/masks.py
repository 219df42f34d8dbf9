"""Masks as several people would have drawn them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from annotruth.errors import InputError
from annotruth.simulate.mask_raters import MASK_RATERS, MaskRater, make_raters
from annotruth.simulate.simulation import Simulation, check_true_masks, choose_raters, simulation_of_masks


def simulate_masks(
    truth: np.ndarray | Sequence[np.ndarray],
    raters: Sequence[str | MaskRater] | Mapping[str, str] = MASK_RATERS,
    *,
    n_classes: int | None = None,
    strength: float | Sequence[float] = 1.0,
    keep: int | Literal["all"] = "all",
    seed: int = 0,
) -> Simulation:
    """Simulate what raters with known ways of erring draw, in 2D or 3D.

    The "good" rater's masks are the truth itself: say so when you report results on them.

    Parameters
    ----------
    truth : (items, *spatial) class numbers, 0 = background, 255 = unknown; or one (*spatial) array per item where
        sizes differ
    raters : kinds ("good", "over", "under", "wrong", "blank"), kinds by name, or :class:`MaskRater`
    n_classes : by default as many as the truth shows, at least 2
    strength : how strongly all err, or one number per rater; multiplies the raters' own strength. 0 = everybody is
        faithful
    keep : "all", or how many raters, drawn at random, label each item; the other masks become 255
    seed : an item's masks depend on the seed, its position and its rater's position only

    Returns
    -------
    Simulation with ``masks`` (items, raters, *spatial)

    Examples
    --------
    >>> truth = np.zeros((2, 16, 16), dtype=np.uint8)
    >>> truth[:, 5:11, 5:11] = 1
    >>> simulation = simulate_masks(truth, raters=["good", "over", "blank"])
    >>> simulation.masks.shape
    (2, 3, 16, 16)
    >>> simulation.confusion[2]
    array([[1., 0.],
           [1., 0.]])
    """
    items, n_classes = check_true_masks(truth, n_classes)
    people = make_raters(raters, strength)
    if n_classes < 2:
        raise InputError("Masks need at least two classes, background and one more.")
    drawn = [_draw_item(item, people, n_classes, seed, index) for index, item in enumerate(items)]
    kept = choose_raters(len(items), len(people), keep, seed)
    return simulation_of_masks(items, [str(rater.name) for rater in people], drawn, n_classes, kept=kept)


def _draw_item(truth: np.ndarray, raters: tuple[MaskRater, ...], n_classes: int, seed: int, index: int) -> np.ndarray:
    """Draw every rater's mask of one item: (raters, *spatial), from random numbers of its own."""
    streams = (np.random.SeedSequence(seed, spawn_key=(index, position)) for position in range(len(raters)))
    return np.stack([r.draw(truth, n_classes, np.random.default_rng(s)) for r, s in zip(raters, streams)])
