"""What Segmenter and Classifier share: scikit-learn manners, the course of a training, models on disk."""

from __future__ import annotations

import json
from abc import abstractmethod
from copy import deepcopy
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import nn

from annotruth.annotations import Annotations
from annotruth.errors import InputError
from annotruth.methods import Method, Parts, Shape, make_method
from annotruth.training.annotators import Annotator
from annotruth.training.data import Items, Standard
from annotruth.training.fitting import Schedule, check_accelerator, run_training
from annotruth.training.module import Training
from annotruth.training.storage import plain, read_model, write_model


class Estimator(BaseEstimator):
    """Base of the estimators that train a method's parts on annotations.

    A subclass names its parameters in ``__init__``, the ones below among them, and the method's own options last, as
    ``**options``. It prepares the data (``fit``), and says what else a file must hold (``_facts``, ``_take_facts``).
    """

    method: str
    network: nn.Module | None
    max_epochs: int
    batch_size: int | None
    learning_rate: float
    patience: int
    validation: float
    seed: int
    accelerator: str
    progress: bool
    options: dict[str, Any]

    classes_: tuple[str, ...]
    raters_: tuple[str, ...]
    _parts: Parts
    _shape: Shape
    _standard: Standard
    _schedule: Schedule

    # -- parameters ---------------------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments, the method's options among them."""
        return {**super().get_params(deep=False), **self.options}

    def set_params(self, **params: Any) -> Self:
        """Change arguments of the constructor, or options of the method."""
        own = super().get_params(deep=False)
        for name, value in params.items():
            if name in own:
                setattr(self, name, value)
            else:
                self.options = {**self.options, name: value}
        return self

    def _checked_method(self) -> Method:
        """The method, once all parameters are found good."""
        if not 0 <= self.validation < 1:
            raise InputError(f"validation is a share of the items, 0 ≤ validation < 1, not {self.validation}.")
        for name in ("max_epochs", "batch_size", "learning_rate"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name} must be positive, not {value}.")
        check_accelerator(self.accelerator)
        return make_method(self.method, self.options)

    # -- learning -----------------------------------------------------------------------------------------------

    def _split(self, annotations: Annotations) -> tuple[Annotations, Annotations | None]:
        """Items to learn from, and those held out; None where there are too few to hold any out."""
        groups = len(set(annotations.groups or annotations.items))
        if self.validation == 0 or groups * self.validation < 1:
            return annotations, None
        train, held_out = annotations.split([1 - self.validation, self.validation], seed=self.seed)
        return (train, held_out) if len(train) and len(held_out) else (annotations, None)  # a group may be too large

    def _build(self, method: Method) -> None:
        """Make the method's parts, anew for every fit."""
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            self._parts = method.build(self._shape, deepcopy(self.network))

    def _check_network(self, size: tuple[int, ...], wanted: tuple[int, ...]) -> None:
        """Refuse a network of the user's whose output does not fit images of this size, before any training.

        ``size`` is one image's (channels, *spatial), ``wanted`` the shape of its class scores.
        """
        if self.network is None:
            return
        example = torch.zeros(2, *size)
        try:
            with torch.no_grad():
                output = self._parts.eval().log_truth(example)
        except Exception as error:
            raise InputError(f"The given network fails on images of shape {tuple(example.shape)}: {error}") from error
        finally:
            self._parts.train()
        if tuple(output.shape) != (2, *wanted):
            raise InputError(
                f"The given network turns images {tuple(example.shape)} into {tuple(output.shape)}, "
                f"but class scores {(2, *wanted)} are needed."
            )

    def _train(
        self,
        method: Method,
        train: Items,
        held_out: Items | None,
        batch_size: int,
        run_folder: str | Path | None,
        resume: bool,
    ) -> None:
        """Train the parts."""
        self._schedule = Schedule(
            int(self.max_epochs), batch_size, int(self.patience), int(self.seed), self.accelerator, self.progress
        )
        module = Training(method, self._parts, train.annotations.items, float(self.learning_rate), int(self.seed))
        folder = None if run_folder is None else Path(run_folder)
        self.history_ = run_training(module, train, held_out, self._schedule, folder, resume)
        self._parts.eval().cpu()

    def _set_annotators(self, confusion: np.ndarray, intervals: np.ndarray) -> None:
        self.confusion_ = confusion
        self.annotators_ = {
            name: Annotator(name, confusion[r], (float(intervals[r, 0]), float(intervals[r, 1])), self)
            for r, name in enumerate(self.raters_)
        }

    # -- keeping ------------------------------------------------------------------------------------------------

    @property
    def settings_(self) -> dict[str, Any]:
        """Everything that determined this model, as plain values."""
        own = {name: value for name, value in self.get_params().items() if name not in ("network", *self.options)}
        method = make_method(self.method, self.options)
        own |= {"batch_size": self._schedule.batch_size, **self._used_settings(), "options": vars(method)}
        return json.loads(json.dumps(own, default=plain))

    def save(self, path: str | Path) -> Path:
        """Write the model to one file (safetensors with a JSON head, no pickle)."""
        check_is_fitted(self, "annotators_")
        facts = {
            "params": {name: value for name, value in self.get_params().items() if name != "network"},
            "own_network": self.network is not None,
            "classes": self.classes_,
            "raters": self.raters_,
            "shape": vars(self._shape),
            "batch_size": self._schedule.batch_size,
            "standard": vars(self._standard),
            "confusion": self.confusion_.tolist(),
            "intervals": [annotator.interval for annotator in self.annotators_.values()],
            "history": self.history_.to_dict("list"),
            "warnings": self.warnings_,
            **self._facts(),
        }
        return write_model(Path(path), type(self).__name__, facts, self._parts.state_dict())

    @classmethod
    def load(cls, path: str | Path, network: nn.Module | None = None) -> Self:
        """Read a model; one trained around your own network needs that network again."""
        facts, state = read_model(Path(path), cls.__name__)
        if facts["own_network"] and network is None:
            raise InputError(f"{path} was trained around your own network; pass it again with network=.")
        model = cls(network=network, **facts["params"])
        model.classes_, model.raters_ = tuple(facts["classes"]), tuple(facts["raters"])
        model._shape = Shape(**facts["shape"])
        model._standard = Standard(**facts["standard"])
        model._schedule = Schedule(model.max_epochs, facts["batch_size"], model.patience, model.seed)
        model.history_ = pd.DataFrame(facts["history"])
        model.warnings_ = facts["warnings"]
        model._take_facts(facts)
        with torch.random.fork_rng():
            parts = make_method(model.method, model.options).build(model._shape, deepcopy(network))
        model._parts = _filled(parts, state, path)
        model._set_annotators(np.array(facts["confusion"]), np.array(facts["intervals"]))
        return model

    @abstractmethod
    def _used_settings(self) -> dict[str, Any]:
        """What ``settings_`` says of the network and the data."""

    @abstractmethod
    def _facts(self) -> dict[str, Any]:
        """What a file must hold besides what all estimators store."""

    @abstractmethod
    def _take_facts(self, facts: dict[str, Any]) -> None:
        """Take in what :meth:`_facts` gave."""


def _filled(parts: Parts, state: dict[str, torch.Tensor], path: str | Path) -> Parts:
    try:
        parts.load_state_dict(state)
    except RuntimeError as error:
        raise InputError(f"{path} does not fit this network: {error}") from error
    return parts.eval()
