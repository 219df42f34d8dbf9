"""Random crowds: who they are, how strongly they err, how much each labels, and on which pictures, by the seed."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from annotruth.experiments.core.task import TaskData
from annotruth.experiments.data.hippocampus import slices_of_volumes
from annotruth.experiments.data.stand_in import shapes
from annotruth.simulate import MaskRater, noisy_digits, simulate_masks

FAITHFUL = ("good", "careless", "slightly over", "slightly under")
"""Who may be the faithful one: without fault, with slips now and then, or less than half a pixel off."""
ERRING = ("over", "under", "wrong", "blank", "mixer", "easy")
SLIGHTLY = 0.2
PICTURES = ("digits", "digits", "shapes", "hippocampus")
LABELS_EACH: tuple[int | Literal["all"], ...] = ("all", "all", 2, 1)


def random_crowd(rng: np.random.Generator, faithful: bool) -> list[MaskRater]:
    """Three to seven raters, drawn with repetition, each as strong as chance will have it; with a faithful one or not.

    Examples
    --------
    >>> [rater.name for rater in random_crowd(np.random.default_rng(0), faithful=True)]
    ['slightly over 1', 'over 2', 'over 3', 'mixer 4', 'easy 5', 'wrong 6', 'wrong 7']
    """
    kinds = [str(kind) for kind in rng.choice(ERRING, rng.integers(3, 8), p=[0.3, 0.25, 0.2, 0.05, 0.1, 0.1])]
    strengths = rng.uniform(0.4, 1.3, len(kinds))
    raters = [
        MaskRater(kind, min(strength, 1.0) if kind in ("blank", "mixer", "easy") else strength, name=f"{kind} {number}")
        for number, (kind, strength) in enumerate(zip(kinds, strengths.tolist()), 1)
    ]
    if faithful:
        name = str(rng.choice(FAITHFUL))
        kind, strength = (name.split()[1], SLIGHTLY) if name.startswith("slightly") else (name, 1.0)
        raters[0] = MaskRater(kind, strength, name=f"{name} 1")
    return raters


def crowd_task(*, faithful: bool, seed: int, train: int = 500, test: int = 200, folder: Path | None = None) -> TaskData:
    """Pictures that a random crowd drew on, some or all of them each, and others to score on.

    Parameters
    ----------
    faithful : whether somebody is faithful
    train : pictures at most; 70 at least
    folder : with a file ``hippocampus_msd_48x64x48.npz``; None = drawn shapes stand in for its slices
    """
    rng = np.random.default_rng([seed, faithful, 48])
    raters = random_crowd(rng, faithful)
    of, keep = str(rng.choice(PICTURES)), LABELS_EACH[rng.integers(len(LABELS_EACH))]
    n = min(int(rng.choice([70, 100, 150, 300, 500])), train)
    if of == "digits":
        images, truth, _ = noisy_digits(n + test, seed=seed)
        parts = [(images[:n], truth[:n]), (images[n:], truth[n:])]
    elif of == "hippocampus" and folder is not None:
        parts = slices_of_volumes(folder, seed, (n, test))
    else:
        images, truth = shapes(n + test, (48, 48), seed)
        parts = [(images[:n], truth[:n]), (images[n:], truth[n:])]
    classes = int(parts[0][1].max()) + 1
    drawn, held_out = (
        simulate_masks(truth, raters, n_classes=classes, keep=how_many, seed=seed).annotations(images=images)
        for (images, truth), how_many in zip(parts, (keep, LABELS_EACH[0]))
    )
    people = ", ".join(f"{rater.name} ({rater.strength:.1f})" for rater in raters)
    labels = f"{len(raters) if keep == 'all' else keep} label{'s' * (keep != 1)} each"
    return TaskData(drawn, held_out, about=f"seed {seed}: {n} pictures ({of}), {labels}, by {people}")
