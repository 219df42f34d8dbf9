"""The columns of MrPrism's tables: soft Dice after each recurrence, of fused masks, and against each rater."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.experiments.core.experiment import Metric, Table, Trained
from annotruth.experiments.core.findings import by_setting, points, reached
from annotruth.fusion import STAPLE, MajorityVote
from annotruth.methods.targets import quietly
from annotruth.metrics import dice, soft_dice
from annotruth.validation import MISSING_PIXEL

RECURRENCES = (0, 1, 2, 3)


def soft_dice_of(probabilities: np.ndarray, held_out: Annotations) -> float:
    """Soft Dice over thresholds of the foreground's probability (items, classes, *spatial) against the reference."""
    truth = np.where(held_out.truth == MISSING_PIXEL, np.nan, (held_out.truth > 0).astype(float))
    return soft_dice(1 - probabilities[:, 0], truth)


def _soft_dice(trained: Trained) -> float:
    return soft_dice_of(trained.model.predict_proba(trained.task.held_out.images), trained.task.held_out)


def _after(recurrence: int, trained: Trained) -> float | None:
    if trained.model.method != "mrprism":
        return None
    held_out = trained.task.held_out
    return soft_dice_of(trained.model.predict_proba(held_out.images, recurrence=recurrence), held_out)


def _fused(trained: Trained) -> float | None:
    if not trained.model.method_.learns_annotators:
        return None
    held_out = trained.task.held_out
    return dice(trained.model.fuse(held_out).argmax(axis=1), held_out.truth)


def _fused_by(estimators: Sequence[STAPLE | MajorityVote], trained: Trained) -> float | None:
    """The best Dice of some estimators; told once in a table, in the row of mrprism."""
    if trained.model.method != "mrprism":
        return None
    held_out = trained.task.held_out
    with quietly():
        return max(dice(np.asarray(estimator.fit(held_out).predict()), held_out.truth) for estimator in estimators)


def _against(rater: int, trained: Trained) -> float:
    held_out = trained.task.held_out
    return dice(trained.model.predict(held_out.images), held_out.masks[:, rater])


SOFT_DICE = Metric("soft_dice", "soft Dice", _soft_dice)
AFTER = tuple(
    Metric(f"recurrence_{i}", f"after recurrence {i}", partial(_after, i), series="soft Dice after each recurrence")
    for i in RECURRENCES
)
FUSED = Metric("fused", "Dice of fused masks", _fused)
STAPLED = Metric(
    "staple", "by STAPLE", partial(_fused_by, (STAPLE(scope="dataset"), STAPLE(scope="case"))), better="neither"
)
VOTED = Metric("vote", "by majority", partial(_fused_by, (MajorityVote(),)), better="neither")


def against_raters(names: tuple[str, ...]) -> tuple[Metric, ...]:
    """Dice of the estimate with each rater's own masks, as in figure 4 of Wu et al."""
    return tuple(
        Metric(f"rater_{number}", f"with {name}", partial(_against, number), better="neither", form=".3f")
        for number, name in enumerate(names)
    )


def rises(least: float) -> Callable[[Table], list[str]]:
    """Does soft Dice rise from recurrence 0 to 2, by so much at least?"""

    def find(table: Table) -> list[str]:
        sentences = []
        for setting, rows in by_setting(table).items():
            gain = rows["mrprism"]["recurrence_2"]["mean"] - rows["mrprism"]["recurrence_0"]["mean"]
            target = f"target: at least {points(least)}, {reached(gain >= least and gain > 0)}"
            sentences.append(
                f"{setting}: from recurrence 0 to 2, soft Dice of mrprism changes by {points(gain)} ({target})."
            )
        return sentences

    return find


def fuses_better(least: float | None) -> Callable[[Table], list[str]]:
    """Does DivP's fusion beat STAPLE's, the better of its two scopes?"""

    def find(table: Table) -> list[str]:
        sentences = []
        for setting, rows in by_setting(table).items():
            ours, theirs, vote = (rows["mrprism"][name]["mean"] for name in ("fused", "staple", "vote"))
            target = (
                ""
                if least is None
                else f" (target: at least {points(least)} above STAPLE, {reached(ours - theirs >= least)})"
            )
            others = {name: row["fused"]["mean"] for name, row in rows.items() if "fused" in row and name != "mrprism"}
            best = max(others, key=others.__getitem__, default=None)
            sentences.append(
                f"{setting}: masks fused by mrprism have Dice {ours:.4f}, by STAPLE {theirs:.4f}, "
                f"by majority {vote:.4f}{target}"
                + (f"; by the best of the other methods, {best}, {others[best]:.4f}." if best else ".")
            )
        return sentences

    return find
