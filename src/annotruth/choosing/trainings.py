"""The trainings of a comparison: every method on every fold with every seed, each kept when it is done.

FOLDER/<method>-fold-<fold>-seed-<seed>.npz    predictions of the fold's items, and what the training was asked for
FOLDER/<method>-rater-<rater>-seed-<seed>.npz  the same, of all items, without this rater
"""

from __future__ import annotations

import hashlib
import json
import time
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import nn

from annotruth import __version__
from annotruth.data.annotations import Annotations
from annotruth.errors import AnnotruthError, AnnotruthWarning
from annotruth.io import atomic
from annotruth.methods import make_method
from annotruth.training.classifier import Classifier
from annotruth.training.folds import hold_out
from annotruth.training.runs import make_model
from annotruth.training.segmenter import Segmenter
from annotruth.training.storage import to_json

LeaveOut = Literal["items", "raters"]


@dataclass(frozen=True)
class Training:
    """One training: a method that learns from all folds but one, or from all raters but one.

    Attributes
    ----------
    fold, folds : the part that is left out, and of how many: of the items, or a rater's position among all
    settings : of the estimator, beside method and seed
    data : digest of the annotations
    leave_out : "items" or "raters"
    """

    method: str
    fold: int
    folds: int
    seed: int
    settings: Mapping[str, Any]
    data: str
    leave_out: LeaveOut = "items"

    @property
    def _word(self) -> str:
        return "fold" if self.leave_out == "items" else "rater"

    @property
    def file(self) -> str:
        return f"{self.method}-{self._word}-{self.fold}-seed-{self.seed}.npz"

    def __str__(self) -> str:
        return f"{self.method}, {self._word} {self.fold + 1} of {self.folds}, seed {self.seed}"

    def split(self, annotations: Annotations) -> tuple[Annotations, Annotations]:
        """What is learnt from, and what is predicted: items held out, or all items, without having heard one rater."""
        if self.leave_out == "items":
            return hold_out(annotations, self.fold, self.folds)
        left_out = annotations.raters[self.fold]
        return annotations.take_raters([name for name in annotations.raters if name != left_out]), annotations

    def configuration(self, annotations: Annotations) -> dict[str, Any]:
        """All that determines the result; a result on disk counts if this is still the same."""
        options = vars(make_method(self.method, annotations.kind))
        asked = {
            "method": self.method, "options": options, "fold": self.fold, "folds": self.folds, "seed": self.seed,
            "leave out": self.leave_out, "settings": dict(self.settings), "data": self.data, "annotruth": __version__,
        }  # fmt: skip
        return json.loads(json.dumps(asked, default=_as_text))

    def model(self, annotations: Annotations) -> Segmenter | Classifier:
        """The estimator, not yet trained."""
        return make_model(annotations, {"method": self.method, "seed": self.seed, **self.settings}, progress=False)


@dataclass(frozen=True)
class Trained:
    """What a training left.

    Attributes
    ----------
    items : names of the items that were held out
    predictions : an array of class numbers for each: (*spatial), or ()
    """

    items: tuple[str, ...]
    predictions: Sequence[np.ndarray]
    seconds: float
    warnings: tuple[str, ...]


def train(training: Training, annotations: Annotations) -> Trained:
    """Train on what is not left out, and predict: items that the model has never seen, or of an unheard rater, all."""
    to_learn, held_out = training.split(annotations)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AnnotruthWarning)  # kept in the result instead
        try:
            model = training.model(annotations).fit(to_learn)
        except AnnotruthError as error:
            raise type(error)(f"{training}: {error}") from error
        seconds = time.perf_counter() - started
        return Trained(held_out.items, _predict(model, held_out), seconds, tuple(map(str, model.warnings_)))


def _predict(model: Segmenter | Classifier, held_out: Annotations) -> list[np.ndarray]:
    if isinstance(model, Classifier):
        return list(model.predict_proba(held_out).argmax(axis=1))
    return [
        model.predict([held_out.item_image(index)], spacing=held_out.spacing(index))[0]
        for index in range(len(held_out))
    ]


def keep(path: Path, asked: Mapping[str, Any], trained: Trained) -> None:
    """Write what a training left."""
    about = {"asked": asked, "items": trained.items, "seconds": trained.seconds, "warnings": trained.warnings}
    arrays = {f"item_{number}": prediction for number, prediction in enumerate(trained.predictions)}
    with atomic(path) as temporary:
        np.savez_compressed(temporary, about=np.array(json.dumps(about)), **arrays)  # type: ignore[arg-type]


def read_kept(path: Path, asked: Mapping[str, Any]) -> Trained | None:
    """What an earlier training left, if it was asked for the same; None if not, or if the file is damaged."""
    if not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            if about["asked"] != asked:
                return None
            items = tuple(about["items"])
            predictions = [file[f"item_{number}"] for number in range(len(items))]
        return Trained(items, predictions, float(about["seconds"]), tuple(about["warnings"]))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None  # written by something else, or half of it lost: trained anew


def _as_text(value: Any) -> Any:
    """What JSON cannot hold; of a network of the user's, its layers and a digest of its weights."""
    if isinstance(value, nn.Module):
        digest = hashlib.blake2b(digest_size=16)
        for weights in value.state_dict().values():
            digest.update(np.ascontiguousarray(weights.detach().cpu().numpy()).tobytes())
        return f"{value!r} {digest.hexdigest()}"
    return to_json(value) if isinstance(value, (Path, np.ndarray, np.generic)) else str(value)
