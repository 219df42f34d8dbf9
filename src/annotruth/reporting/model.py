"""What the report asks of a trained model, and what both kinds of page check and compute with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd

from annotruth.data.annotations import Annotations
from annotruth.data.answers import class_name
from annotruth.errors import InputError, shorten


class RaterModel(Protocol):
    """What a model has learnt of one rater."""

    @property
    def confusion(self) -> np.ndarray: ...
    @property
    def skill(self) -> float: ...
    @property
    def interval(self) -> tuple[float, float] | None: ...
    @property
    def confusion_interval(self) -> np.ndarray | None: ...
    @property
    def labelled(self) -> int: ...
    def confusion_map(self, image: np.ndarray, **told: Any) -> np.ndarray | None: ...


class Model(Protocol):
    """A trained model; ``annotruth.Segmenter`` and ``annotruth.Classifier`` are such.

    It may have ``report_panels_`` as well: names of the panels of :mod:`annotruth.reporting.panels` that its method
    declares. What a panel asks of the model beyond this stands in the panel's file. Where the spacing of an image is
    known, the model is told it, ``spacing=``.
    """

    @property
    def method(self) -> str: ...
    @property
    def classes_(self) -> Any: ...  # names, or a classifier's labels as they were given
    @property
    def raters_(self) -> tuple[str, ...]: ...
    @property
    def settings_(self) -> Mapping[str, Any]: ...
    @property
    def history_(self) -> pd.DataFrame: ...
    @property
    def warnings_(self) -> Sequence[str]: ...
    @property
    def annotators_(self) -> Mapping[str, RaterModel]: ...
    def predict_proba(self, images: Any, **told: Any) -> np.ndarray: ...


def check_classes(model: Model, ann: Annotations) -> None:
    """Refuse annotations of other classes than the model's."""
    names = tuple(class_name(label) for label in model.classes_)
    if names != ann.classes:
        raise InputError(
            f"The model knows the classes {shorten(names, 10)} but the annotations have {shorten(ann.classes, 10)}; "
            "they must be the same, in the same order."
        )


def estimate(model: Model, image: np.ndarray, **told: Any) -> np.ndarray:
    """Give the posterior (classes, *spatial) for one image (channels, *spatial), of which something may be told."""
    return np.asarray(model.predict_proba(image[None], **told)[0], dtype=np.float32)


def spacing_of(ann: Annotations, index: int) -> dict[str, Any]:
    """What a model is told of the spacing of one item: nothing, where nobody knows it."""
    spacing = ann.spacing(index)
    return {} if spacing is None else {"spacing": spacing}
