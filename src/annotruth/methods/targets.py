"""What several methods make of labels before a network learns from them: votes and fused answers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from annotruth.data.annotations import Annotations
from annotruth.data.answers import Answers, sort_answers
from annotruth.errors import AnnotruthWarning
from annotruth.fusion.base import FusionEstimator
from annotruth.validation import MISSING_LABEL, MISSING_PIXEL


def majority_of(labels: Tensor, classes: int) -> Tensor:
    """The most frequent label of every pixel, (raters, *spatial) to (1, *spatial); 255 where there is none, or a tie.

    A tie teaches nothing: whichever class won it would shrink or grow all borders on which an even number of raters
    differ, and the network draws them better from the pixels that are settled.

    Examples
    --------
    >>> majority_of(torch.tensor([[0, 1, 1, 255], [0, 1, 0, 255]], dtype=torch.uint8), classes=2)
    tensor([[  0,   1, 255, 255]], dtype=torch.uint8)
    """
    votes = torch.stack([(labels == number).sum(dim=0) for number in range(classes)])
    most, winner = votes.max(dim=0)
    has_no_winner = (most == 0) | ((votes == most).sum(dim=0) > 1)
    return winner.to(torch.uint8).masked_fill(has_no_winner, MISSING_PIXEL)[None]


def answers_of_one(labels: np.ndarray) -> Answers:
    """Labels (items,), -1 = none, as the answers of a single rater.

    Examples
    --------
    >>> answers_of_one(np.array([2, -1, 0])).item
    array([0, 2], dtype=int32)
    """
    item = np.flatnonzero(np.asarray(labels) != MISSING_LABEL)
    return sort_answers(item, np.zeros_like(item), np.asarray(labels)[item])


def fused_answers(estimator: FusionEstimator, annotations: Annotations) -> Answers:
    """What an estimator makes of a label table: one answer for every item that anybody answered."""
    with quietly():
        fused = estimator.fit(annotations)
    answered = np.bincount(annotations.answers.item, minlength=len(annotations)) > 0
    return answers_of_one(np.where(answered, fused.predict(), MISSING_LABEL))


@contextmanager
def quietly() -> Iterator[None]:
    """Fuse without warnings: doubts are no news here, where the model states them for what it learns itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AnnotruthWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
