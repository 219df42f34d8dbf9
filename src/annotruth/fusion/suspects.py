"""Which raters of a label table somebody should look at: who guesses, and who copies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import AnnotruthWarning, CopiesWarning, SpammerWarning, shorten
from annotruth.fusion.copying import find_copies
from annotruth.fusion.spamming import find_spammers
from annotruth.metrics import skill

MAX_COPIED_SKILL = 0.9
"""Raters above it may well give the same answers by being right."""
MOST_NUMBERS = 50_000_000
"""Answers or matrices, times classes, beyond which nobody is looked for: it would take longer than the fusion."""


def suspect_raters(annotations: Annotations, frequency: np.ndarray, confusion: np.ndarray) -> list[AnnotruthWarning]:
    """Warnings of spammers and of copies among the raters of a label table.

    Parameters
    ----------
    frequency : (classes,) how common the classes are
    confusion : (raters, classes, classes) as it was estimated

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth, guesses = rng.integers(0, 3, (2, 60))
    >>> ann = Annotations.from_answers(np.stack([truth, truth, guesses, guesses], axis=1))
    >>> matrices = np.stack([np.eye(3)] * 2 + [np.full((3, 3), 1 / 3)] * 2)
    >>> for warning in suspect_raters(ann, np.full(3, 1 / 3), matrices):  # doctest: +ELLIPSIS
    ...     print(warning)
    rater_3, rater_4: answers as if nobody had looked at the items. Of raters who look at every other item, ...
    rater_3, rater_4 give the same answers, the wrong ones too, as if copied: their skill is 0.33.
    """
    classes = len(annotations.classes)
    if max(len(annotations.answers), confusion.size) * classes > MOST_NUMBERS:
        return []
    if confusion.shape[1] != classes or not np.isfinite(confusion).all():
        return []  # one class was told apart from all others
    found: list[AnnotruthWarning] = []
    spamming = find_spammers(annotations, frequency, confusion)
    if spamming.spammers:
        names = shorten(list(spamming.spammers))
        found.append(
            SpammerWarning(
                f"{names}: answers as if nobody had looked at the items. Of raters who look at every "
                f"other item, or at more, at most {spamming.level:.0%} would be taken for this."
            )
        )
    found.extend(map(CopiesWarning, tell_copies(annotations, lambda rater: confusion[rater])))
    return found


def tell_copies(annotations: Annotations, matrix_of: Callable[[int], np.ndarray]) -> list[str]:
    """Of raters who give the same answers though many of these are wrong, a sentence for each such group.

    Where all say the same, nobody is outvoted, and there is none. ``matrix_of`` gives a rater's matrix by position.
    """
    numbers, told = find_copies(annotations), []
    for number in np.flatnonzero(np.bincount(numbers) > 1):
        group = np.flatnonzero(numbers == number)
        right = float(skill(matrix_of(int(group[0]))))
        if right <= MAX_COPIED_SKILL and len(group) < len(numbers):
            names = shorten([annotations.raters[rater] for rater in group])
            told.append(f"{names} give the same answers, the wrong ones too, as if copied: their skill is {right:.2f}.")
    return told
