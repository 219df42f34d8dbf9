"""Models on disk: one file, safetensors with a JSON head. Nothing in it can run code.

What a file says is checked before it is used: types by a schema, sizes against what the file holds, weights for NaN.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sized
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import torch
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, PositiveFloat, ValidationError, model_validator
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

import annotruth
from annotruth.errors import InputError
from annotruth.io import atomic
from annotruth.io.reading import parse_json, read_json
from annotruth.io.writing import sync

FORMAT = 2
"""Files of annotruth 0.1 have format 1."""
_RUNNING = ("running_mean", "running_var")  # what batch normalisation keeps beside its weights
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
            text = (file.metadata() or {})["annotruth"]
        head = parse_json(text, "its head")
        _Beginning.model_validate(head)
    except ValidationError as error:
        raise InputError(f"{path} is not a model of annotruth, or it is damaged (look at {_wrong(error)}).") from None
    except (SafetensorError, KeyError, InputError, OSError) as error:
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


# -- what a model's file may say --------------------------------------------------------------------------------


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")


class _Beginning(_Strict):
    annotruth: str
    format: Annotated[int, Field(ge=1)]
    kind: str


class _Shape(_Strict):
    channels: Annotated[int, Field(ge=1)]
    raters: Annotated[int, Field(ge=0)]
    classes: Annotated[int, Field(ge=1)]
    dims: Annotated[int, Field(ge=0, le=3)]
    task: Literal["masks", "labels"] = "masks"
    rater_columns: Annotated[int, Field(ge=0)] = 0
    network: dict[str, Any] | None = None


class _Standard(_Strict):
    mean: list[FiniteFloat]
    deviation: list[Annotated[PositiveFloat, FiniteFloat]]
    clip: list[Annotated[list[FiniteFloat], Field(min_length=2, max_length=2)]] | None = None


class ModelHead(_Beginning):
    """What the head of every model's file must say, and of which type; an estimator adds facts of its own."""

    params: dict[str, Any]
    options: dict[str, Any] = {}
    own_network: bool
    classes: list[str | bool | int | float]
    raters: list[str]
    shape: _Shape
    batch_size: Annotated[int, Field(ge=1)]
    max_epochs: Annotated[int, Field(ge=1)]
    standard: _Standard
    history: dict[str, list[float | None]]
    warnings: list[str]
    pixel_values: dict[str, int] | None = None
    size: list[Annotated[int, Field(ge=1)]] = []

    @model_validator(mode="after")
    def _counts_agree(self) -> Self:
        channels = self.shape.channels
        counts: dict[str, tuple[Sized, int]] = {
            "classes": (self.classes, self.shape.classes), "raters": (self.raters, self.shape.raters),
            "mean": (self.standard.mean, channels), "deviation": (self.standard.deviation, channels),
        }  # fmt: skip
        if self.standard.clip is not None:
            counts["clip"] = (self.standard.clip, channels)
        for name, (listed, count) in counts.items():
            if len(listed) != count:
                raise ValueError(f"{name} has {len(listed)} entries instead of {count}")
        return self


def check_head(head: dict[str, Any], path: str | Path) -> None:
    """Refuse a head that does not say what a model's must."""
    try:
        ModelHead.model_validate(head)
    except ValidationError as error:
        raise InputError(f"{path} is damaged, or was changed by hand (look at {_wrong(error)}).") from None


def _wrong(error: ValidationError) -> str:
    """Where the first troubles are."""
    details = error.errors(include_url=False, include_context=False, include_input=False)
    return ", ".join(dict.fromkeys(".".join(map(str, each["loc"][:3])) or each["msg"] for each in details[:3]))


@contextmanager
def making_model(path: str | Path) -> Iterator[None]:
    """Name the file in whatever goes wrong while a model is made of what it says."""
    try:
        yield
    except InputError as error:
        raise InputError(str(error) if str(path) in str(error) else f"{path}: {error}") from error
    except MemoryError:
        raise
    except Exception as error:  # the parts of a head that contradict each other can raise anything
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{path} is damaged, or was changed by hand ({type(error).__name__}: {reason}).") from error


def outline(build: Callable[[], torch.nn.Module], n_tensors: int) -> torch.nn.Module | None:
    """Build a network without memory, to see whether a file's weights are its; None where it cannot be built so.

    One that grows far beyond ``n_tensors``, which the file holds, is refused while it grows.

    Examples
    --------
    >>> outline(lambda: torch.nn.Linear(10**6, 10**6), 2).weight.shape
    torch.Size([1000000, 1000000])
    """
    made, most = 0, 1000 + 200 * n_tensors

    def count(module: torch.nn.Module, name: str, part: Any) -> None:
        nonlocal made
        made += 1
        if made > most:
            raise InputError(f"its head describes a network of more than {most} parts for {n_tensors} weights")

    hook = torch.nn.modules.module.register_module_module_registration_hook(count)
    try:
        with torch.device("meta"):
            return build()
    except (NotImplementedError, RuntimeError):  # MONAI's may look at their numbers while they are made
        return None
    finally:
        hook.remove()


def refuse_nonfinite(state: Mapping[str, torch.Tensor], module: torch.nn.Module, path: str | Path) -> None:
    """Refuse weights that are NaN or infinite: what they would predict means nothing.

    What a method notes beside them ("from step ∞ on", "not yet known") may be so.

    Examples
    --------
    >>> network = torch.nn.Linear(1, 1)
    >>> refuse_nonfinite({"bias": torch.tensor([float("nan")])}, network, "m.annotruth")
    Traceback (most recent call last):
    annotruth.errors.InputError: m.annotruth is damaged: the weights bias hold values that are NaN or infinite.
    """
    weights = {name for name, _ in module.named_parameters()}
    for name, tensor in state.items():
        if (name in weights or name.endswith(_RUNNING)) and not bool(torch.isfinite(tensor).all()):
            raise InputError(f"{path} is damaged: the weights {name} hold values that are NaN or infinite.")
