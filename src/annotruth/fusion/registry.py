"""Estimators by name, with options as a command line gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.base import clone

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.dawid_skene import DawidSkene
from annotruth.fusion.majority import MajorityVote, MeanLabel
from annotruth.fusion.spatial import SpatialSTAPLE
from annotruth.fusion.staple import STAPLE
from annotruth.validation import one_of

METHODS: dict[str, type[FusionEstimator]] = {
    "majority": MajorityVote,
    "mean": MeanLabel,
    "staple": STAPLE,
    "spatial-staple": SpatialSTAPLE,
    "dawid-skene": DawidSkene,
}


def make_estimator(method: str, scope: str = "dataset", options: Mapping[str, Any] | None = None) -> FusionEstimator:
    """Make the estimator of a name; unknown names and options are refused with the known ones.

    Examples
    --------
    >>> make_estimator("staple", options={"max_iter": 50})
    STAPLE(max_iter=50)
    """
    made = METHODS[one_of(method, tuple(METHODS), "method")]()
    one_of(scope, ("dataset", "case"), "scope")
    usual = {name: value for name, value in made.get_params().items() if name != "scope"}
    for name, value in (options or {}).items():
        if name not in usual:
            known = f"Its options: {', '.join(usual)}." if usual else "It has none."
            raise InputError(f"{method} has no option {name!r}. {known}")
        _refuse_other_kind(name, value, usual[name])
    return made.set_params(scope=scope, **(options or {}))


def check_settings(estimator: FusionEstimator, annotations: Annotations) -> None:
    """Refuse settings that do not go with the annotations, before any label is read.

    Examples
    --------
    >>> import numpy as np
    >>> check_settings(STAPLE(), Annotations.from_masks(np.zeros((1, 3, 4, 4), dtype=np.uint8)))
    """
    trial = clone(estimator)
    try:
        trial._check(annotations)
        trial.raters_, (trial.classes_, _) = annotations.raters, trial._classes(annotations.classes)
        trial._pseudo_counts()
    except InputError:
        raise
    except (TypeError, ValueError, IndexError) as error:
        raise InputError(f"An option of {estimator!r} has an unfit value: {error}.") from error


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
