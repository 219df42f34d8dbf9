"""Run a training: trainer, checkpoints, early stopping on noisy labels, logs, resume."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning as L
import pandas as pd
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint, RichProgressBar
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger

from annotruth.errors import InputError
from annotruth.training.data import Cases, EpochSampler, loader
from annotruth.training.module import History, Training


@dataclass(frozen=True)
class Schedule:
    """How long and how to train."""

    max_epochs: int
    batch_size: int
    patience: int
    seed: int
    accelerator: str = "auto"
    progress: bool = True


def run_training(
    module: Training, train: Cases, validation: Cases | None, schedule: Schedule, folder: Path | None, resume: bool
) -> pd.DataFrame:
    """Train, and leave in the module the weights with the best validation likelihood; give the losses by epoch.

    Parameters
    ----------
    validation : held-out items whose *noisy* labels decide when to stop; None = train to the last epoch
    folder : where checkpoints and logs go; None = nowhere
    resume : go on from the folder's last checkpoint
    """
    last = folder / "checkpoints" / "last.ckpt" if folder is not None else None
    if resume and (last is None or not last.is_file()):
        raise InputError(f"There is no checkpoint to resume from in {folder}; start anew without resume.")
    with tempfile.TemporaryDirectory(prefix="annotruth-") as scratch:
        monitor = "val_loss" if validation is not None else "train_loss"
        best = ModelCheckpoint(
            dirpath=(folder or Path(scratch)) / "checkpoints", filename="best", monitor=monitor, save_last=True,
            enable_version_counter=False,
        )  # fmt: skip
        history = History()
        callbacks: list[L.Callback] = [history, best]
        if validation is not None:
            callbacks.append(EarlyStopping(monitor, patience=schedule.patience, check_finite=False))
        if schedule.progress:
            callbacks.append(RichProgressBar(leave=False))
        with _quiet(), _repeatable(schedule.accelerator):
            trainer = L.Trainer(
                max_epochs=schedule.max_epochs,
                accelerator=schedule.accelerator,
                devices=1,
                callbacks=callbacks,
                logger=_loggers(folder),
                enable_progress_bar=schedule.progress,
                enable_model_summary=False,
                num_sanity_val_steps=0,
                log_every_n_steps=1,
                use_distributed_sampler=False,
            )
            trainer.fit(
                module,
                loader(train, schedule.batch_size, EpochSampler(train, schedule.seed)),
                None if validation is None else loader(validation, schedule.batch_size),
                ckpt_path=str(last) if resume else None,
                weights_only=True,
            )
        if best.best_model_path:
            state = torch.load(best.best_model_path, map_location="cpu", weights_only=True)["state_dict"]
            module.load_state_dict(state)
    return history.frame()


def _loggers(folder: Path | None) -> Any:
    if folder is None:
        return False
    return [CSVLogger(folder, name="logs", version=""), TensorBoardLogger(folder, name="logs", version="")]


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the trainer's own advice (hardware found, worker processes) off the user's screen."""
    log = logging.getLogger("lightning.pytorch")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            for words in ("does not have many workers", "exists and is not empty", "LeafSpec", "tip", "val_dataloader"):
                warnings.filterwarnings("ignore", f".*{words}.*")
            yield
    finally:
        log.setLevel(level)


@contextmanager
def _repeatable(accelerator: str) -> Iterator[None]:
    """The same seed gives the same bits on a CPU; other devices do their best. The user's own settings come back."""
    before, warn_only = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    torch.use_deterministic_algorithms(True, warn_only=accelerator not in ("cpu", "auto") or torch.cuda.is_available())
    try:
        with torch.random.fork_rng():
            yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warn_only)
