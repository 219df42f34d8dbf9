"""What is done with one case of a folder: its votes counted, its truth estimated and written. Any process can do it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.em import confusion_from_counts
from annotruth.fusion.estimates import best_classes
from annotruth.fusion.folder.results import LABELS, PROBABILITIES
from annotruth.fusion.maximise import Estimate
from annotruth.fusion.patterns import Patterns
from annotruth.fusion.spatial import SpatialSTAPLE
from annotruth.fusion.stores import count_case
from annotruth.io import write_mask, write_probabilities


@dataclass(frozen=True)
class SetAside:
    """A case that could not be fused, or a file that is no case's, and why."""

    case: str | None
    reason: str


LocalTally = tuple[np.ndarray, bool]
"""Expected counts (raters, classes, classes) under a case's local truth, and whether its iterations settled."""


class FirstStage(SpatialSTAPLE):
    """Spatial STAPLE that estimates the raters as a whole, and leaves the cases' local estimates to others.

    Attributes
    ----------
    second_stage : makes these, starting from the estimate of the whole
    """

    second_stage: Callable[[Estimate], Iterable[LocalTally]]

    def _refine(self, items: Sequence[int], estimate: Estimate) -> Estimate:
        counts, settled = np.zeros_like(estimate.counts), True
        for found, done in self.second_stage(estimate):
            counts += found
            settled &= done
        confusion = confusion_from_counts(counts, self._pseudo_counts())
        return replace(estimate, confusion=confusion, counts=counts, converged=settled)


FirstStage.__name__ = SpatialSTAPLE.__name__  # warnings name it as the user does


@dataclass(frozen=True)
class CaseWork:
    """What is to be done with every case. Cases are Annotations of one item.

    Attributes
    ----------
    estimator : says how to fuse; not fitted
    gold : "truth" if the cases' true masks are to be used
    output : folder for labels and probabilities
    """

    estimator: FusionEstimator
    gold: str | None
    output: Path

    def count(self, case: Annotations) -> Patterns:
        """Count the votes."""
        return count_case(case, 0, self.gold)

    def fuse_alone(self, case: Annotations) -> tuple[Patterns, Estimate, list[Path]]:
        """Estimate the case on its own and write its truth; give its votes, the estimate and the files."""
        case = self._read(case)
        fused, patterns = clone(self.estimator), self.count(case)
        fused._take_in(case, self.gold, [patterns])
        fused._keep(fused._estimate_cases(first=0))
        return patterns, fused._cases[0], self._write(fused, case)

    def finish(self, whole: Estimate, case: Annotations) -> tuple[LocalTally | None, list[Path]]:
        """Write the case's truth, given what all cases taught; give what local estimates found, and the files."""
        case = self._read(case)
        fused, tally = clone(self.estimator), None
        fused._take_in(case, self.gold)
        fused._keep(whole)
        if isinstance(fused, SpatialSTAPLE):
            local = fused._refine([0], whole)
            tally = local.counts, local.converged
        return tally, self._write(fused, case)

    def _read(self, case: Annotations) -> Annotations:
        """Hold the case's masks in memory: they are counted and looked up without being read again."""
        return Annotations(
            kind="masks", items=case.items, raters=case.raters, classes=case.classes,
            masks=[case.item_masks(0, checked=False)],
            truth=None if self.gold is None else [case.item_truth(0)],
            sources=case.sources, pixel_values=case.pixel_values,
        )  # fmt: skip

    def _write(self, fused: FusionEstimator, case: Annotations) -> list[Path]:
        posterior = fused._pixel_posterior(0)
        if posterior is None:
            probabilities, labels = fused.predict_proba_item(0), fused.predict_item(0)
        else:  # smoothed and local estimates take a while: once is enough
            probabilities = posterior.reshape(-1, *case.shape(0))
            labels = best_classes(posterior.T).reshape(case.shape(0)).astype(np.uint8)
        fused_case = Annotations(
            kind="masks", items=case.items, raters=case.raters, classes=fused.classes_,
            masks=[case.item_masks(0, checked=False)],
            sources=case.sources, pixel_values=pixel_values(fused, case),
        )  # fmt: skip
        return [
            write_mask(self.output / LABELS, fused_case, 0, labels),
            write_probabilities(self.output / PROBABILITIES, fused_case, 0, probabilities),
        ]


def pixel_values(fused: FusionEstimator, annotations: Annotations) -> dict[int, int] | None:
    """The files' own pixel values, as far as the fused classes are theirs; else None, for class numbers."""
    return annotations.pixel_values if fused.classes_ == annotations.classes else None


def guarded(work: Callable[[Annotations], Any], case: Annotations) -> Any:
    """Do the work on a case, or say why it cannot be done: a bad case among many must not stop the others."""
    try:
        return work(case)
    except InputError as error:
        return SetAside(case.items[0], str(error))
    except MemoryError:
        return SetAside(case.items[0], f"Item {case.items[0]}: there is not enough memory to fuse it.")
