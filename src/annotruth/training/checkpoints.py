"""Checkpoints that survive kills, full disks and moves: there whole or not at all, and all of one run.

RUN/checkpoints/last.ckpt       the state after the last whole epoch, or the step after which the training was stopped
RUN/checkpoints/previous.ckpt   the one before, should the last be damaged
RUN/checkpoints/best.ckpt       the best weights
"""

from __future__ import annotations

import io
import math
import os
import uuid
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.fabric.plugins import TorchCheckpointIO
from lightning.pytorch.callbacks import ModelCheckpoint
from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator

from annotruth.errors import AnnotruthWarning, InputError
from annotruth.io import atomic
from annotruth.io.writing import sync
from annotruth.training.storage import refuse_nonfinite

FOLDER, LAST, PREVIOUS, BEST = "checkpoints", "last.ckpt", "previous.ckpt", "best.ckpt"


class CheckpointWarning(AnnotruthWarning):
    """The last checkpoint is damaged, and the one before is used."""


class WholeCheckpoints(TorchCheckpointIO):
    """Writes beside the final name, waits for the disk, and renames; the last but one is kept."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        path, content = Path(path), io.BytesIO()
        torch.save(checkpoint, content)
        with atomic(path) as temporary:
            temporary.write_bytes(content.getbuffer())
            sync(temporary)
            if path.name == LAST and path.exists():
                os.replace(path, path.with_name(PREVIOUS))


class RunCheckpoint(ModelCheckpoint):
    """Knows its files by name alone, so that a run can be moved and another can take its place.

    The last state is kept after every epoch, and not only after those that were the best so far.
    """

    def _save_topk_checkpoint(self, trainer: L.Trainer, monitor_candidates: dict[str, torch.Tensor]) -> None:
        super()._save_topk_checkpoint(trainer, monitor_candidates)
        self._last_global_step_saved = trainer.global_step  # which Lightning asks before it keeps the last

    def state_dict(self) -> dict[str, Any]:
        return self._renamed(super().state_dict(), lambda name: Path(name).name) | {"dirpath": ""}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        assert self.dirpath is not None
        home = Path(self.dirpath)
        here = self._renamed(state_dict, lambda name: str(home / Path(name).name))
        super().load_state_dict(here | {"dirpath": self.dirpath})

    @staticmethod
    def _renamed(state: Mapping[str, Any], rename: Any) -> dict[str, Any]:
        paths = ("best_model_path", "kth_best_model_path", "last_model_path")
        names = {key: rename(state[key]) if state.get(key) else "" for key in paths}
        best = {rename(name): score for name, score in state.get("best_k_models", {}).items()}
        return {**state, **names, "best_k_models": best}


class RunFacts(L.Callback):
    """Puts into checkpoints which run they are of, and what it was asked for."""

    def __init__(self, identity: str, settings: dict[str, Any]) -> None:
        self.identity, self.settings = identity, settings

    def on_save_checkpoint(self, trainer: L.Trainer, pl_module: L.LightningModule, checkpoint: dict[str, Any]) -> None:
        checkpoint["annotruth"], checkpoint["run"] = self.settings, self.identity


def new_identity() -> str:
    """A name that no other run has."""
    return uuid.uuid4().hex


def remove_halves(folder: Path) -> None:
    """Remove what a killed training left half-written."""
    for path in (folder / FOLDER).glob(".annotruth-*"):
        path.unlink(missing_ok=True)


_NEEDED = {
    "optimizer_states": [{"state", "param_groups"}],
    "lr_schedulers": [{"last_epoch", "_step_count"}],
    "callbacks": [{"best_model_path", "best_model_score", "best_k_models"}, {"rows"}],
}
"""Keys that one of the states in a part of a checkpoint must have."""


class Checkpoint(BaseModel):
    """What must be in a checkpoint, and of which type; Lightning looks at the rest."""

    model_config = ConfigDict(arbitrary_types_allowed=True, strict=True, extra="allow")

    annotruth: dict[str, Any]
    run: str | None = None
    state_dict: dict[str, torch.Tensor]
    epoch: int
    global_step: int
    optimizer_states: list[dict[str, Any]]
    lr_schedulers: list[dict[str, Any]]
    callbacks: dict[str, dict[str, Any]]
    loops: dict[str, Any]

    @field_validator("optimizer_states", "lr_schedulers", "callbacks")
    @classmethod
    def _has_what_a_training_goes_on_from(cls, found: Any, info: ValidationInfo) -> Any:
        # Lightning takes what is there, and quietly begins anew with what is not.
        assert info.field_name is not None
        states = list(found.values()) if isinstance(found, dict) else found
        for keys in _NEEDED[info.field_name]:
            if not any(state.keys() >= keys for state in states):
                raise ValueError(f"there is no {' nor '.join(sorted(keys))}")
        return found


def find_last(folder: Path) -> tuple[Path, Checkpoint]:
    """Give the newest whole checkpoint of a run, and what it says."""
    tried: list[str] = []
    for name in (LAST, PREVIOUS):
        path = folder / FOLDER / name
        if not path.is_file():
            continue
        try:
            found = read_checkpoint(path)
        except InputError as error:
            tried.append(str(error))
            continue
        if tried:
            warnings.warn(f"{tried[0]} The training goes on from {path}.", CheckpointWarning, stacklevel=4)
        return path, found
    if tried:
        raise InputError(f"{tried[0]} Start anew without resume; on the command line, with --overwrite.")
    raise InputError(f"There is no checkpoint to resume from at {folder / FOLDER / LAST}; start anew without resume.")


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint; nothing in it is run, and nothing larger than the file is made of it."""
    try:
        size = path.stat().st_size
        _refuse_swelling(path, size)
        content = torch.load(path, map_location="cpu", weights_only=True)
        found = Checkpoint.model_validate(content)
        if any(math.prod(tensor.shape) * tensor.element_size() > size for tensor in _tensors(content)):
            raise ValueError("it speaks of more numbers than it holds")
    except ValidationError as error:
        what = ", ".join(sorted({str(detail["loc"][0]) for detail in error.errors() if detail["loc"]})) or "all of it"
        raise InputError(f"{path} is damaged or no checkpoint of annotruth (look at {what}).") from None
    except MemoryError:
        raise
    except Exception as error:  # whatever a damaged file makes its reader raise
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(f"{path} is damaged or no checkpoint of annotruth ({reason}).") from error
    return found


def refuse_other_weights(found: Checkpoint, module: torch.nn.Module, path: Path) -> None:
    """Refuse a checkpoint whose weights are not a network's, or not finite."""
    shapes, wanted = (
        {name: each.shape for name, each in part.items()} for part in (found.state_dict, module.state_dict())
    )
    if shapes != wanted:
        raise InputError(f"{path} is damaged or no checkpoint of annotruth (its weights are of another network).")
    refuse_nonfinite(found.state_dict, module, path)


def _refuse_swelling(path: Path, size: int) -> None:
    """Refuse an archive that says it unpacks to more than it is; ours are not compressed."""
    with zipfile.ZipFile(path) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > size:
            raise ValueError("it unpacks to more than it is")


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _tensors(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors(each)
