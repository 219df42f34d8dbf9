"""Real cases shared out between learning and scoring, so that no patient or picture is in both."""

from __future__ import annotations

import numpy as np

from annotruth.data.annotations import Annotations


def seen_and_held_out(
    cases: Annotations, share: float, most: tuple[int, int], seed: int, rng: np.random.Generator
) -> tuple[Annotations, Annotations]:
    """Cases to learn from and cases of other groups to score on, so many at most, picked at random.

    Parameters
    ----------
    share : of the cases, how many to learn from; groups are never torn apart

    Examples
    --------
    >>> masks = np.zeros((8, 1, 2, 2), np.uint8)
    >>> cases = Annotations.from_masks(masks, classes=2, groups=["ann", "ann", "bob", "bob", "cy", "cy", "di", "di"])
    >>> seen, held_out = seen_and_held_out(cases, 0.5, (4, 1), seed=0, rng=np.random.default_rng(0))
    >>> len(seen), len(held_out), set(seen.groups) & set(held_out.groups)
    (4, 1, set())
    """
    parts = cases.split([share, 1 - share], seed=seed)
    seen, held_out = (part.take(np.sort(rng.permutation(len(part))[:n])) for part, n in zip(parts, most))
    return seen, held_out
