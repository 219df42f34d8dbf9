"""What is known of raters (years of experience, site …), as numbers that a model can take."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import nn

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError, shorten
from annotruth.nn import FeatureTable
from annotruth.validation import unique_names


@dataclass(frozen=True)
class RaterCode:
    """How features become columns: a number is standardised, a word has a column for each of its values.

    Attributes
    ----------
    numbers : by name, mean and deviation over the raters
    words : by name, the values that occur and how many of the raters have each, as a share

    Examples
    --------
    >>> masks = np.zeros((1, 3, 8, 8), dtype=np.uint8)
    >>> known = {"ann": {"years": 1, "site": "A"}, "bob": {"years": 3, "site": "B"}, "cy": {"years": 5, "site": "B"}}
    >>> code = RaterCode.of(Annotations.from_masks(masks, raters=list(known), rater_info=known), ["years", "site"])
    >>> code.columns, code.encode({"years": 3, "site": "A"}).round(2).tolist()
    (3, [0.0, 0.67, -0.67])
    """

    numbers: Mapping[str, tuple[float, float]]
    words: Mapping[str, Mapping[str, float]]

    @classmethod
    def of(cls, annotations: Annotations, names: Sequence[str]) -> RaterCode:
        """Learn the code from annotations whose ``rater_info`` has these features of every rater."""
        numbers, words = {}, {}
        for name in names:
            values = [
                _value(annotations.rater_info.get(rater, {}), name, f"Rater {rater}") for rater in annotations.raters
            ]
            amounts = [value for value in values if isinstance(value, float)]
            if len(amounts) == len(values):
                deviation = float(np.std(amounts))
                numbers[name] = (float(np.mean(amounts)), deviation if deviation > 0 else 1.0)
            elif amounts:
                raise InputError(f"The rater feature {name} is a number for some raters and a word for others.")
            else:
                words[name] = {str(value): values.count(value) / len(values) for value in sorted(set(values))}
        return cls(numbers, words)

    @property
    def columns(self) -> int:
        return len(self.numbers) + sum(len(values) for values in self.words.values())

    def encode(self, features: Mapping[str, Any], who: str = "The new rater") -> np.ndarray:
        """One rater's features as numbers (columns,), 0 where the rater is like the average."""
        strangers = sorted(set(features) - set(self.numbers) - set(self.words))
        if strangers:
            known = ", ".join([*self.numbers, *self.words])
            raise InputError(f"{who}: the model does not know {shorten(strangers)}; it knows {known}.")
        columns: list[float] = []
        for name, (mean, deviation) in self.numbers.items():
            value = _value(features, name, who)
            if not isinstance(value, float):
                raise InputError(f"{who}: {name} must be a number, not {value!r}.")
            columns.append((value - mean) / deviation)
        for name, shares in self.words.items():
            value = _value(features, name, who)
            if value not in shares:
                raise InputError(f"{who}: {name} is {value!r}, but the model knows only {shorten(list(shares))}.")
            columns += [float(value == each) - share for each, share in shares.items()]
        return np.array(columns)

    def encode_all(self, annotations: Annotations) -> np.ndarray:
        """All raters' features, (raters, columns)."""
        known = [*self.numbers, *self.words]
        info = annotations.rater_info
        rows = [self.encode({n: info[rater][n] for n in known}, f"Rater {rater}") for rater in annotations.raters]
        return np.stack(rows)


def feature_names(names: Sequence[str] | str) -> tuple[str, ...]:
    """Names given one by one or, as from the command line, in one word with commas.

    Examples
    --------
    >>> feature_names("years, site"), feature_names(["years"])
    (('years', 'site'), ('years',))
    """
    listed = names.split(",") if isinstance(names, str) else names
    if not isinstance(listed, Sequence) or not all(isinstance(name, str) and name.strip() for name in listed):
        raise InputError(f"rater_features are names of what is known of raters, such as 'years,site', not {names!r}.")
    return unique_names([name.strip() for name in listed], "rater feature")


def check_features(annotations: Annotations, names: Sequence[str]) -> None:
    """Refuse annotations that lack one of the features of any rater."""
    RaterCode.of(annotations, names)


def tell_features(annotators: nn.Module, annotations: Annotations, names: Sequence[str]) -> None:
    """Tell an annotator model with a ``FeatureTable`` its raters' features, and how many of the items each labelled."""
    table = getattr(annotators, "table", None)
    if isinstance(table, FeatureTable):
        columns = RaterCode.of(annotations, names).encode_all(annotations)
        table.know(torch.from_numpy(columns), torch.from_numpy(annotations.labelled().mean(axis=0)))


def _value(features: Mapping[str, Any], name: str, who: str) -> float | str:
    """A feature as a number or a word."""
    value = features.get(name)
    if isinstance(value, Real) and math.isfinite(value):
        return float(value)
    if isinstance(value, str) and value:
        return value
    found = "is missing" if value is None else f"is {value!r}, neither a number nor a word"
    raise InputError(
        f"{who}: the feature {name} {found}. Give it under raters in dataset.json (or rater_info=), or leave the "
        "feature out."
    )
