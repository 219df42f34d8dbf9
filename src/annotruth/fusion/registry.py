"""Estimators by name. Adding one is adding a file: a class under ``@register("its-name")``, in this folder.

Names are found without loading anything, so that help and ``import annotruth`` stay light.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from annotruth.errors import InputError

if TYPE_CHECKING:
    from annotruth.fusion.base import FusionEstimator

T = TypeVar("T", bound="type[FusionEstimator]")
METHODS: dict[str, type[FusionEstimator]] = {}
"""Estimators that have been loaded, by name."""
_REGISTERED = re.compile(r'^@register\("([\w-]+)"\)\s*\nclass (\w+)', re.MULTILINE)


class Listed(NamedTuple):
    """Where an estimator of this package is found."""

    module: str
    class_name: str


def register(name: str) -> Callable[[T], T]:
    """Make an estimator known by a name: to :func:`make_estimator`, the command line, and the names of ``annotruth``.

    Examples
    --------
    >>> from annotruth.fusion import MajorityVote
    >>> register("plurality")(MajorityVote)
    <class 'annotruth.fusion.majority.MajorityVote'>
    >>> make_estimator("plurality")
    MajorityVote()
    >>> del METHODS["plurality"]
    """

    def add(estimator: T) -> T:
        if METHODS.get(name, estimator).__qualname__ != estimator.__qualname__:
            raise ValueError(f"The name {name!r} is taken by {METHODS[name].__qualname__}.")
        METHODS[name] = estimator
        return estimator

    return add


@cache
def listed_estimators() -> dict[str, Listed]:
    """The estimators of this package by name, found in the text of its modules.

    Examples
    --------
    >>> listed_estimators()["staple"]
    Listed(module='annotruth.fusion.staple', class_name='STAPLE')
    """
    return find_registered(Path(__file__).parent, str(__package__))


def find_registered(folder: Path, package: str) -> dict[str, Listed]:
    """Find the classes under ``@register("name")`` in the modules of a folder, by name, without loading any."""
    found = {}
    for path in sorted(folder.glob("*.py")):
        for name, class_name in _REGISTERED.findall(path.read_text(encoding="utf-8")):
            found[name] = Listed(f"{package}.{path.stem}", class_name)
    return found


def method_names() -> tuple[str, ...]:
    """All names that :func:`make_estimator` takes.

    Examples
    --------
    >>> method_names()
    ('averaged', 'clustered-dawid-skene', 'collate', 'dawid-skene', 'glad', 'graph-cut-staple', ...)
    """
    return tuple(sorted({*listed_estimators(), *METHODS}))


def make_estimator(method: str, scope: str = "dataset", options: Mapping[str, Any] | None = None) -> FusionEstimator:
    """Make the estimator of a name; unknown names and options are refused with the known ones.

    Examples
    --------
    >>> make_estimator("staple", options={"max_iter": 50})
    STAPLE(max_iter=50)
    """
    from annotruth.validation import one_of  # which loads NumPy

    one_of(method, method_names(), "method")
    if method not in METHODS:
        import_module(listed_estimators()[method].module)
    made = METHODS[method]()
    one_of(scope, ("dataset", "case"), "scope")
    usual = {name: value for name, value in made.get_params().items() if name != "scope"}
    check_options(method, usual, options)
    return made.set_params(scope=scope, **(options or {}))


def check_options(method: str, usual: Mapping[str, Any], options: Mapping[str, Any] | None) -> None:
    """Refuse options that a method does not have, or that are of another kind than the usual values."""
    for name, value in (options or {}).items():
        if name not in usual:
            known = f"Its options: {', '.join(usual)}." if usual else "It has none."
            raise InputError(f"{method} has no option {name!r}. {known}")
        _refuse_other_kind(name, value, usual[name])


def _refuse_other_kind(name: str, value: Any, usual: Any) -> None:
    """Refuse a value of another kind than the usual one: any text would pass for True."""
    if isinstance(usual, bool):
        fits, kind = isinstance(value, bool), "true or false"
    elif isinstance(usual, (int, float)) and not isinstance(value, list):
        whole = isinstance(usual, int)
        fits = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
        kind = "a whole number" if whole else "a number"
    else:
        return
    if not fits:
        raise InputError(f"The option {name} must be {kind}, not {value!r}; usually it is {usual!r}.")
