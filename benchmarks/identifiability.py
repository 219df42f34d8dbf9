"""How often the identifiability warning is right, on random crowds: ``python -m benchmarks.identifiability``."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

from annotruth import STAPLE, Classifier, MajorityVote
from annotruth.errors import AnnotruthWarning, IdentifiabilityWarning
from annotruth.experiments.data.crowds import random_crowd
from annotruth.experiments.data.stand_in import shapes
from annotruth.fusion import DawidSkene
from annotruth.metrics import confusion_error, dice
from annotruth.simulate import MaskRater, noisy_digits, simulate_masks
from benchmarks.measure import ROOT, Row
from benchmarks.random_crowds import REPORTED, Crowd, draw_crowd
from benchmarks.results import report

TARGET = 0.95
LOST_ACCURACY = 0.05
"""By so much less accuracy than is possible, an estimate is wrong."""
LEAST_ACCURACY = 0.65
"""An estimate that is right on fewer items than this is wrong, whether or not more was possible."""
WRONG_MATRICES = 0.02
"""A CM error above this is wrong: two entries of a row off by 0.1."""
LEAST_DICE = 0.9
"""Fused masks below this are wrong."""
LOST_DICE = 0.05
"""With images, so are those that are so much further from the truth than what somebody drew, or the vote."""
WAYS = ("over", "under", "wrong")


@dataclass(frozen=True)
class Judged:
    """Whether an estimate is wrong, a warning was due, and came; and whether labels alone can tell that it was due."""

    wrong: bool
    due: bool
    came: bool
    can_be_told: bool = True


def fused(crowd: Crowd) -> Judged:
    """Dawid-Skene on a label table: a warning is due if the estimate is wrong, or labels do not determine it."""
    with _caught() as caught:
        estimate = DawidSkene().fit(crowd.annotations)
    accuracy, possible = (float((said == crowd.truth).mean()) for said in (estimate.predict(), _best(crowd)))
    wrong = possible - accuracy > LOST_ACCURACY or accuracy < LEAST_ACCURACY
    wrong |= confusion_error(estimate.confusion_, crowd.matrices) > WRONG_MATRICES
    undetermined = crowd.margin <= 0 or crowd.one_label or len(crowd.matrices) < 3
    return Judged(bool(wrong), bool(wrong or undetermined), _came(caught), not _renamed(crowd))


def classified(crowd: Crowd) -> Judged:
    """global-cm with a linear network: likewise, but images link raters, so that two, or one label each, may do."""
    with _caught() as caught:
        model = Classifier("global-cm", network="linear", progress=False).fit(crowd.annotations)
    looks = np.eye(len(crowd.posterior), dtype=np.float32)
    told = np.asarray(model.predict_proba(looks)).argmax(axis=1)
    share = np.bincount(crowd.looks, minlength=len(looks)) / len(crowd.looks)
    lost = share @ (crowd.posterior.max(axis=1) - crowd.posterior[np.arange(len(looks)), told])
    wrong = lost > LOST_ACCURACY or confusion_error(model.confusion_, crowd.matrices) > WRONG_MATRICES
    return Judged(bool(wrong), bool(wrong or crowd.margin <= 0), _came(caught), not _renamed(crowd))


def drawn(seed: int, images: bool = False) -> Judged:
    """STAPLE on masks of a random crowd: nobody, one or two of whom are faithful; with images or without."""
    rng = np.random.default_rng([seed, 5])
    faithful = seed % 3
    raters = random_crowd(rng, faithful > 0)
    if faithful == 2:
        raters[1] = MaskRater("good", name="good 2")
    return _fused_masks(raters, seed, bool(rng.random() < 0.5), images)


def unfaithful(seed: int, images: bool = False) -> Judged:
    """One who draws too much, one too little, one wrongly, and perhaps more of these: nobody is faithful."""
    rng = np.random.default_rng([seed, 6])
    kinds = [*WAYS, *rng.choice(WAYS, rng.integers(0, 3))]
    raters = [
        MaskRater(str(kind), float(rng.uniform(0.9, 1.3)), name=f"{kind} {number}") for number, kind in enumerate(kinds)
    ]
    return _fused_masks(raters, seed, True, images)


def _fused_masks(raters: list[MaskRater], seed: int, digits: bool, with_images: bool) -> Judged:
    if digits:
        images, truth, _ = noisy_digits(40, seed=seed)
    else:
        images, parts = shapes(30, (40, 40), seed)
        truth = (parts > 0).astype(np.uint8)
    simulated = simulate_masks(truth, raters, n_classes=2, seed=seed)
    with _caught() as caught:
        estimate = STAPLE().fit(simulated.annotations(images=images if with_images else None))
    with _caught():
        vote = MajorityVote().fit(simulated.annotations())
    reached, voted = (dice(np.asarray(fused.predict()), truth, 2) for fused in (estimate, vote))
    if not with_images:
        wrong = bool(reached < LEAST_DICE)
        return Judged(wrong, bool(wrong or voted < LEAST_DICE), _came(caught))
    best = max(voted, *(dice(drawn, truth, 2) for drawn in np.asarray(simulated.masks).swapaxes(0, 1)))
    wrong = bool(reached < LEAST_DICE or reached < best - LOST_DICE)
    return Judged(wrong, wrong, _came(caught))


def _best(crowd: Crowd) -> np.ndarray:
    """The most probable class of each item (items,) to somebody who knows the matrices."""
    with np.errstate(divide="ignore"):
        log_matrices, log_prior = np.log(crowd.matrices), np.log(np.bincount(crowd.truth) / len(crowd.truth))
    score = np.tile(log_prior, (len(crowd.truth), 1))
    for rater, matrix in enumerate(log_matrices):
        given = crowd.answers[:, rater] >= 0
        score[given] += matrix.T[crowd.answers[given, rater]]
    return score.argmax(axis=1)


def _renamed(crowd: Crowd) -> bool:
    """Whether, by the true mean matrix, people call classes by each other's names."""
    _, names = linear_sum_assignment(crowd.matrices.mean(axis=0), maximize=True)
    return bool((names != np.arange(len(names))).any())


class _caught(warnings.catch_warnings):
    """Every warning of annotruth in the block, in a list; others are silenced."""

    def __init__(self) -> None:
        super().__init__(record=True)

    def __enter__(self) -> list[warnings.WarningMessage]:
        caught = super().__enter__()
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", AnnotruthWarning)
        assert caught is not None
        return caught


def _came(caught: Iterable[warnings.WarningMessage]) -> bool:
    return any(issubclass(each.category, IdentifiabilityWarning) for each in caught)


def rows(name: str, judged: list[Judged]) -> Iterator[Row]:
    """Precision and recall, where labels can tell; and how often the warning came where they cannot."""
    told = [one for one in judged if one.can_be_told]
    right = sum(one.due and one.came for one in told)
    came, due = sum(one.came for one in told), sum(one.due for one in told)
    wrong = sum(one.wrong and one.came for one in told) / max(came, 1)
    details = {"warnings": came, "of estimates that are wrong": f"{wrong:.2f}"}
    yield Row(f"{name}: precision", "", right / max(came, 1), "of warnings", TARGET, details=details)
    missed = [one for one in told if one.wrong]
    seen = sum(one.came for one in missed) / max(len(missed), 1)
    details = {"crowds": len(told), "due": due, "of estimates that are wrong": f"{seen:.2f}"}
    yield Row(f"{name}: recall", "", right / max(due, 1), "of those due", TARGET, details=details)
    others = [one for one in judged if not one.can_be_told]
    if others:
        share, everywhere = (
            sum(one.came for one in some) / max(len(some), 1)
            for some in ([one for one in others if one.due], [one for one in judged if one.due])
        )
        details = {"crowds": len(others), "recall with them": f"{everywhere:.2f}"}
        yield Row(f"{name}: class names exchanged", "", share, "warned", None, details=details)


def run(crowds: range, trainings: int) -> Iterator[Row]:
    """All of them."""
    yield from rows("Fusion of answers", [fused(draw_crowd(seed)) for seed in crowds])
    yield from rows("Classification", [classified(draw_crowd(seed)) for seed in crowds[:trainings]])
    for name, images in (("Masks", False), ("Masks with images", True)):
        yield from rows(name, [drawn(seed, images) for seed in crowds])
        nobody = [unfaithful(seed, images) for seed in crowds[: len(crowds) // 4]]
        share = sum(one.came for one in nobody) / len(nobody)
        yield Row(f"{name}, nobody faithful", "", share, "warned", TARGET, details={"crowds": len(nobody)})


def about(trainings: int) -> str:
    """What was done, and what counts as right."""
    return (
        "Made by `python -m benchmarks.identifiability`. The random crowds of [trace and volume](trace.md) as label "
        f"tables, fused by Dawid-Skene, and {trainings} of them learnt by global-cm with a linear network; "
        "and crowds of three to seven raters who draw masks, nobody, one or two of them faithful, fused by STAPLE. "
        "An estimate is wrong if its accuracy is more than "
        f"{LOST_ACCURACY} below what somebody reaches who knows the matrices, or below {LEAST_ACCURACY}, or the CM "
        f"error is above {WRONG_MATRICES}; fused masks, if their Dice is below {LEAST_DICE}. A warning is due if the "
        "estimate is wrong, or if it is right by chance, because labels do not determine it: the mean matrix is not "
        "dominant, or, in fusion, there are two raters, or one label each; for masks, that it is not dominant where "
        "pixels are disputed means that the majority vote is wrong. Where fusion is given the images, these determine "
        "the truth: then a warning is due if fused masks are wrong, also those whose Dice is more than "
        f"{LOST_DICE} below that of the vote or of what somebody drew. Rules were chosen on other crowds."
    )


AFTER = (
    "Class names exchanged: by their true mean matrix, people call a class by another's name. The same labels would "
    "come of a crowd that means what it says, on data in which the classes have changed places. What sees labels only "
    "cannot tell the two apart, so these crowds are counted by themselves; beside it stands the recall with them."
)


def main() -> int:
    """Give 0 if every target was reached, else 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.identifiability", description=__doc__)
    parser.add_argument("--crowds", type=int, default=len(REPORTED))
    parser.add_argument("--trainings", type=int, default=len(REPORTED), help="crowds that classifiers learn from")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "results", help="folder of the results")
    options = parser.parse_args()
    return report(
        "identifiability", "How often the identifiability warning is right", about(options.trainings), AFTER,
        run(REPORTED[: options.crowds], options.trainings), 0, options.output,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
