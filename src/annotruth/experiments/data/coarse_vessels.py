"""Vessels of the retina (DRIVE) with simulated drawings at five levels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import ndimage

from annotruth.data.annotations import Annotations
from annotruth.experiments.core.task import Scale, TaskData
from annotruth.experiments.data.preparation import cut_tiles, halve, read_arrays
from annotruth.experiments.data.stand_in import shapes
from annotruth.simulate import simulate_drawings

FULL = Scale({"train": 8}, {"max_epochs": 20, "augment": True})
QUICK = Scale({"train": 4}, {"max_epochs": 3, "augment": True})
SIDE, TILE = 280, 70
"""Pixels of an image at half its resolution, and of the tiles that are drawn on, along each side."""
CLASSES = ("background", "vessel")
SOURCE = (
    "They are photographs (20, 584, 565, 3) of DRIVE's test set (Staal et al. 2004) and masks (20, 2, 584, 565) by two "
    "observers, of whom the first is the truth."
)
NOTES = (
    "DRIVE takes the place of the paper's LES-AV, and simulated drawings that of its annotator's. The first observer's "
    "masks are the truth.",
    "Photographs are shown at half their resolution, cut into tiles of 70 pixels that are drawn on one by one. Whole "
    "photographs of other eyes are held out.",
    "Drawings are a little too large and have gaps; a ratio keeps the part nearest to a random point.",
    "coarse-cm has smoothness 0: vessels are thinner than the distance at which it compares neighbours, and where "
    "little was drawn, the default took them all away (seen on seed 10, which is not in the table).",
)
STAND_IN = "No folder was named: outlines of drawn shapes stand in for DRIVE's vessels."


def vessels_task(*, seed: int, ratio: float = 1.0, train: int = 8, folder: Path | None = None) -> TaskData:
    """Tiles of some eyes to learn from, photographs of the others to score on; the seed decides which.

    Parameters
    ----------
    ratio : share of the drawings' area that is kept
    train : how many eyes, of twenty, are learnt from
    folder : with a file ``drive_test.npz``; None = a stand-in
    """
    images, truth = _stand_in(seed) if folder is None else _photographs(folder)
    order = np.random.default_rng([seed, SIDE]).permutation(len(images))
    seen, held_out = order[:train], order[train:]
    tiles = cut_tiles(truth[seen], TILE)
    drawn = simulate_drawings(tiles, positive=ratio, negative=ratio, seed=seed)
    eyes = [f"eye {eye}" for eye in seen for _ in range(len(tiles) // len(seen))]
    what = "photographs of DRIVE" if folder is not None else "drawn outlines"
    return TaskData(
        train=Annotations.from_masks(
            np.asarray(drawn.masks), images=cut_tiles(images[seen], TILE), negatives=drawn.negatives, classes=CLASSES,
            truth=tiles, groups=eyes,
        ),
        held_out=Annotations.from_masks(
            truth[held_out, None], images=images[held_out], classes=CLASSES, truth=truth[held_out]
        ),
        about=f"{train} {what} to learn from, {len(held_out)} held out, others for each seed",
    )  # fmt: skip


def _photographs(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images (20, 3, side, side) and masks (20, side, side), the middle of each photograph at half resolution."""
    arrays = read_arrays(folder, "drive_test.npz", ("images", "raters"), SOURCE)
    images, mask = arrays["images"].astype(np.float32), arrays["raters"][:, 0].astype(np.float32)
    top, left = (images.shape[1] - 2 * SIDE) // 2, (images.shape[2] - 2 * SIDE) // 2
    whole = (slice(None), slice(top, top + 2 * SIDE), slice(left, left + 2 * SIDE))
    colours = np.moveaxis(images[whole], -1, 1)
    return halve(colours), (halve(mask[whole]) >= 0.5).astype(np.uint8)


def _stand_in(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Outlines two pixels wide, darker than what they run through."""
    _, bodies = shapes(20, (SIDE, SIDE), seed=seed)
    inside = bodies > 0
    truth = np.stack([body ^ ndimage.binary_erosion(body, iterations=2) for body in inside]).astype(np.uint8)
    noise = np.random.default_rng([seed, TILE]).standard_normal(truth.shape, dtype=np.float32)
    return (1 - 0.5 * truth + 0.2 * noise).astype(np.float32)[:, None], truth
