"""Spammers, copies and changes of skill in simulated crowds: ``python -m benchmarks.rater_checks [--seeds 20]``."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from annotruth import Annotations
from annotruth.fusion import DawidSkene
from annotruth.fusion.copied_pairs import find_copied_pairs
from annotruth.fusion.over_time import LEVEL, RaterHistory, skill_over_time
from annotruth.fusion.spamming import find_spammers
from annotruth.io.timing import AnswerTimes
from annotruth.simulate import hammer_spammer, simulate_labels
from benchmarks.measure import ROOT, Row
from benchmarks.results import report

SEEDS, WITHOUT_CHANGE = 20, 10
"""Crowds of each kind; and for each, tables without any change of skill: twenty are too few to see a rate of 5 %."""
ANSWERS, RATERS, CLASSES, PER_ITEM = 20, 60, 4, 5
AREA = 0.95


def crowd(seed: int, suspects: str) -> tuple[Annotations, np.ndarray]:
    """Raters with twenty answers each, about five to an item; who of them guesses, or copies the one before."""
    rng = np.random.default_rng(seed)
    n_items = RATERS * ANSWERS // PER_ITEM
    truth = rng.integers(0, CLASSES, n_items)
    matrices = np.stack([hammer_spammer(CLASSES, rng.uniform(0.45, 0.95)) for _ in range(RATERS)])
    odd = np.arange(RATERS) % 4 == 3 if suspects == "spammers" else np.arange(RATERS) % 8 == 7
    if suspects == "spammers":
        for number, rater in enumerate(np.flatnonzero(odd)):  # every other one guesses, the others say always the same
            always = np.eye(CLASSES)[[rng.integers(CLASSES)] * CLASSES]
            matrices[rater] = hammer_spammer(CLASSES, 0.0) if number % 2 else always
    answers = simulate_labels(truth, matrices, seed=seed).answers.astype(np.int64)
    places = np.concatenate([rng.permutation(n_items) for _ in range(PER_ITEM)]).reshape(RATERS, ANSWERS)
    if suspects == "copies":
        for rater in np.flatnonzero(odd):
            places[rater] = places[rater - 1]
            same = rng.random(n_items) < 0.9
            answers[same, rater] = answers[same, rater - 1]
    there = np.zeros(answers.shape, dtype=bool)
    for rater, mine in enumerate(places):
        there[mine, rater] = True
    heard = there.any(axis=1)
    return Annotations.from_answers(np.where(there, answers, -1)[heard], classes=CLASSES), odd


def spammer_rows(seeds: range) -> Iterator[Row]:
    """How well spammers are told from others, and how often each is called one."""
    scores, truly, called, caught = [], [], [], []
    for seed in seeds:
        annotations, odd = crowd(seed, "spammers")
        fused = DawidSkene().fit(annotations)
        found = find_spammers(annotations, fused.prior_, fused.confusion_)
        scores.append(-found.informative)
        truly.append(odd)
        called.append([name in found.spammers for name in annotations.raters])
        caught.append(found.caught)
    who, said = np.concatenate(truly), np.concatenate(called)
    details = {
        "called of spammers": f"{said[who].mean():.3f}", "stated": f"{np.concatenate(caught)[who].mean():.3f}",
        "called of others": f"{said[~who].mean():.4f}", "stated of honest raters": "0.01 at most",
    }  # fmt: skip
    area = float(roc_auc_score(who, np.concatenate(scores)))
    yield Row(f"Spammers, {ANSWERS} answers each", "", area, "area under the ROC", AREA, details=details)


def copy_rows(seeds: range) -> Iterator[Row]:
    """How well pairs of whom one copies are told from other pairs with common items."""
    scores, truly, wrong, right, total = [], [], 0, 0, 0
    for seed in seeds:
        annotations, odd = crowd(seed, "copies")
        copies = {(annotations.raters[one - 1], annotations.raters[one]) for one in np.flatnonzero(odd)}
        fused = DawidSkene().fit(annotations)
        found = find_copied_pairs(annotations, fused.prior_, fused.confusion_)
        scores.append(np.log(found.table["evidence"]))
        truly.append([pair in copies for pair in zip(found.table["first"], found.table["second"])])
        wrong += bool(set(found.pairs) - copies)
        right += len(set(found.pairs) & copies)
        total += len(copies)
    area = float(roc_auc_score(np.concatenate(truly), np.concatenate(scores)))
    details = {
        "called of copies": f"{right / total:.3f}", "tables with a pair called wrongly": f"{wrong} of {len(seeds)}",
        "stated": "0.01 of tables", "pairs": sum(map(len, truly)),
    }  # fmt: skip
    yield Row(f"Copies, {ANSWERS} answers each", "", area, "area under the ROC", AREA, details=details)


def change_rows(seeds: range, n_items: int = 100, n_raters: int = 8) -> Iterator[Row]:
    """How often a change of skill is said where there is none, and found where there is."""
    wrong, right, beside, where = 0, 0, 0, []
    without = range(seeds.start, seeds.start + WITHOUT_CHANGE * len(seeds))
    for seed in without:
        wrong += any(one.changes for one in _histories(seed, np.full((n_items, n_raters), 0.85)))
    for seed in seeds:
        skill = np.full((n_items, n_raters), 0.85)
        skill[60:, 0] = 0.5
        found = _histories(seed, skill)
        right += bool(found[0].changes)
        beside += any(one.changes for one in found[1:])
        where += [abs(change.time / 60 - 60) for change in found[0].changes[:1]]
    # With few tables a share above the level is no proof: two standard errors are allowed for.
    most = LEVEL + 2 * float(np.sqrt(LEVEL * (1 - LEVEL) / len(without)))
    share, work = wrong / len(without), "Tables without change in which one is said"
    told = {"stated": LEVEL, "tables": len(without)}
    yield Row(work, "", share, "of tables", round(most, 3), at_most=True, details=told)
    details = {
        "answers beside the change, median": float(np.median(where)) if where else "",
        "tables in which another rater is said to change": f"{beside} of {len(seeds)}",
    }
    work = "Changes from 85 % to 50 % right, after 60 of 100 answers"
    yield Row(work, "", right / len(seeds), "found", None, details=details)


def _histories(seed: int, skill: np.ndarray) -> list[RaterHistory]:
    """Look for changes in a table of raters with some chance to be right (items, raters), an item a minute."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, CLASSES, len(skill))
    other = (truth[:, None] + rng.integers(1, CLASSES, skill.shape)) % CLASSES
    annotations = Annotations.from_answers(np.where(rng.random(skill.shape) < skill, truth[:, None], other))
    time = 60.0 * annotations.answers.item
    fused = DawidSkene().fit(annotations)
    times = AnswerTimes(time, np.full(len(time), np.nan))
    return skill_over_time(annotations, fused.prior_, fused.confusion_, times, seed=seed)


def run(seeds: range) -> Iterator[Row]:
    """All three."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for rows in (spammer_rows, copy_rows, change_rows):
            yield from rows(seeds)


def main() -> int:
    """Give 0 if every target was reached, else 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rater_checks", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "results", help="folder of the results")
    options = parser.parse_args()
    return report(
        "rater-checks",
        "Spammers, copies and changes of skill",
        f"Made by `python -m benchmarks.rater_checks`. {options.seeds} simulated crowds of {RATERS} raters, {CLASSES} "
        f"classes, {ANSWERS} answers each, about {PER_ITEM} to an item; raters are right in 59 % to 96 % of their "
        "answers. A quarter are spammers, of whom half guess and half always say the same; or an eighth answer the "
        "items of another rater, and copy 90 % of the answers. Matrices are those of Dawid-Skene. Changes: eight "
        "raters who are right in 85 %, 100 answers each.",
        "",
        run(range(options.seeds)),
        0,
        options.output,
    )


if __name__ == "__main__":
    sys.exit(main())
