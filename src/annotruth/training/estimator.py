"""What Segmenter and Classifier share: scikit-learn manners, the course of a training, models on disk."""

from __future__ import annotations

import json
from abc import abstractmethod
from copy import deepcopy
from dataclasses import asdict, dataclass
from inspect import signature
from itertools import chain
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError, shorten
from annotruth.fusion.gold import Gold
from annotruth.fusion.raters import ranking
from annotruth.methods import DataSpec, Method, MethodModel, Task, make_method
from annotruth.methods.protocols import Prepares, ShowsPanels
from annotruth.nn.precision import PRECISIONS
from annotruth.training.batches import loader
from annotruth.training.datasets import Items, Progress, Standard
from annotruth.training.folds import check_fold, hold_out
from annotruth.training.module import MethodModule
from annotruth.training.raters import Annotators, RaterFacts
from annotruth.training.storage import (
    check_head,
    making_model,
    outline,
    read_model,
    refuse_nonfinite,
    to_json,
    write_model,
)
from annotruth.training.trainer import Processes, Schedule, check_accelerator, run_training
from annotruth.validation import one_of

_RATERS = "raters."
"""Begins the names of what a file holds of the raters, beside the model's weights."""


_KINDS: dict[str, tuple[type, str]] = {
    **dict.fromkeys(("max_epochs", "batch_size", "patience", "seed"), (Integral, "a whole number")),
    **dict.fromkeys(("learning_rate", "validation"), (Real, "a number")),
    **dict.fromkeys(("method", "accelerator", "precision"), (str, "a word")),
}
"""What the parameters of every estimator are; None is another matter."""

D = TypeVar("D", bound=Items)


@dataclass(frozen=True)
class Data(Generic[D]):
    """What a training learns from, read and checked.

    Attributes
    ----------
    train, held_out : items in batches, standardised; None where none are held out
    annotations : all that was given, to count raters' labels on
    """

    train: D
    held_out: D | None
    annotations: Annotations


class Estimator(BaseEstimator):
    """Base of the estimators that train a method's model on annotations.

    A subclass names its parameters in ``__init__``, the ones below among them, and the method's own options last, as
    ``**options``. It says how data are read (``_read``), what is learnt of the raters (``_learn_annotators``), and what
    else a file must hold (``_facts``, ``_take_facts``).

    Attributes
    ----------
    confusion_ : (raters, classes, classes), [true, observed], rows sum to 1
    skill_ : (raters,) mean of each rater's diagonal
    annotators_ : what was learnt of each rater, by name
    ranking_ : table of the raters, the most skilful first
    method_ : the method with its options, as it was resolved when the training began
    module_ : the trained networks: ``module_.truth`` and ``module_.annotators``
    report_panels_ : panels of the report that the method declares
    """

    task: ClassVar[Task]
    first_format: ClassVar[int] = 1
    """The first format of files whose networks can still be built."""

    method: str
    network: nn.Module | str | None
    max_epochs: int | None
    batch_size: int | None
    learning_rate: float | None
    patience: int
    validation: float
    seed: int
    accelerator: str
    devices: int
    nodes: int
    strategy: str
    precision: str
    progress: bool
    fold: int | None
    folds: int
    options: dict[str, Any]

    classes_: Any  # names, or a classifier's labels as they were given
    raters_: tuple[str, ...]
    method_: Method[Any]
    module_: MethodModel
    _spec: DataSpec
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

    def _checked_method(self) -> Method[Any]:
        """The method, once all parameters are found good."""
        for name, (kind, word) in _KINDS.items():
            value = getattr(self, name)
            if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
                raise InputError(f"{name} must be {word}, not {value!r}.")
        if not isinstance(self.network, (str, nn.Module, type(None))):
            raise InputError(f"network must be a name or a module, not {self.network!r}.")
        if not 0 <= self.validation < 1:
            raise InputError(f"validation is a share of the items, 0 ≤ validation < 1, not {self.validation}.")
        check_fold(self.fold, self.folds)
        if self.fold is not None and self.validation != signature(type(self)).parameters["validation"].default:
            raise InputError("With a fold, that fold is what is held out; leave validation away.")
        for name in ("max_epochs", "batch_size", "learning_rate"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name} must be positive, not {value}.")
        processes = self._processes()
        if self.batch_size is not None and self.batch_size < processes.count:
            raise InputError(
                f"{processes.count} processes share the items of a batch, so batch_size must be at least "
                f"{processes.count}, not {self.batch_size}."
            )
        check_accelerator(self.accelerator, processes)
        one_of(self.precision, PRECISIONS, "precision")
        return make_method(self.method, self.task, self.options)

    def _processes(self) -> Processes:
        return Processes(self.devices, self.nodes, self.strategy)

    # -- learning -----------------------------------------------------------------------------------------------

    @abstractmethod
    def _check(self, annotations: Annotations, truth: Gold = None) -> Annotations:
        """Resolve the method (``method_``), once parameters and annotations are found good; give what to learn from.

        ``truth`` is known of some items, where an estimator can be told that.
        """

    @abstractmethod
    def _read(self, annotations: Annotations, tell: Progress | None = None) -> Data[Any]:
        """Read what was checked, every file once where all fit into memory; a bad one is named before any training."""

    @abstractmethod
    def _learn(self, data: Data[Any], run_folder: str | Path | None, resume: bool) -> Self:
        """Learn from what was read."""

    def _split(self, annotations: Annotations) -> tuple[Annotations, Annotations | None]:
        """Items to learn from, and those held out; None where there are too few to hold any out."""
        if self.fold is not None:
            return hold_out(annotations, self.fold, self.folds)
        groups = len(set(annotations.groups or annotations.items))
        if self.validation == 0 or groups * self.validation < 1:
            return annotations, None
        train, held_out = annotations.split([1 - self.validation, self.validation], seed=self.seed)
        return (train, held_out) if len(train) and len(held_out) else (annotations, None)  # a group may be too large

    def _build(self, annotations: Annotations) -> None:
        """Make the method's model, anew for every fit; ``annotations`` are what it may look at before training."""
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            self.module_ = self.method_.build(self._spec, self._own_network())
        if isinstance(self.method_, Prepares):
            self.method_.prepare(self.module_, annotations)

    def _own_network(self) -> nn.Module | None:
        """The network that the user asked for, a fresh one for every fit."""
        return deepcopy(self.network) if isinstance(self.network, nn.Module) else None

    def _check_network(self, size: tuple[int, ...], wanted: tuple[int, ...]) -> None:
        """Refuse a network of the user's whose output does not fit images of this size, before any training.

        ``size`` is one image's (channels, *spatial), ``wanted`` the shape of its class logits.
        """
        if not isinstance(self.network, nn.Module):
            return
        example = torch.zeros(2, *size)
        try:
            with torch.no_grad():
                output = self.module_.eval().log_truth(example)
        except Exception as error:
            raise InputError(f"The given network fails on images of shape {tuple(example.shape)}: {error}") from error
        finally:
            self.module_.train()
        if tuple(output.shape) != (2, *wanted):
            raise InputError(
                f"The given network turns images {tuple(example.shape)} into {tuple(output.shape)}, "
                f"but class scores {(2, *wanted)} are needed."
            )

    def _train(
        self, train: Items, held_out: Items | None, batch_size: int, run_folder: str | Path | None, resume: bool
    ) -> None:
        """Train the model."""
        self._schedule = Schedule(
            self._epochs(len(train), batch_size), max(batch_size, self._processes().count), int(self.patience),
            int(self.seed),
            self.accelerator, self.progress, self._processes(),
            None if self.fold is None else f"{self.fold} of {self.folds}", self.precision,
        )  # fmt: skip
        names = {"list of classes": train.annotations.classes, "list of raters": self.raters_}
        module = MethodModule(
            self.method_, self.module_, train.annotations.items, self._rate(), int(self.seed), names
        )  # fmt: skip
        folder = None if run_folder is None else Path(run_folder)
        self.history_ = run_training(module, train, held_out, self._schedule, folder, resume)
        self.module_.eval().cpu()
        every = (items for items in (train, held_out) if items is not None)
        with torch.no_grad():  # labels of held-out items, too, tell how raters err
            batches = chain.from_iterable(loader(items.as_they_are(), batch_size) for items in every)
            self.method_.stages.finish(self.module_, batches)

    def _epochs(self, items: int, batch_size: int) -> int:
        """Passes over so many training items at most."""
        return self._usual_epochs(items, batch_size) if self.max_epochs is None else int(self.max_epochs)

    @abstractmethod
    def _usual_epochs(self, items: int, batch_size: int) -> int:
        """The same where the user does not say."""

    def _rate(self) -> float:
        """The peak of the learning rate."""
        assert self.learning_rate is not None
        return float(self.learning_rate)

    def _set_annotators(self, raters: RaterFacts) -> None:
        """Keep what was learnt of the raters; matrices that are too many to keep are made when asked for."""
        self._raters = raters
        self.annotators_ = Annotators(self)

    @property
    def skill_(self) -> np.ndarray:
        check_is_fitted(self, "annotators_")
        return self._raters.skill

    @property
    def ranking_(self) -> pd.DataFrame:
        """All raters, the most skilful first: see :func:`annotruth.fusion.raters.ranking`."""
        check_is_fitted(self, "annotators_")
        facts, matrices = self._raters, (self._matrix_of(rater) for rater in range(len(self.raters_)))
        classes, (low, high) = [str(name) for name in self.classes_], facts.interval.T
        return ranking(self.raters_, matrices, classes, facts.skill, low, high, facts.labelled)

    @property
    def confusion_(self) -> np.ndarray:
        check_is_fitted(self, "annotators_")
        if self._raters.confusion is None:
            raise InputError(
                f"{len(self.raters_)} matrices of {len(self.classes_)} classes are too many to keep at once; take one "
                "at a time, annotators_[name].confusion."
            )
        return self._raters.confusion

    def _matrix_of(self, rater: int) -> np.ndarray:
        """One rater's matrix (classes, classes)."""
        return self.confusion_[rater]

    @property
    def report_panels_(self) -> tuple[str, ...]:
        check_is_fitted(self, "annotators_")
        return self.method_.report_panels if isinstance(self.method_, ShowsPanels) else ()

    # -- keeping ------------------------------------------------------------------------------------------------

    @property
    def settings_(self) -> dict[str, Any]:
        """Everything that determined this model, as plain values."""
        unused = () if self.fold is not None else ("fold", "folds")
        other = ("network", *self.options, *unused)
        own = {name: value for name, value in self._resolved().items() if name not in other}
        own |= {"batch_size": self._schedule.batch_size, "max_epochs": self._schedule.max_epochs}
        own |= {"learning_rate": self._rate(), **self._used_settings(), "options": vars(self.method_)}
        return json.loads(json.dumps(own, default=to_json))

    def _resolved(self) -> dict[str, Any]:
        """The parameters, with the method that "auto" was resolved to."""
        return {**self.get_params(), "method": self.method_.name}

    def save(self, path: str | Path) -> Path:
        """Write the model to one file (safetensors with a JSON head, no pickle)."""
        check_is_fitted(self, "annotators_")
        facts = {
            "params": {name: value for name, value in self._resolved().items() if not isinstance(value, nn.Module)},
            "options": vars(self.method_),  # also those that were not given: a later version may have other defaults
            "own_network": isinstance(self.network, nn.Module),
            "classes": self.classes_,
            "raters": self.raters_,
            "shape": asdict(self._spec),
            "batch_size": self._schedule.batch_size,
            "max_epochs": self._schedule.max_epochs,
            "standard": vars(self._standard),
            "history": self.history_.to_dict("list"),
            "warnings": self.warnings_,
            **self._facts(),
        }
        raters = {name: value for name, value in vars(self._raters).items() if value is not None}
        tensors = {f"{_RATERS}{name}": torch.from_numpy(value) for name, value in raters.items()}
        return write_model(Path(path), type(self).__name__, facts, self.module_.state_dict() | tensors)

    @classmethod
    def load(cls, path: str | Path, network: nn.Module | None = None) -> Self:
        """Read a model; one trained around your own network needs that network again."""
        facts, state = read_model(Path(path), cls.__name__)
        if facts["format"] < cls.first_format:
            version = facts["annotruth"]
            raise InputError(
                f"{path} was written by annotruth {version}, whose networks this version no longer has. Use it with "
                f"that version (pip install annotruth=={version}), or train anew."
            )
        check_head(facts, path)
        if facts["own_network"] and network is None:
            raise InputError(f"{path} was trained around your own network; pass it again with network=.")
        with making_model(path):
            return cls._of(facts, state, path, network)

    @classmethod
    def _of(cls, facts: dict[str, Any], state: dict[str, Tensor], path: str | Path, network: nn.Module | None) -> Self:
        """The model that a file describes."""
        model = cls(**{"network": network, **facts["params"]})
        model.classes_, model.raters_ = tuple(facts["classes"]), tuple(facts["raters"])
        model._spec = DataSpec.from_dict(facts["shape"])
        model.method_ = make_method(model.method, cls.task, {**facts.get("options", {}), **model.options})
        model._standard = Standard(**facts["standard"])
        model._schedule = Schedule(facts["max_epochs"], facts["batch_size"], model.patience, model.seed)
        model.history_ = pd.DataFrame(facts["history"])
        model.warnings_ = facts["warnings"]
        model._take_facts(facts)
        raters = {n.removeprefix(_RATERS): state.pop(n).numpy() for n in list(state) if n.startswith(_RATERS)}
        with torch.random.fork_rng():
            outlined = outline(lambda: model.method_.build(model._spec, model._own_network()), len(state))
            if outlined is not None:
                _refuse_misfit(outlined, state, path)
            module = model.method_.build(model._spec, model._own_network())
        _refuse_misfit(module, state, path)
        refuse_nonfinite(state, module, path)
        module.load_state_dict(state)
        model.module_ = module.eval()
        kept = RaterFacts(**raters)
        kept.check(len(model.raters_), len(model.classes_))
        model._set_annotators(kept)
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


def _refuse_misfit(module: nn.Module, state: dict[str, Tensor], path: str | Path) -> None:
    """Refuse weights that are not this network's."""
    own = module.state_dict()
    differ = [name for name in own.keys() & state.keys() if own[name].shape != state[name].shape]
    strange = {
        "missing": own.keys() - state.keys(), "unknown": state.keys() - own.keys(), "of another shape": differ
    }  # fmt: skip
    problems = [f"{word}: {shorten(sorted(names), 3)}" for word, names in strange.items() if names]
    if problems:
        raise InputError(
            f"{path} does not fit this network and method ({'; '.join(problems)}). It holds weights of another "
            "network, method or list of classes, or was written by another version of annotruth."
        )
