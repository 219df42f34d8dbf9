"""In how many bits networks compute while they are trained: 16 where the processor is quick at that, else 32."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from annotruth.validation import one_of

PRECISIONS = ("auto", "mixed", "full")
FULL = "full"

_precision: ContextVar[str] = ContextVar("precision", default=FULL)

R = TypeVar("R")


@contextmanager
def training_precision(name: str) -> Iterator[None]:
    """Let networks that know of it compute so while they are trained.

    Parameters
    ----------
    name : "mixed" = convolutions in bfloat16, weights and all else in 32 bits; "full" = everything in 32 bits; "auto" =
        mixed on devices that are quick at it
    """
    token = _precision.set(one_of(name, PRECISIONS, "precision"))
    try:
        yield
    finally:
        _precision.reset(token)


def mixed_in_training(forward: Callable[..., R]) -> Callable[..., R]:
    """Of a module's method that takes and gives tensors: it computes as :func:`training_precision` says.

    What it gives has 32 bits again: likelihoods, and products of probabilities, need them. In evaluation mode, and
    where no gradients are wanted, all has 32 bits.

    Examples
    --------
    >>> class Layer(nn.Linear):
    ...     @mixed_in_training
    ...     def forward(self, values):
    ...         return super().forward(values)
    >>> layer, ones = Layer(3, 1), torch.ones(1, 3)
    >>> with training_precision("mixed"):
    ...     mixed = layer(ones)
    >>> mixed.dtype, bool(mixed == layer(ones)), bool(torch.isclose(mixed, layer(ones), atol=0.02))
    (torch.float32, False, True)
    """

    @wraps(forward)
    def run(module: nn.Module, *inputs: Any, **options: Any) -> R:
        device = next(each for each in _tensors(inputs)).device.type
        if not (module.training and torch.is_grad_enabled() and _is_mixed(device)) or torch.is_autocast_enabled(device):
            return forward(module, *inputs, **options)
        with torch.autocast(device, dtype=torch.bfloat16):
            given = forward(module, *inputs, **options)
        return _in_32_bits(given)

    return run


def _is_mixed(device: str) -> bool:
    name = _precision.get()
    return is_quick(device) if name == "auto" else name == "mixed"


@lru_cache
def is_quick(device: str) -> bool:
    """Whether this machine's devices of a type ("cpu", "cuda" …) have instructions for bfloat16.

    On processors that have them, steps on images of 256×256 take half the time; on those that emulate them, longer.
    """
    if device == "cpu":
        return bool(getattr(torch.cpu, "_is_avx512_bf16_supported", bool)())
    return device == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def _tensors(values: Any) -> Iterator[Tensor]:
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, (list, tuple)):
        for each in values:
            yield from _tensors(each)


def _in_32_bits(given: Any) -> Any:
    if isinstance(given, (list, tuple)):
        return type(given)(_in_32_bits(each) for each in given)
    return given.float()
