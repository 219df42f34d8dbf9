"""Models on disk: one file, safetensors with a JSON head. Nothing in it can run code."""

from __future__ import annotations

import json
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

import annotruth
from annotruth.errors import InputError
from annotruth.io import atomic
from annotruth.io.reading import read_json
from annotruth.io.writing import sync

FORMAT = 2
"""Files of annotruth 0.1 have format 1."""
RUN_FILE, MODEL_FILE = "run.json", "model.annotruth"
"""Names in a run's folder: of what was asked for, and of the model."""


def run_identity(folder: Path) -> str | None:
    """The name that a run's files share, as ``run.json`` has it; None where a training has no such file."""
    path = folder / RUN_FILE
    asked = read_json(path) if path.is_file() else {}
    identity = asked.get("id") if isinstance(asked, dict) else None
    return identity if isinstance(identity, str) else None


def write_model(path: Path, kind: str, facts: dict[str, Any], state: dict[str, torch.Tensor]) -> Path:
    """Write weights and facts to a file, all or nothing."""
    head = {"annotruth": annotruth.__version__, "format": FORMAT, "kind": kind, **facts}
    # Copies, because safetensors refuses weights that share memory, as two layers of a network may.
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in state.items()}
    with atomic(path) as temporary:
        save_file(tensors, temporary, metadata={"annotruth": json.dumps(head, default=to_json)})
        sync(temporary)
    return path


def to_json(value: Any) -> Any:
    """Numbers and arrays of NumPy, records and paths as Python's own plain values."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return str(value) if isinstance(value, Path) else value.tolist()


def read_facts(path: Path) -> dict[str, Any]:
    """Read a model file's head."""
    if not path.is_file():
        raise InputError(
            f"There is no model {path}: a run has one when its training is done. `annotruth train --resume` goes on "
            "with a run that was cut off."
        )
    try:
        with safe_open(path, framework="pt") as file:
            head = json.loads((file.metadata() or {})["annotruth"])
    except (SafetensorError, KeyError, json.JSONDecodeError) as error:
        raise InputError(f"{path} is not a model of annotruth, or it is damaged ({error}).") from error
    if head["format"] > FORMAT:
        raise InputError(f"{path} was written by annotruth {head['annotruth']}, which is newer than this one; upgrade.")
    return head


def read_model(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Read a model file's head and weights."""
    head = read_facts(path)
    if head["kind"] != kind:
        raise InputError(f"{path} holds a {head['kind']}, not a {kind}.")
    with safe_open(path, framework="pt") as file:
        return head, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
