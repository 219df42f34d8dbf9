"""Methods by name and task, filled by a decorator; and how one is made, with options that are checked."""

from __future__ import annotations

from dataclasses import fields
from numbers import Integral, Real
from typing import Any, TypeVar

import torch

from annotruth.errors import InputError
from annotruth.methods.base import DataSpec, Method, Task
from annotruth.nn import check_annotator_model
from annotruth.validation import one_of

METHODS: dict[tuple[str, Task], type[Method[Any]]] = {}
"""Every method under its name and a task that it serves. Two forms may share a name, each serving its own task."""
TASKS: tuple[Task, ...] = ("masks", "labels")
WORDS: dict[Task, str] = {"masks": "masks", "labels": "label tables"}

C = TypeVar("C", bound=type[Method[Any]])


def register(method: C) -> C:
    """Make a method known by its name, for every task it serves; one whose annotator model lacks something is refused.

    It is refused where ``forward(images, raters=None)`` cannot be called: label tables name the raters of a batch.
    """
    for task in method.tasks:
        _check_annotators(method, task)
        METHODS[method.name, task] = method
    return method


def methods_for(task: Task) -> list[str]:
    """Names of the methods that serve a task.

    Examples
    --------
    >>> "pixel-cm" in methods_for("masks"), "pixel-cm" in methods_for("labels")
    (True, False)
    """
    return sorted(name for name, served in METHODS if served == task)


def make_method(name: str, task: Task, options: dict[str, Any] | None = None) -> Method[Any]:
    """A method by its name, with options; one that does not serve the task is refused.

    Examples
    --------
    >>> make_method("pixel-cm", "masks", {"trace_weight": 0.1}).trace_weight
    0.1
    """
    one_of(task, TASKS, "task")
    one_of(name, sorted({known for known, _ in METHODS}), "method")
    method = METHODS.get((name, task))
    if method is None:
        raise InputError(
            f"The method {name} does not learn from {WORDS[task]}. Those that do: {', '.join(methods_for(task))}."
        )
    known = {field.name: field for field in fields(method)}
    options = options or {}
    for option in options:
        if option not in known:
            listed = ", ".join(known) if known else "none"
            raise InputError(f"The method {name} has no option {option!r}. Its options: {listed}.")
        if options[option] is not None or known[option].default is not None:
            _check_kind(name, option, str(known[option].type), options[option])
    return method(**options)


def _check_annotators(method: type[Method[Any]], task: Task) -> None:
    spec = DataSpec(channels=1, raters=2, classes=2, dims=2 if task == "masks" else 0, task=task)
    with torch.random.fork_rng(devices=()), torch.device("meta"):  # looked at, never used: no memory, no chance
        annotators = method().annotator_model(spec)
    try:
        check_annotator_model(annotators)
    except InputError as error:
        raise InputError(f"The method {method.name} cannot be registered: {error}") from None


def _check_kind(name: str, option: str, declared: str, value: Any) -> None:
    kinds = {"int": (Integral, "a whole number"), "float": (Real, "a number"), "str": (str, "a word")}
    kind, word = kinds.get(declared.removesuffix(" | None"), (object, ""))
    if not isinstance(value, kind) or (isinstance(value, bool) and word):
        raise InputError(f"The option {option} of {name} must be {word}, not {value!r}.")
