"""A grid of random crowds: is a method ever behind the vote, and does it say so when it fails?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from annotruth.choosing import compare
from annotruth.data.annotations import Annotations
from annotruth.experiments.core.columns import DICE
from annotruth.experiments.core.experiment import Experiment, Row, Table
from annotruth.experiments.core.findings import Finding, at_least, by_setting, reached
from annotruth.experiments.core.task import Scale
from annotruth.experiments.data.crowds import crowd_task
from annotruth.experiments.data.digits import digits_task
from annotruth.methods import Task
from annotruth.training import Segmenter

SETTINGS = {"with a faithful rater": {"faithful": True}, "with none": {"faithful": False}}
CHOOSING_SEEDS, SEEDS = tuple(range(100, 104)), tuple(range(200, 224))
"""Crowds on which settings may be chosen, and those that are reported."""
FAILURE = 0.05
"""By so much below clean labels, a result should come with a warning."""


def near_clean(method: str, targets: Sequence[tuple[float, float]] = ()) -> Finding:
    """How far below clean labels a method ends: on average, at worst, and in which share of crowds within some points.

    ``targets`` are points as a share of one, and the share of crowds that should be within them.
    """

    def find(table: Table) -> list[str]:
        sentences = []
        for setting, rows in by_setting(table).items():
            gaps = _gaps(rows["clean"]["dice"]["each"], rows[method]["dice"]["each"])
            within = [
                f"within {100 * points:g} of it in {_share(gaps, points):.0%} (target: {share:.0%}, "
                f"{reached(_share(gaps, points) >= share)})"
                for points, share in targets
            ]
            sentences.append(
                f"{setting}: {method} is {100 * sum(gaps) / len(gaps):.1f} points below clean on average, "
                f"{100 * max(gaps):.1f} at worst{''.join(f', {each}' for each in within)}."
            )
        return sentences

    return find


def not_behind(method: str, others: Sequence[str], most: float, share: float, worst: float) -> Finding:
    """In which share of all crowds a method is behind the best of some others by more than so many points."""

    def find(table: Table) -> list[str]:
        behind: list[float] = []
        for rows in by_setting(table).values():
            best = [max(scores) for scores in zip(*(rows[name]["dice"]["each"] for name in others))]
            behind += _gaps(best, rows[method]["dice"]["each"])
        missed = 1 - _share(behind, most)
        furthest = max(behind)
        return [
            f"{method} is behind the better of {' and '.join(others)} by more than {100 * most:g} points in "
            f"{missed:.0%} of all crowds (target: at most {share:.0%}, {reached(missed <= share)}), by "
            f"{100 * furthest:.1f} at worst (target: at most {100 * worst:g}, {reached(furthest <= worst)})."
        ]

    return find


def warns_of_failure(method: str, target: float = 0.9) -> Finding:
    """How often a warning is right, and how often a failure is warned of."""

    def find(table: Table) -> list[str]:
        right = warned = failed = 0
        for rows in by_setting(table).values():
            row = rows[method]
            warns = [seed in row["warned_seeds"] for seed in row["seeds"]]
            fails = [gap > FAILURE for gap in _gaps(rows["clean"]["dice"]["each"], row["dice"]["each"])]
            right += sum(one and other for one, other in zip(warns, fails))
            warned, failed = warned + sum(warns), failed + sum(fails)
        return [
            f"{method} ends more than {100 * FAILURE:g} points below clean in {failed} crowds and warns of {right} of "
            f"them; {warned - right} of its {warned} warnings are of other crowds (target: {target:.0%} of both, "
            f"{reached(right >= target * failed and right >= target * warned)})."
        ]

    return find


def regret(method: str, others: Sequence[str], target: float) -> Finding:
    """How far a method that chooses between others is below the best of these, on average over all crowds."""

    def find(table: Table) -> list[str]:
        lost: list[float] = []
        for rows in by_setting(table).values():
            best = [max(scores) for scores in zip(*(rows[name]["dice"]["each"] for name in others))]
            lost += _gaps(best, rows[method]["dice"]["each"])
        mean = sum(lost) / len(lost)
        return [
            f"{method} is {100 * mean:.2f} points below the best of {', '.join(others)} on average (target: at most "
            f"{100 * target:g}, {reached(mean <= target)}), {100 * max(lost):.1f} at worst."
        ]

    return find


def _gaps(higher: Sequence[float], lower: Sequence[float]) -> list[float]:
    return [one - other for one, other in zip(higher, lower)]


def _share(gaps: Sequence[float], most: float) -> float:
    return sum(gap <= most for gap in gaps) / len(gaps)


CLEAN, MAJORITY, STAPLE, PIXEL_CM = (Row(method) for method in ("clean", "majority", "staple", "pixel-cm"))
OTHERS = (
    Row("mean"),
    Row("pixel-cm", {"warmup": "trace"}, name="pixel-cm as published"),
    Row("pixel-cm", {"warmup": 0.4}, name="pixel-cm by consensus"),
    Row("global-cm"),
)
FINDINGS = (
    near_clean("pixel-cm", [(0.01, 0.7), (0.02, 0.9)]),
    not_behind("pixel-cm", ("majority", "staple"), most=0.01, share=0.03, worst=0.03),
    warns_of_failure("pixel-cm"),
    near_clean("majority"),
    near_clean("staple"),
)
NOTES = (
    "Each seed is another crowd of three to seven simulated raters, another kind and number of pictures, and another "
    "number of labels for each picture; lines above tell which. All rows learn from the same pictures; clean learns "
    "the truth.",
    "Method, rules and constants were chosen on other crowds than those reported, but for one rule: that a labelling "
    "whose classes have changed places is none came from crowd 218 with a faithful rater.",
)

CROWDS = Experiment(
    name="crowds",
    title="A grid of random crowds: never behind the vote?",
    task=crowd_task,
    settings=SETTINGS,
    rows=(CLEAN, MAJORITY, STAPLE, PIXEL_CM),
    metrics=(DICE,),
    full=Scale({"train": 500, "test": 200}),
    quick=Scale({"train": 70, "test": 50}, {"max_epochs": 4}),
    seeds=SEEDS,
    findings=FINDINGS,
    notes=NOTES,
)
OTHER_METHODS = replace(
    CROWDS,
    name="crowds-others",
    title="Other methods on the grid of random crowds",
    rows=(CLEAN, *OTHERS),
    findings=tuple(near_clean(row.label) for row in OTHERS),
)
SMALL = replace(
    CROWDS,
    name="crowds-small",
    title="A small grid of random crowds, for daily work",
    full=Scale({"train": 70, "test": 100}, {"max_epochs": 20}),
    seeds=CHOOSING_SEEDS,
    findings=FINDINGS[:3],
    notes=NOTES[:1],
)

COMPARED = ("majority", "staple", "pixel-cm")
FOLDS, SHORT = 2, 8


@dataclass(frozen=True)
class Choosing:
    """A segmenter whose method may be chosen by cross-validation first, in short trainings."""

    task: ClassVar[Task] = "masks"

    among: tuple[str, ...] = ()
    arguments: tuple[tuple[str, Any], ...] = ()

    def __call__(self, *, among: Sequence[str] = (), **arguments: Any) -> Choosing:
        return Choosing(tuple(among), tuple(arguments.items()))

    def fit(self, annotations: Annotations) -> Segmenter:
        """Learn as ``Segmenter`` does, by the method that was chosen if there is a choice."""
        arguments = dict(self.arguments)
        if self.among:
            found = compare(annotations, [*self.among], folds=FOLDS, max_epochs=SHORT)
            arguments["method"] = found.recommended
        return Segmenter(**arguments).fit(annotations)


AUTO = replace(
    CROWDS,
    name="crowds-auto",
    title="What a comparison by cross-validation chooses on the grid of random crowds",
    rows=(CLEAN, MAJORITY, STAPLE, PIXEL_CM, Row("pixel-cm", name="auto", training={"among": [*COMPARED]})),
    quick=Scale({"train": 70, "test": 50}, {"max_epochs": 2}),
    seeds=SEEDS[:12],
    learner=Choosing(),
    findings=(regret("auto", COMPARED, target=0.005), near_clean("auto"), near_clean("pixel-cm")),
    notes=(
        *NOTES[:1],
        f"auto compares {', '.join(COMPARED)} without the truth, in {FOLDS} folds and trainings of {SHORT} epochs, and "
        "then trains the method that is recommended, as `annotruth compare` and `train` do; its seconds are those of "
        "all these trainings.",
    ),
)

SIZES = {70: 0.915, 300: 0.925}
"""Digits to learn from, and the Dice that pixel-cm should reach with so many."""
OUTVOTING = {
    f"{', '.join(raters)}; {size} digits": {"raters": raters, "keep": "all"}
    for raters in (
        ("over", "under", "wrong", "good"), ("over", "wrong", "good"), ("over", "over", "wrong", "good", "under"),
    )
    for size in SIZES
}  # fmt: skip
_SIZE_OF = {setting: int(setting.split()[-2]) for setting in OUTVOTING}
OUTVOTED = Experiment(
    name="crowds-outvoted",
    title="Three crowds whose errors are alike, and one who draws the truth",
    task=digits_task,
    settings=OUTVOTING,
    rows=(CLEAN, MAJORITY, STAPLE, PIXEL_CM),
    metrics=(DICE,),
    full=Scale({"test": 200}, settings={name: Scale({"train": size}) for name, size in _SIZE_OF.items()}),
    quick=Scale({"train": 40, "test": 20}, {"max_epochs": 2}),
    findings=(at_least("pixel-cm", "dice", {name: SIZES[size] for name, size in _SIZE_OF.items()}),),
    notes=("All methods have their defaults. The good rater draws the truth.",),
)
