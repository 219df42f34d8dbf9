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
    known, the model is told it, ``spacing=``. With ``item_proba(ann, index)``, no images are needed.
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


def estimate(model: Model, ann: Annotations, index: int) -> np.ndarray:
    """Give the posterior (classes, *spatial) of one case; a fusion knows it without looking at the image."""
    if hasattr(model, "item_proba"):
        return np.asarray(model.item_proba(ann, index), dtype=np.float32)
    image = ann.item_image(index)
    return np.asarray(model.predict_proba(image[None], **spacing_of(ann, index))[0], dtype=np.float32)


def needs_images(model: Model) -> bool:
    """Whether there is no estimate without images; there is one of labels that were fused."""
    return not hasattr(model, "item_proba")


def image_of(ann: Annotations, index: int) -> np.ndarray:
    """The image (channels, *spatial) of a case, or nothing but dark where there is none."""
    return ann.item_image(index) if ann.has_images else np.zeros((1, *ann.shape(index)), dtype=np.float32)


def spacing_of(ann: Annotations, index: int) -> dict[str, Any]:
    """What a model is told of the spacing of one item: nothing, where nobody knows it."""
    spacing = ann.spacing(index)
    return {} if spacing is None else {"spacing": spacing}
