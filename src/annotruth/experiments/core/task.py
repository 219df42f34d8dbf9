"""What a learner is given and what comes of it: data, how much of them, and a trained model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from annotruth.data.annotations import Annotations


@dataclass(frozen=True)
class TaskData:
    """What to learn from, and what to score on.

    Attributes
    ----------
    train : the raters' labels; the truth attached to them is seen by the methods ``clean`` and ``oracle-cm`` only
    held_out : other items, with images and truth
    confusion : (items, raters, classes, classes) the raters' true confusion there, or None where it is unknown
    about : which data these are, in words
    known : true masks of some items to learn from beside the raters' labels, or None
    options : options of methods that follow from the data, as the diagnosis of every item, by the method's name
    """

    train: Annotations
    held_out: Annotations
    confusion: np.ndarray | None = None
    about: str = ""
    known: Any = None
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Scale:
    """How much data, as arguments of the task, and how long a training, as arguments of the learner.

    ``settings`` holds what else, or other than that, some settings of a table have, by their names.
    """

    sizes: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Scale] = field(default_factory=dict)

    def of(self, setting: str) -> Scale:
        """The scale of one setting.

        Examples
        --------
        >>> scale = Scale({"train": 100}, {"max_epochs": 8}, {"large": Scale({"train": 10})})
        >>> scale.of("large"), scale.of("small").sizes
        (Scale(sizes={'train': 10}, training={'max_epochs': 8}, settings={}), {'train': 100})
        """
        own = self.settings.get(setting, Scale())
        return Scale({**self.sizes, **own.sizes}, {**self.training, **own.training})


@dataclass(frozen=True)
class Trained:
    """A trained model, what it is to be scored on, and what its training took (memory is None where not known)."""

    model: Any
    task: TaskData
    seed: int
    seconds: float
    megabytes: float | None
