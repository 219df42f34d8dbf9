"""Run a training: processes, trainer, checkpoints, early stopping on noisy labels, logs, resume."""

from __future__ import annotations

import json
import logging
import os
import signal
import tempfile
import threading
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
from lightning.pytorch.callbacks import EarlyStopping, RichProgressBar
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.strategies import DDPStrategy
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch.utils.data import DataLoader

import annotruth
from annotruth.errors import AnnotruthError, InputError
from annotruth.nn import training_together
from annotruth.nn.precision import training_precision
from annotruth.parallel.memory import keep_freed_memory
from annotruth.parallel.signals import Request, Stopped, noting_signals
from annotruth.training.batch_norm import shared_batch_norm
from annotruth.training.batches import EpochSampler, loader
from annotruth.training.checkpoints import (
    FOLDER,
    LAST,
    Checkpoint,
    RunCheckpoint,
    RunFacts,
    WholeCheckpoints,
    find_last,
    new_identity,
    read_checkpoint,
    refuse_other_weights,
    remove_halves,
)
from annotruth.training.datasets import Items
from annotruth.training.module import History, MethodModule
from annotruth.training.storage import RUN_FILE, run_identity, to_json
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


RATE_FALLS = 0.65
"""Share of the training after which the learning rate, of one cycle, is below half its peak. Before, losses go up and
down, and what is learnt shows late: of three trainings on small photographs one was ended at half its accuracy."""


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
    precision: str = "auto"


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

    A request to end (Ctrl-C, or a signal of a cluster's) is heeded after the step at hand, whose state is written, or
    at the end of the epoch if that was its last step: a resumed training goes on from there, bit for bit. Several
    processes would have to agree on a step; they go on from the end of the last epoch.
    """
    settings = _settings(module, schedule)
    identity = None if folder is None else run_identity(folder)
    begun = _find_resumable(folder, module, settings, identity) if resume else None
    if folder is not None and schedule.processes.is_first:
        remove_halves(folder)
    with tempfile.TemporaryDirectory(prefix="annotruth-") as scratch:
        best = RunCheckpoint(
            dirpath=(folder or Path(scratch)) / FOLDER, filename="best", save_last=folder is not None,
            monitor="judged" if validation is not None else None, enable_version_counter=False,
            save_weights_only=folder is None,  # what nobody can resume from
        )  # fmt: skip
        history = History(None if folder is None else folder / "logs" / "metrics.csv")
        identity = (begun[1].run if begun else None) or identity or new_identity()
        callbacks: list[L.Callback] = [history, best, RunFacts(identity, settings)]
        if validation is not None:
            callbacks.append(_Stopping("judged", patience=schedule.patience, check_finite=False))
        if schedule.progress:
            callbacks.append(RichProgressBar(refresh_rate=10, leave=False))  # times a second
        with (
            _quiet(), _repeatable(schedule.accelerator), _in_step(module, schedule.processes),
            training_precision(schedule.precision), keep_freed_memory(), noting_signals() as request,
        ):  # fmt: skip
            course = _Course(request, None if folder is None else folder / FOLDER / LAST)
            callbacks.append(course)
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
                plugins=[WholeCheckpoints()],
                **schedule.processes.for_trainer,
            )
            with _plain_errors(folder, course, begun[0] if begun else None):
                trainer.fit(
                    module,
                    datamodule=_Loaders(train, validation, schedule),
                    ckpt_path=str(begun[0]) if begun else None,
                    weights_only=True,
                )
                request.heed()
        if best.best_model_path:
            module.load_state_dict(
                trainer.strategy.broadcast(_best(best, module, identity) if trainer.is_global_zero else {})
            )
    return history.frame()


@contextmanager
def _in_step(module: MethodModule, processes: Processes) -> Iterator[None]:
    """Let several processes, each with its share of a batch, do what one would with all of it."""
    if processes.count == 1:
        yield
    else:
        with shared_batch_norm(module), training_together():
            yield


def _best(checkpoints: RunCheckpoint, module: MethodModule, identity: str) -> dict[str, Any]:
    """The best weights, of this run and no other."""
    path = Path(checkpoints.best_model_path)
    if checkpoints.save_weights_only:  # in a folder of this training's own
        return torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
    try:
        found = read_checkpoint(path)
        refuse_other_weights(found, module, path)
    except InputError as error:
        raise AnnotruthError(f"{error} The best weights are lost; start anew without resume.") from error
    if found.run != identity:
        raise AnnotruthError(f"{path} belongs to another run. Put the run's own back, or start anew without resume.")
    return found.state_dict


class _Loaders(L.LightningDataModule):
    """This process's share of the items. Which process it is, Lightning knows only after it has started them all."""

    def __init__(self, train: Items, validation: Items | None, schedule: Schedule) -> None:
        super().__init__()
        self.train, self.validation, self.schedule = train, validation, schedule
        self.taken = (0, 0)

    def state_dict(self) -> dict[str, Any]:
        assert self.trainer is not None
        batches = self.trainer.fit_loop.epoch_loop.batch_progress.current.ready
        within = batches % int(self.trainer.num_training_batches)
        return {"epoch": self.trainer.current_epoch, "items": within * self.schedule.batch_size}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.taken = (state_dict["epoch"], state_dict["items"])

    def train_dataloader(self) -> DataLoader:
        assert self.trainer is not None
        order = EpochSampler(self.train, self.schedule.seed, self.taken)
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
    """Stops early, but not before the method's loss has taken its final form, nor before the learning rate falls."""

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if (
            isinstance(pl_module, MethodModule)
            and pl_module.progress >= RATE_FALLS
            and pl_module.stages.objective_is_final(pl_module.model, pl_module.progress)
        ):
            super().on_train_epoch_end(trainer, pl_module)


class _Course(L.Callback):
    """Ends a training after the step at hand if that is asked for, and knows whether a first step was taken.

    Parameters
    ----------
    last : the checkpoint in which the state is left; None = nowhere
    """

    def __init__(self, request: Request, last: Path | None) -> None:
        self.request, self.last, self.began = request, last, False

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        # Lightning has put its own handler in front of ours by now, whose way to end is to exit with success.
        if threading.current_thread() is threading.main_thread() and not trainer.received_sigterm:
            signal.signal(signal.SIGTERM, self.request.note)

    def on_train_epoch_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self.request.heed()  # the epoch before is on disk

    def on_train_batch_end(self, trainer: L.Trainer, *_: Any, **__: Any) -> None:
        self.began = True
        last = self._saves_in(trainer)
        if last is None:
            self.request.heed()
        elif self.request.signum is not None and not trainer.is_last_batch:
            trainer.save_checkpoint(last)
            self.request.heed()

    def on_validation_batch_end(self, trainer: L.Trainer, *_: Any, **__: Any) -> None:
        if self._saves_in(trainer) is None:
            self.request.heed()

    def _saves_in(self, trainer: L.Trainer) -> Path | None:
        """Where a state is left within an epoch; None = nowhere, so that nothing is gained by going on to its end."""
        return self.last if trainer.world_size == 1 else None


def _settings(module: MethodModule, schedule: Schedule) -> dict[str, Any]:
    """What must stay the same for a training to be resumed."""
    settings = {
        "method": module.method.name, **vars(module.method), "max_epochs": schedule.max_epochs,
        "batch_size": schedule.batch_size, "learning_rate": module.learning_rate, "seed": schedule.seed,
        "fold": schedule.fold, "precision": schedule.precision, "training items": len(module.items), **module.names,
        "version of annotruth": annotruth.__version__,
    }  # fmt: skip
    return json.loads(json.dumps(settings, default=to_json))


def _find_resumable(
    folder: Path | None, module: MethodModule, settings: dict[str, Any], identity: str | None
) -> tuple[Path, Checkpoint]:
    """The checkpoint to go on from; refuses to where nothing was begun, or something else was."""
    if folder is None:
        raise InputError("A training is resumed from its run_folder; give that.")
    path, found = find_last(folder)
    if identity is not None and found.run is not None and found.run != identity:
        raise InputError(
            f"{path} belongs to another run than {folder / RUN_FILE}. Put the run's own back, or start anew without "
            "resume; on the command line, with --overwrite."
        )
    before = found.annotruth
    names = {**before, **settings}
    changed = [f"{n} (then {before.get(n)}, now {settings.get(n)})" for n in names if before.get(n) != settings.get(n)]
    if changed:
        raise InputError(
            f"{path} belongs to a training with another {', another '.join(changed)}; resume with the same settings, "
            "or start anew without resume."
        )
    refuse_other_weights(found, module, path)
    return path, found


@contextmanager
def _plain_errors(folder: Path | None, course: _Course, begun: Path | None) -> Iterator[None]:
    """A request to end stays one, where Lightning would end the whole program; a failure says what is left."""
    try:
        yield
    except SystemExit as stop:
        if isinstance(stop.__context__, KeyboardInterrupt):
            raise stop.__context__ from None
        if isinstance(stop, SIGTERMException):
            raise Stopped(signal.SIGTERM) from None
        raise
    except AnnotruthError as error:
        raise type(error)(f"{error}{_what_is_left(folder)}") from error
    except OSError as error:
        raise AnnotruthError(
            f"{error.filename or folder or 'A file'}: could not be written: {error.strerror or error}."
            f"{_what_is_left(folder)}"
        ) from error
    except Exception as error:
        if course.request.signum is not None:  # other processes ended first, which this one noticed
            raise Stopped(course.request.signum) from error
        if begun is None or course.began or isinstance(error, (MemoryError, torch.OutOfMemoryError)):
            raise
        raise InputError(
            f"{begun} is damaged, or was written by another version: the training cannot go on from it "
            f"({type(error).__name__}: {error}). Start anew without resume; on the command line, with --overwrite."
        ) from error


def _what_is_left(folder: Path | None) -> str:
    last = None if folder is None else folder / FOLDER / LAST
    return f" The last good checkpoint is {last}." if last is not None and last.is_file() else ""


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
                "across ranks is zero", "dataloader is not resumable",
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
