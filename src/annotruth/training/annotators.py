"""What a trained model says of each rater."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import torch

from annotruth.errors import shorten
from annotruth.methods import Method, Parts
from annotruth.metrics import skill
from annotruth.training.data import Cases, loader
from annotruth.validation import MISSING_PIXEL

if TYPE_CHECKING:
    from annotruth.training.estimator import Estimator

RESAMPLES = 200


@dataclass(frozen=True, repr=False)
class Annotator:
    """One rater, as the model sees them.

    Attributes
    ----------
    name : the rater's own name
    confusion : (classes, classes) [true, observed], the average over the training items
    skill : mean of the diagonal: how often the rater is right, each class counting alike
    interval : 95 % interval of the skill, from resampling the training items
    """

    name: str
    confusion: np.ndarray
    interval: tuple[float, float]
    _model: Estimator

    def __repr__(self) -> str:
        return f"Annotator({self.name!r}, skill={self.skill:.3f})"

    @property
    def skill(self) -> float:
        return float(skill(self.confusion))

    def confusion_map(self, image: np.ndarray) -> np.ndarray | None:
        """The rater's matrix at every pixel (classes, classes, *spatial); None where the method has only one matrix.

        ``image`` is (channels, *spatial).
        """
        maps = self._model.confusion_maps(image)
        return None if maps is None else maps[self._model.raters_.index(self.name)]

    def predict_proba(self, image: np.ndarray) -> np.ndarray:
        """What would this rater draw? Probabilities (classes, *spatial) of each label on an image."""
        truth = self._model.predict_proba(image[None])[0]
        maps = self.confusion_map(image)
        if maps is None:
            return np.einsum("i...,ij->j...", truth, self.confusion).astype(np.float32)
        return np.einsum("i...,ij...->j...", truth, maps).astype(np.float32)

    def predict(self, image: np.ndarray) -> np.ndarray:
        """What would this rater draw? The most likely label (*spatial) at every pixel of an image."""
        return self.predict_proba(image).argmax(axis=0).astype(np.uint8)


class Annotators(Mapping[str, Annotator]):
    """What a model knows of each rater, by name; put together when it is asked for."""

    def __init__(self, model: Estimator) -> None:
        self._model = model
        self._number = {name: number for number, name in enumerate(model.raters_)}

    def __getitem__(self, name: str) -> Annotator:
        number = self._number[name]
        low, high = self._model._intervals[number].tolist()
        return Annotator(name, self._model._matrix_of(number), (low, high), self._model)

    def __iter__(self) -> Iterator[str]:
        return iter(self._number)

    def __len__(self) -> int:
        return len(self._number)

    def __repr__(self) -> str:
        return f"Annotators({shorten(list(self))})"


@torch.no_grad()
def count_confusion(
    method: Method, parts: Parts, cases: Cases, batch_size: int, patch: Sequence[int] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Sum every item's confusion rows, weighted with the estimated truth.

    Where the method learns annotators these are its own matrices; otherwise the raters' labels are counted against the
    estimated truth. ``cases`` give every rater's labels; ``patch`` is the most that fits through the network at once.

    Returns
    -------
    rows : (items, raters, classes, classes);  weights : (items, raters, classes)
    """
    rows, weights = [], []
    for batch in loader(cases, batch_size):
        sizes = [cases.annotations.shape(position) for position in batch.positions.tolist()]
        labels = None if method.learns_annotators else batch.labels
        row, weight = sum_rows(method, parts, batch.images, labels, sizes, patch)
        rows.append(row.numpy())
        weights.append(weight.numpy())
    return np.concatenate(rows), np.concatenate(weights)


def sum_rows(
    method: Method,
    parts: Parts,
    images: torch.Tensor,
    labels: torch.Tensor | None,
    sizes: Sequence[tuple[int, ...]],
    patch: Sequence[int] | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """As :func:`count_confusion`, for one batch: of the labels, or without them of the method's own matrices.

    Images are padded beyond their ``sizes``; padding does not count.
    """
    to_count = _inside(images, sizes)
    rows, weights = torch.zeros(()), torch.zeros(())
    for window in _windows(images.shape[2:], patch):
        truth = parts.log_truth(images[window]).exp() * to_count[window]
        to_count[window] = 0  # windows overlap at the far ends
        if labels is None:
            row, weight = method.confusion(parts, images[window]).mean_rows(truth)
            weight = weight.squeeze(3).expand(row.shape[:3])
        else:
            row = _against_labels(truth, labels[window])
            weight = row.sum(dim=3)
        rows, weights = rows + row.double(), weights + weight.double()
    return rows, weights


def _inside(images: torch.Tensor, sizes: Sequence[tuple[int, ...]]) -> torch.Tensor:
    """1 inside each item and 0 in the padding of a batch of different sizes: (batch, 1, *spatial)."""
    inside = torch.zeros(len(images), 1, *images.shape[2:])
    for item, size in zip(inside, sizes):
        item[(slice(None), *[slice(length) for length in size])] = 1
    return inside


def _windows(size: Sequence[int], patch: Sequence[int] | None) -> Iterator[tuple[slice, ...]]:
    """Cover a batch (batch, channels, *spatial) with windows of a patch's size."""
    step = size if patch is None else patch
    corners = [
        [max(min(start, length - width), 0) for start in range(0, length, width)] for length, width in zip(size, step)
    ]
    for corner in product(*corners):
        yield (slice(None), slice(None), *[slice(start, start + width) for start, width in zip(corner, step)])


def _against_labels(truth: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """How often each true class (batch, classes, *spatial) met each label: (batch, raters, classes, classes)."""
    truth, labels = truth.flatten(2), labels.flatten(2)
    met = [torch.einsum("bis,brs->bri", truth, (labels == number).to(truth.dtype)) for number in range(truth.shape[1])]
    return torch.stack(met, dim=3)


def mean_confusion(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Average rows over items: (raters, classes, classes). A row nobody has evidence for is taken as faithful."""
    total = weights.sum(axis=0)[..., None]
    faithful = np.broadcast_to(np.eye(rows.shape[-1]), rows.shape[1:])
    return np.where(total > 1e-9, rows.sum(axis=0) / np.maximum(total, 1e-9), faithful)


def skill_intervals(rows: np.ndarray, weights: np.ndarray, seed: int) -> np.ndarray:
    """95 % intervals (raters, 2) of the raters' skills, from resampling items."""
    rng = np.random.default_rng(seed)
    times = rng.multinomial(len(rows), np.full(len(rows), 1 / len(rows)), size=RESAMPLES)
    diagonal = np.tensordot(times, np.diagonal(rows, axis1=2, axis2=3), axes=1)
    total = np.tensordot(times, weights, axes=1)
    skills = np.where(total > 1e-9, diagonal / np.maximum(total, 1e-9), 1.0).mean(axis=2)
    return np.quantile(skills, [0.025, 0.975], axis=0).T


def labelled_pixels(cases: Cases) -> np.ndarray:
    """How many pixels each rater labelled: (raters,)."""
    annotations = cases.annotations
    return sum(
        (annotations.item_masks(i) != MISSING_PIXEL).reshape(len(annotations.raters), -1).sum(axis=1)
        for i in range(len(annotations))
    )
