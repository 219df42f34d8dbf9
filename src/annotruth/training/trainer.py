"""Run a training: processes, trainer, checkpoints, early stopping on noisy labels, logs, resume."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any

import lightning as L
import pandas as pd
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint, RichProgressBar
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader

import annotruth
from annotruth.errors import AnnotruthError, InputError
from annotruth.nn import training_together
from annotruth.training.batch_norm import shared_batch_norm
from annotruth.training.datasets import EpochSampler, Items, loader
from annotruth.training.memory import keep_freed_memory
from annotruth.training.module import History, MethodModule
from annotruth.training.storage import to_json
from annotruth.validation import one_of

STRATEGIES = ("auto", "ddp")


@dataclass(frozen=True)
class Processes:
    """How many processes train together: one per device, on each of the machines (nodes).

    Examples
    --------
    >>> Processes(devices=2, nodes=3).count
    6
    >>> Processes().is_first
    True
    """

    devices: int = 1
    nodes: int = 1
    strategy: str = "auto"

    def __post_init__(self) -> None:
        one_of(self.strategy, STRATEGIES, "strategy")
        for name in ("devices", "nodes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
                raise InputError(f"{name} must be a whole number from 1, not {value!r}.")

    @property
    def count(self) -> int:
        return self.devices * self.nodes

    @property
    def is_first(self) -> bool:
        """Whether this process is the one of all that writes results and speaks to the user.

        Known from the environment in which torchrun, Slurm or Lightning started it, even before the training begins.
        """
        ranks = ("RANK", "NODE_RANK", "LOCAL_RANK", "SLURM_PROCID")
        return self.count == 1 or all(os.environ.get(name, "0") == "0" for name in ranks)

    @property
    def for_trainer(self) -> dict[str, Any]:
        """These processes as Lightning's Trainer wants them."""
        # In a warm-up the annotator model has no gradients: all processes must find that out together.
        strategy = DDPStrategy(find_unused_parameters=True) if self.count > 1 else "auto"
        return {"devices": self.devices, "num_nodes": self.nodes, "strategy": strategy}


@dataclass(frozen=True)
class Schedule:
    """How long and how to train; ``fold`` names what is held out, where that is a fold: "0 of 5"."""

    max_epochs: int
    batch_size: int
    patience: int
    seed: int
    accelerator: str = "auto"
    progress: bool = True
    processes: Processes = field(default_factory=Processes)
    fold: str | None = None


def check_accelerator(name: str, processes: Processes) -> None:
    """Refuse an accelerator that Lightning does not know, or that this machine lacks, or has too few of."""
    try:
        with _quiet():
            L.Trainer(
                accelerator=name, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                enable_model_summary=False, **processes.for_trainer,
            )  # fmt: skip
    except Exception as error:  # there is one type for each reason; all of them say what to do
        raise InputError(f"The accelerator {name!r} cannot be used: {error}") from error


def run_training(
    module: MethodModule, train: Items, validation: Items | None, schedule: Schedule, folder: Path | None, resume: bool
) -> pd.DataFrame:
    """Train, and leave in the module the best weights; give the losses by epoch.

    Parameters
    ----------
    validation : held-out items whose *noisy* labels decide which weights are best and when to stop; None = the last
        epoch's are
    folder : where checkpoints and logs go; None = nowhere
    resume : go on from the folder's last checkpoint
    """
    last = folder / "checkpoints" / "last.ckpt" if folder is not None else None
    settings = _settings(module, schedule)
    if resume:
        _check_resumable(last, settings)
    with tempfile.TemporaryDirectory(prefix="annotruth-") as scratch:
        best = ModelCheckpoint(
            dirpath=(folder or Path(scratch)) / "checkpoints", filename="best", save_last=folder is not None,
            monitor="judged" if validation is not None else None, enable_version_counter=False,
            save_weights_only=folder is None,  # what nobody can resume from
        )  # fmt: skip
        history = History(None if folder is None else folder / "logs" / "metrics.csv")
        callbacks: list[L.Callback] = [history, best, _Settings(settings)]
        if validation is not None:
            callbacks.append(_Stopping("judged", patience=schedule.patience, check_finite=False))
        if schedule.progress:
            callbacks.append(RichProgressBar(refresh_rate=10, leave=False))  # times a second
        with _quiet(), _repeatable(schedule.accelerator), _in_step(module, schedule.processes), keep_freed_memory():
            trainer = L.Trainer(
                max_epochs=schedule.max_epochs,
                accelerator=schedule.accelerator,
                callbacks=callbacks,
                logger=False if folder is None else TensorBoardLogger(folder, name="logs", version=""),
                enable_progress_bar=schedule.progress,
                enable_model_summary=False,
                num_sanity_val_steps=0,
                log_every_n_steps=1,
                use_distributed_sampler=False,
                **schedule.processes.for_trainer,
            )
            with _plain_errors(last):
                trainer.fit(
                    module,
                    datamodule=_Loaders(train, validation, schedule),
                    ckpt_path=str(last) if resume else None,
                    weights_only=True,
                )
        if best.best_model_path:
            module.load_state_dict(trainer.strategy.broadcast(_best(best) if trainer.is_global_zero else {}))
    return history.frame()


@contextmanager
def _in_step(module: MethodModule, processes: Processes) -> Iterator[None]:
    """Let several processes, each with its share of a batch, do what one would with all of it."""
    if processes.count == 1:
        yield
    else:
        with shared_batch_norm(module), training_together():
            yield


def _best(checkpoints: ModelCheckpoint) -> dict[str, Any]:
    return torch.load(checkpoints.best_model_path, map_location="cpu", weights_only=True)["state_dict"]


class _Loaders(L.LightningDataModule):
    """This process's share of the items. Which process it is, Lightning knows only after it has started them all."""

    def __init__(self, train: Items, validation: Items | None, schedule: Schedule) -> None:
        super().__init__()
        self.train, self.validation, self.schedule = train, validation, schedule

    def train_dataloader(self) -> DataLoader:
        assert self.trainer is not None
        order = EpochSampler(self.train, self.schedule.seed)
        return loader(
            self.train, self.schedule.batch_size, order, self.trainer.global_rank, self.trainer.world_size
        )  # fmt: skip

    def val_dataloader(self) -> DataLoader | list[DataLoader]:
        assert self.trainer is not None
        if self.validation is None:
            return []
        processes, items = self.trainer.world_size, len(self.validation)
        # Each item once; where that would leave somebody without any, everybody looks at all.
        own = range(self.trainer.global_rank, items, processes) if items >= processes else range(items)
        return loader(self.validation, max(self.schedule.batch_size // processes, 1), own)


class _Stopping(EarlyStopping):
    """Stops early, but not before the method's loss has taken its final form."""

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if isinstance(pl_module, MethodModule) and pl_module.stages.objective_is_final(
            pl_module.model, pl_module.progress
        ):
            super().on_train_epoch_end(trainer, pl_module)


class _Settings(L.Callback):
    """Puts what a training was asked for into its checkpoints."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings

    def on_save_checkpoint(self, trainer: L.Trainer, pl_module: L.LightningModule, checkpoint: dict[str, Any]) -> None:
        checkpoint["annotruth"] = self.settings


def _settings(module: MethodModule, schedule: Schedule) -> dict[str, Any]:
    """What must stay the same for a training to be resumed."""
    settings = {
        "method": module.method.name, **vars(module.method), "max_epochs": schedule.max_epochs,
        "batch_size": schedule.batch_size, "learning_rate": module.learning_rate, "seed": schedule.seed,
        "fold": schedule.fold, "training items": len(module.items), **module.names,
        "version of annotruth": annotruth.__version__,
    }  # fmt: skip
    return json.loads(json.dumps(settings, default=to_json))


def _check_resumable(last: Path | None, settings: dict[str, Any]) -> None:
    """Refuse to resume where nothing was begun, or something else was."""
    if last is None:
        raise InputError("A training is resumed from its run_folder; give that.")
    if not last.is_file():
        raise InputError(f"There is no checkpoint to resume from at {last}; start anew without resume.")
    try:
        before = torch.load(last, map_location="cpu", weights_only=True)["annotruth"]
    except Exception as error:
        raise InputError(f"{last} is damaged or no checkpoint of annotruth; start anew without resume.") from error
    names = {**before, **settings}
    changed = [f"{n} (then {before.get(n)}, now {settings.get(n)})" for n in names if before.get(n) != settings.get(n)]
    if changed:
        raise InputError(
            f"{last} belongs to a training with another {', another '.join(changed)}; resume with the same settings, "
            "or start anew without resume."
        )


@contextmanager
def _plain_errors(last: Path | None) -> Iterator[None]:
    """Ctrl-C stays Ctrl-C, where Lightning would end the whole program; a failure says what is left."""
    try:
        yield
    except SystemExit as stop:
        if isinstance(stop.__context__, KeyboardInterrupt):
            raise stop.__context__ from None
        raise
    except AnnotruthError as error:
        if last is None or not last.is_file():
            raise
        raise type(error)(f"{error} The last good checkpoint is {last}.") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the trainer's own advice (hardware found, worker processes) off the user's screen."""
    logs = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric")]
    levels = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            for words in (
                "does not have many workers", "exists and is not empty", "LeafSpec", "tip", "val_dataloader",
                "across ranks is zero",
            ):  # fmt: skip
                warnings.filterwarnings("ignore", f".*{words}.*")
            yield
    finally:
        for log, level in zip(logs, levels):
            log.setLevel(level)


@contextmanager
def _repeatable(accelerator: str) -> Iterator[None]:
    """The same seed gives the same bits on a CPU; other devices do their best. The user's own settings come back."""
    before, warn_only = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    # Filling memory before it is written to takes a tenth of a step, and only helps where memory is read unwritten.
    fill = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    torch.use_deterministic_algorithms(True, warn_only=accelerator not in ("cpu", "auto") or torch.cuda.is_available())
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    try:
        with torch.random.fork_rng():
            yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warn_only)
        torch.utils.deterministic.fill_uninitialized_memory = fill  # type: ignore[attr-defined]
