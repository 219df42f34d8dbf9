"""What a comparison of methods found: scores by item, a table, and advice in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from annotruth.choosing.verdict import ALIKE, MIN_KNOWN, Verdict, choose, differences, in_words
from annotruth.errors import shorten


@dataclass(frozen=True)
class Comparison:
    """Methods, compared on items that their models did not learn from.

    Attributes
    ----------
    methods : names, in the order of the arrays below
    lengths : (methods, items) nats that it takes to tell all raters' labels of an item once it is predicted, the mean
        over seeds; less is better
    baseline : (items,) the same where nothing is predicted
    swapped : (methods,) whether raters mostly call the predicted classes by each other's names; without truth, such a
        method is not recommended
    agreement : (methods,) how far predictions of different seeds agree; None where there is one seed
    known : (methods, items) Dice, or 1 and 0 where a class is right and wrong, nan where the truth is not known; None =
        it is known nowhere
    seconds : (methods,) that a training takes
    warned : what trainings of each method warned of, in words
    notes : what else must be said, in words
    verdict : which method to take
    """

    kind: Literal["masks", "labels"]
    items: tuple[str, ...]
    groups: tuple[str, ...] | None
    methods: tuple[str, ...]
    folds: int
    seeds: int
    labelled: np.ndarray
    lengths: np.ndarray
    baseline: np.ndarray
    swapped: np.ndarray
    agreement: np.ndarray | None
    known: np.ndarray | None
    seconds: np.ndarray
    warned: dict[str, tuple[str, ...]]
    notes: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def score_name(self) -> str:
        """What predictions are scored by where the truth is known."""
        return "dice" if self.kind == "masks" else "accuracy"

    @property
    def digits(self) -> int:
        """Decimals of nats that are worth telling: few answers take few nats."""
        return 1 if self.kind == "masks" else 3

    @property
    def with_truth(self) -> np.ndarray:
        """Items of which the truth is known: bool (items,)."""
        return np.zeros(len(self.items), dtype=bool) if self.known is None else np.isfinite(self.known[0])

    def length_differences(self) -> tuple[np.ndarray, np.ndarray]:
        """Nats per item, [a, b] = a's less b's, and their standard errors: two arrays (methods, methods)."""
        return differences(self.lengths, self.groups, self.labelled)

    def known_differences(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The same of the scores by known truth; None where there is none."""
        return None if self.known is None else differences(self.known, self.groups, self.with_truth)

    @property
    def verdict(self) -> Verdict:
        known, counted = self.known_differences(), self.with_truth
        units = np.asarray(self.items if self.groups is None else self.groups)[counted]
        if known is not None and len(np.unique(units)) >= MIN_KNOWN:
            return choose(self.methods, -known[0], known[1], list(self.seconds), "truth")
        return self._by_labels()

    def _by_labels(self) -> Verdict:
        """The verdict without truth: of methods that call classes as raters do, where there are any."""
        mean, error = self.length_differences()
        allowed = np.flatnonzero(~self.swapped) if not self.swapped.all() else np.arange(len(self.methods))
        part = np.ix_(allowed, allowed)
        return choose([self.methods[one] for one in allowed], mean[part], error[part], list(self.seconds[allowed]))

    @property
    def recommended(self) -> str:
        """The method to take."""
        return self.verdict.recommended

    @property
    def advice(self) -> list[str]:
        """Which method to take and how sure that is, in sentences."""
        verdict = self.verdict
        unit = {"labels": "nats per item", "truth": "Dice" if self.kind == "masks" else "of the items"}[verdict.by]
        return [
            *in_words(verdict, unit, self.digits if verdict.by == "labels" else 4),
            *self._doubts(verdict),
            *self.notes,
        ]

    def _doubts(self, verdict: Verdict) -> Iterator[str]:
        by_labels = self._by_labels()
        position = self.methods.index(by_labels.best)
        both = np.stack([self.lengths[position], self.baseline])
        mean, error = differences(both, self.groups, self.labelled)
        if -mean[0, 1] <= ALIKE * error[0, 1]:
            yield (
                "Careful: no method's predictions make the raters' labels easier to tell than no predictions at all. "
                "Train longer, or give more items."
            )
        mean, error = self.length_differences()
        rivals = self.swapped & (mean[:, position] <= ALIKE * error[:, position])
        if rivals.any():
            names = shorten([self.methods[one] for one in np.flatnonzero(rivals)])
            yield (
                f"Careful: most labels call the classes that {names} predicted by other names, as if classes were "
                "swapped. Raters who err alike may cause this: look at some items."
            )
        count = int(self.with_truth.sum())
        if verdict.by == "truth":
            told = f"This is by the known truth of {count} items"
            yield (
                f"{told}, and without it everybody's labels would say the same."
                if verdict.recommended == by_labels.recommended
                else f"{told}; without it, everybody's labels would have spoken for {by_labels.recommended}."
            )
        elif count:
            yield f"The truth is known of {count} {'item' if count == 1 else 'items'}, too few to decide by."
        if self.seeds == 1:
            yield "Each training was done once, so that the part of chance in it is not counted; two seeds show it."
        warned = self.warned.get(verdict.recommended)
        if warned:
            yield f"Trainings of {verdict.recommended} warned: {warned[0]}"

    @property
    def table(self) -> pd.DataFrame:
        """A row for each method, the best first."""
        verdict = self.verdict
        best = self.methods.index(self._by_labels().best)
        mean, error = self.length_differences()
        rows: dict[str, Any] = {
            "method": self.methods,
            "message": self.lengths[:, self.labelled].mean(axis=1),
            "behind": mean[:, best],
            "behind_error": error[:, best],
            "shorter": 1 - self.lengths.sum(axis=1) / self.baseline.sum(),
        }
        if self.agreement is not None:
            rows["agreement"] = self.agreement
        if self.known is not None:
            rows[self.score_name] = np.nanmean(self.known, axis=1)
        rows["seconds"] = self.seconds
        rows["warned"] = [len(self.warned.get(name, ())) for name in self.methods]
        rows["swapped"] = self.swapped
        rows["alike"] = [name in verdict.alike for name in self.methods]
        rows["recommended"] = [name == verdict.recommended for name in self.methods]
        by, up = ([self.score_name], False) if verdict.by == "truth" else (["swapped", "message"], True)
        return pd.DataFrame(rows).sort_values(by, ascending=up, ignore_index=True, kind="stable")
