"""Digits with simulated coarse drawings, scribbles and boxes, as in the coarse-label paper's toy experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.experiments.core.task import Scale, TaskData
from annotruth.experiments.data.digits import noisy_digit_pool
from annotruth.simulate import simulate_boxes, simulate_drawings
from annotruth.validation import MISSING_PIXEL

CLASSES = ("background", "digit")
INK = 127
"""A pixel of more than this grey value is ink, half of the brightest, as in the paper."""
FULL = Scale({"pool": 450, "test": 300}, {"max_epochs": 16, "augment": True})
QUICK = Scale({"pool": 150, "test": 60, "train": 100}, {"max_epochs": 6, "augment": True})
SWEEP = Scale({"pool": 300, "test": 300}, {"max_epochs": 16, "augment": True})
QUICK_SWEEP = Scale({"pool": 100, "test": 50, "train": 100}, {"max_epochs": 6, "augment": True})
NOTE = (
    "Drawings are simulated: on the ink (positive) and on the rest (negative), each a little too large and with seven "
    "gaps three pixels wide; a ratio keeps the part of it nearest to a random point, and 0.01 is called a scribble."
)


def coarse_digits_task(
    *,
    seed: int,
    pool: int = 450,
    train: int = 300,
    test: int = 300,
    semi: bool = False,
    ratio: float = 1.0,
    vary: Literal["both", "positive", "negative"] = "both",
    negatives: bool = True,
    boxes: bool = False,
    folder: Path | None = None,
) -> TaskData:
    """Digits to learn from and digits held out; both, and the drawings, depend on the seed.

    Parameters
    ----------
    pool : how many digits there are to learn from at most; the same ones whatever is drawn on them
    train : how many of them are drawn on
    semi : these have known masks instead, and the rest of the pool is drawn on
    ratio, vary : share of the area that is kept of drawings, of both kinds or of one; of the other all is kept
    negatives : whether anybody draws what is not ink; where both kinds are drawn, what is drawn as both is unmarked
    boxes : whether boxes are drawn instead
    folder : with a file ``mnist.npz``; None = the bundled digits
    """
    images, truth = noisy_digit_pool(pool, test, seed, folder, INK)
    seen, masks = (slice(0, pool), train) if semi else (slice(0, train), 0)
    if boxes:
        simulated = simulate_boxes(truth[seen])
    else:
        positive, negative = (ratio if vary in ("both", kind) else 1.0 for kind in ("positive", "negative"))
        simulated = simulate_drawings(
            truth[seen], positive=positive, negative=negative if negatives else None, seed=seed
        )
    drawn, said_not = np.array(simulated.masks), simulated.negatives
    drawn[:masks] = MISSING_PIXEL
    if said_not is not None:
        said_not = np.array(said_not)
        said_not[:masks] = MISSING_PIXEL
    known = truth[seen].copy()
    known[masks:] = MISSING_PIXEL
    where = "the 5,000 bundled digits of MNIST" if folder is None else "MNIST's own training and test digits"
    return TaskData(
        train=Annotations.from_masks(
            drawn, images=images[seen], negatives=said_not, classes=CLASSES, truth=truth[seen]
        ),
        held_out=Annotations.from_masks(
            truth[pool:, None], images=images[pool:], classes=CLASSES, truth=truth[pool:]
        ),
        about=f"{test:,} digits held out of {where}; others, and other drawings, for each seed",
        known=known if semi else None,
    )  # fmt: skip
