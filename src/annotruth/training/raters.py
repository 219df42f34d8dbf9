"""What a trained model says of each rater."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from annotruth.errors import InputError, shorten
from annotruth.metrics import skill

if TYPE_CHECKING:
    from annotruth.training.estimator import Estimator


@dataclass(frozen=True)
class RaterFacts:
    """What a model keeps of all its raters, as arrays.

    Attributes
    ----------
    skill : (raters,) mean of each rater's diagonal
    interval : (raters, 2) bounds of the skills
    labelled : (raters,) how many training items each labelled
    confusion : (raters, classes, classes); None where there are too many to keep
    confusion_interval : (raters, 2, classes, classes) bounds of their entries; None likewise
    """

    skill: np.ndarray
    interval: np.ndarray
    labelled: np.ndarray
    confusion: np.ndarray | None = None
    confusion_interval: np.ndarray | None = None

    @classmethod
    def holding(
        cls, confusion: np.ndarray, bounds: np.ndarray, skill_bounds: np.ndarray, labelled: np.ndarray
    ) -> RaterFacts:
        """Facts of matrices with bounds that come from the labels, widened where they do not hold the matrices.

        A learnt matrix that the labels, counted against the estimated truth, do not bear out, is so seen to be unsure.
        """
        skills = skill(confusion)
        return cls(
            skill=skills, interval=hold(skills, skill_bounds), labelled=labelled, confusion=confusion,
            confusion_interval=hold(confusion, bounds),
        )  # fmt: skip

    def check(self, n_raters: int, n_classes: int) -> None:
        """Refuse arrays of other shapes than so many raters and classes have."""
        wanted = {
            "skill": (n_raters,), "interval": (n_raters, 2), "labelled": (n_raters,),
            "confusion": (n_raters, n_classes, n_classes), "confusion_interval": (n_raters, 2, n_classes, n_classes),
        }  # fmt: skip
        for name, shape in wanted.items():
            array = getattr(self, name)
            if array is not None and array.shape != shape:
                raise InputError(f"what is known of the raters has another shape, {name} {array.shape}, not {shape}")


def hold(values: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Widen bounds (raters, 2, ...) until they hold the values (raters, ...).

    Examples
    --------
    >>> hold(np.array([0.5, 0.9]), np.array([[0.4, 0.6], [0.7, 0.8]]))
    array([[0.4, 0.6],
           [0.7, 0.9]])
    """
    return np.stack([np.minimum(bounds[:, 0], values), np.maximum(bounds[:, 1], values)], axis=1)


@dataclass(frozen=True, repr=False)
class Annotator:
    """One rater, as the model sees them.

    Attributes
    ----------
    name : the rater's own name
    confusion : (classes, classes) [true, observed], the average over the training items
    skill : mean of the diagonal: how often the rater is right, each class counting alike
    interval : 95 % interval of the skill
    confusion_interval : (2, classes, classes) 95 % interval, low and high, of each entry of the matrix; None where the
        matrices are too many for it
    labelled : how many training items the rater labelled

    Notes
    -----
    Intervals come from the labels, counted against the estimated truth: for masks by resampling items. Where the
    learnt matrix lies outside, they are widened to hold it. They say what other items might have told, not what
    another training might have found.
    """

    name: str
    confusion: np.ndarray
    interval: tuple[float, float]
    confusion_interval: np.ndarray | None
    labelled: int
    _model: Estimator

    def __repr__(self) -> str:
        return f"Annotator({self.name!r}, skill={self.skill:.3f})"

    @property
    def skill(self) -> float:
        return float(skill(self.confusion))

    def confusion_map(self, image: np.ndarray, *, spacing: Sequence[float] | None = None) -> np.ndarray | None:
        """The rater's matrix at every pixel (classes, classes, *spatial); None where the method has only one matrix.

        ``image`` is (channels, *spatial), ``spacing`` as in ``Segmenter.predict_proba``.
        """
        maps = self._model.confusion_maps(image, spacing=spacing)
        return None if maps is None else maps[self._model.raters_.index(self.name)]

    def predict_proba(self, image: np.ndarray, *, spacing: Sequence[float] | None = None) -> np.ndarray:
        """What would this rater draw? Probabilities (classes, *spatial) of each label on an image."""
        drawn = self._model.rater_proba(image, spacing=spacing)
        if drawn is not None:
            return drawn[self._model.raters_.index(self.name)]
        truth = self._model.predict_proba(image[None], spacing=spacing)[0]
        maps = self.confusion_map(image, spacing=spacing)
        if maps is None:
            return np.einsum("i...,ij->j...", truth, self.confusion).astype(np.float32)
        return np.einsum("i...,ij...->j...", truth, maps).astype(np.float32)

    def predict(self, image: np.ndarray, *, spacing: Sequence[float] | None = None) -> np.ndarray:
        """What would this rater draw? The most likely label (*spatial) at every pixel of an image."""
        return self.predict_proba(image, spacing=spacing).argmax(axis=0).astype(np.uint8)


class Annotators(Mapping[str, Annotator]):
    """What a model knows of each rater, by name; put together when it is asked for."""

    def __init__(self, model: Estimator) -> None:
        self._model = model
        self._number = {name: number for number, name in enumerate(model.raters_)}

    def __getitem__(self, name: str) -> Annotator:
        number, facts = self._number[name], self._model._raters
        low, high = facts.interval[number].tolist()
        bounds = None if facts.confusion_interval is None else facts.confusion_interval[number]
        matrix, labelled = self._model._matrix_of(number), int(facts.labelled[number])
        return Annotator(name, matrix, (low, high), bounds, labelled, self._model)

    def __iter__(self) -> Iterator[str]:
        return iter(self._number)

    def __len__(self) -> int:
        return len(self._number)

    def __repr__(self) -> str:
        return f"Annotators({shorten(list(self))})"
