"""How many labels it takes to be as accurate as with all answers: bought by each strategy, from one answer per item.

    python -m benchmarks.next_labels --data FOLDER [--sets bluebirds,simulated] [--strategies information,random]

Answers of real tables are bought only where the rater did answer. After each purchase raters and items are estimated
anew from what was bought; nothing else is looked at.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

import annotruth as at
from annotruth.choosing.queue import STRATEGIES
from annotruth.choosing.queue.fusing import usual_estimator
from annotruth.choosing.queue.greedy import fill_budget
from annotruth.choosing.queue.posteriors import table_posteriors
from annotruth.choosing.queue.scoring import InformationScores
from annotruth.choosing.queue.strategies import make_scores

Table = tuple[np.ndarray, np.ndarray]
"""Answers (items, raters), -1 = none; true classes (items,), -1 = unknown."""


def buy(table: Table, strategy: str, seed: int, steps: int = 40, most: float = 1.0) -> list[tuple[int, float]]:
    """Buy the answers of a table in steps; give how many were bought, the first ones too, and the accuracy then."""
    answers, truth = table
    n_classes = int(max(answers.max(), truth.max())) + 1
    rng = np.random.default_rng(seed)
    there = answers >= 0
    bought = np.full_like(answers, -1)
    for item in np.flatnonzero(there.any(axis=1)):
        rater = rng.choice(np.flatnonzero(there[item]))
        bought[item, rater] = answers[item, rater]
    step = max(1, int(there.sum() - (bought >= 0).sum()) // steps)
    path = []
    while True:
        annotations = at.Annotations.from_answers(bought, classes=n_classes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fused = usual_estimator(annotations).fit(annotations)
        path.append((int((bought >= 0).sum()), accuracy(fused.predict(), truth)))
        to_buy = there & (bought < 0)
        if not to_buy.any() or path[-1][0] > most * there.sum():
            return path
        # Whoever did not answer cannot be asked: as if they had labelled the item already.
        item, rater = np.nonzero(~to_buy)
        known = replace(
            table_posteriors(fused), first_label=np.searchsorted(item, np.arange(len(bought) + 1)), rater_of=rater
        )
        cost = np.ones(bought.shape[1])
        scores = make_scores(strategy, InformationScores(known, cost), rng)
        orders = fill_budget(scores, cost, np.full(len(cost), np.inf), step)
        for order in orders:
            bought[order.item, order.rater] = answers[order.item, order.rater]
        if len(orders) < step:  # nothing tells any more: the rest in the order of the table
            rest = np.argwhere(there & (bought < 0))[: step - len(orders)]
            bought[rest[:, 0], rest[:, 1]] = answers[rest[:, 0], rest[:, 1]]


def accuracy(labels: np.ndarray, truth: np.ndarray) -> float:
    """Share of the items of known truth that are right."""
    return float((labels == truth)[truth >= 0].mean())


def labels_needed(path: list[tuple[int, float]], target: float) -> int:
    """How many labels were bought when the accuracy first reached the target."""
    return next((labels for labels, reached in path if reached >= target), path[-1][0])


def simulated(seed: int, n_items: int = 500, n_raters: int = 20, n_classes: int = 4, spammers: float = 0.3) -> Table:
    """A crowd of unequal skill, each of whom answered everything."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_items)
    skill = np.where(rng.random(n_raters) < spammers, 1 / n_classes, rng.uniform(0.5, 0.95, n_raters))
    wrong = (truth[:, None] + rng.integers(1, n_classes, (n_items, n_raters))) % n_classes
    return np.where(rng.random((n_items, n_raters)) < skill, truth[:, None], wrong), truth


def read_sets(folder: Path | None) -> dict[str, Callable[[int], Table]]:
    """Tables by name; real ones if there is a folder."""
    sets: dict[str, Callable[[int], Table]] = {
        "simulated": lambda seed: simulated(seed),
        "simulated, ten classes": lambda seed: simulated(seed, 400, 30, 10, 0.2),
    }
    if folder is None:
        return sets
    for name in ("bluebirds", "dog_breed"):
        sets[name] = lambda seed, name=name: _crowd_set(folder / "crowd_label_sets", name)  # type: ignore[misc]
    sets["labelme"] = lambda seed: _labelme(folder / "labelme_crowd")
    sets["cifar10n"] = lambda seed: _cifar10n(folder / "cifar10")
    return sets


def _crowd_set(folder: Path, name: str) -> Table:
    frame = pd.read_csv(folder / f"{name}_answers.csv").rename(columns={"worker": "rater"})
    truth = pd.read_csv(folder / f"{name}_truth.csv").set_index("item")["truth"]
    found = at.Annotations.from_table(frame, truth=truth)
    return found.answer_matrix().astype(np.int64), found.truth.astype(np.int64)


def _labelme(folder: Path) -> Table:
    with np.load(folder / "labelme_crowd.npz", allow_pickle=False) as arrays:
        return arrays["answers"].astype(np.int64), arrays["z_train"].astype(np.int64)


def _cifar10n(folder: Path) -> Table:
    """The three answers of each picture as if each place were a rater: who gave them is not told."""
    with np.load(folder / "cifar10n_train.npz", allow_pickle=False) as arrays:
        return arrays["annot"].astype(np.int64), arrays["labels"].astype(np.int64)


def main() -> None:
    """Print, for each table, the labels that each strategy needed, as means over the seeds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.next_labels", description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with crowd_label_sets, labelme_crowd and cifar10")
    parser.add_argument("--sets", help="names with commas between them; by default all")
    parser.add_argument("--strategies", default=",".join(STRATEGIES), help="names with commas between them")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40, help="purchases in which all answers would be bought")
    parser.add_argument("-o", "--output", type=Path, help="JSON file for the curves")
    options = parser.parse_args()
    sets, strategies = read_sets(options.data), options.strategies.split(",")
    curves: dict[str, dict[str, list[list[tuple[int, float]]]]] = {}
    print("| answers | accuracy with all | all | " + " | ".join(strategies) + " |")
    print("| --- " * (3 + len(strategies)) + "|")
    for name in options.sets.split(",") if options.sets else sets:
        needed: dict[str, list[int]] = {strategy: [] for strategy in strategies}
        targets, everything = [], []
        for seed in range(options.seeds):
            table = sets[name](seed)
            annotations = at.Annotations.from_answers(table[0], classes=int(max(table[0].max(), table[1].max())) + 1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                targets.append(accuracy(usual_estimator(annotations).fit(annotations).predict(), table[1]))
            everything.append(int((table[0] >= 0).sum()))
            for strategy in strategies:
                path = buy(table, strategy, seed, options.steps)
                needed[strategy].append(labels_needed(path, targets[-1]))
                curves.setdefault(name, {}).setdefault(strategy, []).append(path)
        cells = [f"{np.mean(needed[strategy]):,.0f} ± {np.std(needed[strategy]):,.0f}" for strategy in strategies]
        print(
            f"| {name} | {np.mean(targets):.4f} | {np.mean(everything):,.0f} | " + " | ".join(cells) + " |", flush=True
        )
    if options.output:
        options.output.write_text(json.dumps(curves, indent=1) + "\n")


if __name__ == "__main__":
    main()
