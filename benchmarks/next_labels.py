"""How many labels must be bought to be as accurate as with all answers, by strategy, starting from one answer per item.

    python -m benchmarks.next_labels --data FOLDER --peers PYTHON [--sets bluebirds,simulated] [--seeds 5]

Answers of real tables are bought only where the rater did answer. After each purchase raters and items are estimated
anew from what was bought, by the same fusion for every strategy; nothing else is looked at. ``--peers`` is an
interpreter that has cleanlab and scikit-activeml. At five seeds or more of all sets the results are written to
docs/results/next-labels.md and .json.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

import annotruth as at
from annotruth.choosing.queue import STRATEGIES
from annotruth.choosing.queue.fusing import usual_estimator
from annotruth.choosing.queue.greedy import fill_budget
from annotruth.choosing.queue.posteriors import ItemPosteriors, table_posteriors
from annotruth.choosing.queue.scoring import InformationScores
from annotruth.choosing.queue.strategies import make_scores
from benchmarks import peer_scores
from benchmarks.measure import ROOT, Row
from benchmarks.results import report

Table = tuple[np.ndarray, np.ndarray]
"""Answers (items, raters), -1 = none; true classes (items,), -1 = unknown."""
Path_ = list[tuple[int, float]]
"""How many labels were bought, beyond the first ones, and the accuracy then."""
Choose = Callable[[ItemPosteriors, np.ndarray, np.ndarray, int, np.random.Generator], list[tuple[int, int]]]
"""Chooses pairs (item, rater): of what is known, the answers bought, what can be bought, and how many."""
OURS, BESIDE = "information", ("random", "entropy", "consensus")
HALF = 0.5
NEAR = 0.005
"""How much below the accuracy of all answers counts as near to it. Close to the end of a table, whether the last few
items that raters are divided on fall right or wrong is luck, and so is when the accuracy of all answers is reached."""


AFTER = (
    "With five seeds differences of ten per cent were chance; with twenty, deviations of means are a quarter of those "
    "told. Of the simulated crowds, in which raters err independently of each other, information needs a third of "
    "what random buying needs, and less than any peer. Of bluebirds it needs half of random's and of any peer's: of "
    "two classes, raters who are hardly known are tried, and nobody is asked for much more than is known of them, "
    "which was chosen with seeds from 100 on, but on the same 108 items. Where there are more classes, that costs "
    "labels: without it, information is below all peers on dog_breed, and on LabelMe, where it was 5 % behind one. "
    "CIFAR-10N is where it is behind a peer, by 5 %, which is the deviation of that difference: in the end all "
    "strategies buy the same there, and whether a class that is decided by matrices falls right is luck. To within "
    "half a point of the accuracy of all answers it is behind ActiveLab by 4 %, and before the other two. To plan for "
    "two labels of an item at once, never to buy a third that cannot change what two agree on, to take some items for "
    "hard, and to put those with few labels first, were tried with seeds from 100 on, and gained nothing there. In "
    "CIFAR-10N, with three answers of an item, a third never changes what two agree on: buying a second for all, and "
    "a third where two differ, takes 0.64 of all that can be bought, so that half of random's labels is hardly within "
    "reach, and beyond that point only luck is bought."
)
"""What is to be seen in the results."""


def ours(strategy: str) -> Choose:
    """One of annotruth's strategies."""

    def choose(
        known: ItemPosteriors, bought: np.ndarray, to_buy: np.ndarray, count: int, rng: np.random.Generator
    ) -> list[tuple[int, int]]:
        # Whoever did not answer cannot be asked: as if they had labelled the item already.
        item, rater = np.nonzero(~to_buy)
        asked = replace(known, first_label=np.searchsorted(item, np.arange(len(bought) + 1)), rater_of=rater)
        cost = np.ones(bought.shape[1])
        scores = make_scores(strategy, InformationScores(asked, cost), rng)
        return [(one.item, one.rater) for one in fill_budget(scores, cost, np.full(len(cost), np.inf), count)]

    return choose


class Peers:
    """cleanlab's and scikit-activeml's strategies, in a process of their own."""

    def __init__(self, python: str) -> None:
        command = [python, "-W", "ignore", str(Path(peer_scores.__file__))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._file = Path(tempfile.mkdtemp()) / "request.npz"

    def chooser(self, strategy: str) -> Choose:
        """The items with the highest scores, one label each, by raters with the highest scores, else at random."""

        def choose(
            known: ItemPosteriors, bought: np.ndarray, to_buy: np.ndarray, count: int, rng: np.random.Generator
        ) -> list[tuple[int, int]]:
            items, raters = self._ask(strategy, bought, known.posterior)
            tie = rng.random(len(items))
            order = [one for one in np.lexsort((tie, -items)).tolist() if to_buy[one].any()][:count]
            value = np.where(to_buy[order], raters + 1e-9 * rng.random((len(order), to_buy.shape[1])), -np.inf)
            return list(zip(order, value.argmax(axis=1).tolist()))

        return choose

    def _ask(self, strategy: str, answers: np.ndarray, posterior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        np.savez(self._file, answers=answers, posterior=posterior, strategy=strategy)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{self._file}\n")
        self._process.stdin.flush()
        if not self._process.stdout.readline():
            raise RuntimeError(f"The interpreter of the peers ended while {strategy} was asked.")
        with np.load(self._file, allow_pickle=False) as found:
            return found["items"], found["raters"]


def buy(table: Table, choose: Choose, seed: int, steps: int = 40, until: float = np.inf) -> Path_:
    """Buy the answers of a table in steps, until an accuracy is reached."""
    answers, truth = table
    n_classes = int(max(answers.max(), truth.max())) + 1
    rng = np.random.default_rng(seed)
    there = answers >= 0
    bought = np.full_like(answers, -1)
    for item in np.flatnonzero(there.any(axis=1)):
        rater = rng.choice(np.flatnonzero(there[item]))
        bought[item, rater] = answers[item, rater]
    first = int((bought >= 0).sum())
    step = max(1, (int(there.sum()) - first) // steps)
    path: Path_ = []
    while True:
        annotations = at.Annotations.from_answers(bought, classes=n_classes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fused = usual_estimator(annotations).fit(annotations)
        path.append((int((bought >= 0).sum()) - first, accuracy(fused.predict(), truth)))
        to_buy = there & (bought < 0)
        if not to_buy.any() or path[-1][1] >= until:
            return path
        pairs = choose(table_posteriors(fused), bought, to_buy, step, rng)
        for item, rater in pairs:
            bought[item, rater] = answers[item, rater]
        if len(pairs) < step:  # nothing tells any more: the rest at random
            rest = rng.permutation(np.argwhere(there & (bought < 0)))[: step - len(pairs)]
            bought[rest[:, 0], rest[:, 1]] = answers[rest[:, 0], rest[:, 1]]


def accuracy(labels: np.ndarray, truth: np.ndarray) -> float:
    """Share of the items of known truth that are right."""
    return float((labels == truth)[truth >= 0].mean())


def target_accuracy(table: Table) -> float:
    """What the fusion of all answers reaches."""
    annotations = at.Annotations.from_answers(table[0], classes=int(max(table[0].max(), table[1].max())) + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return accuracy(usual_estimator(annotations).fit(annotations).predict(), table[1])


def labels_needed(path: Path_, target: float) -> int:
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
        "simulated-4": lambda seed: simulated(seed),
        "simulated-10": lambda seed: simulated(seed, 400, 30, 10, 0.2),
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


def _some_items(make: Callable[[int], Table], count: int, seed: int) -> Table:
    answers, truth = make(seed)
    if len(answers) <= count:
        return answers, truth
    chosen = np.random.default_rng(seed).permutation(len(answers))[:count]
    answers = answers[chosen]
    return answers[:, (answers >= 0).any(axis=0)], truth[chosen]


def run(
    sets: dict[str, Callable[[int], Table]], strategies: list[str], peers: str | None, seeds: range, steps: int
) -> Iterator[Row]:
    """Labels bought by each strategy, and by ours as a share of what the others bought; means over the seeds."""
    choosers = {name: ours(name) for name in strategies}
    if peers is not None:
        process = Peers(peers)
        choosers |= {name: process.chooser(name) for name in peer_scores.STRATEGIES}
    halved = []
    for name, make in sets.items():
        needed: dict[str, list[int]] = {strategy: [] for strategy in choosers}
        nearly: dict[str, list[int]] = {strategy: [] for strategy in choosers}
        targets = []
        for seed in seeds:
            table = make(seed)
            targets.append(target_accuracy(table))
            for strategy, choose in choosers.items():
                path = buy(table, choose, seed, steps, targets[-1])
                needed[strategy].append(labels_needed(path, targets[-1]))
                nearly[strategy].append(labels_needed(path, targets[-1] - NEAR))
                print(f"  {name}, seed {seed}, {strategy}: {needed[strategy][-1]}", file=sys.stderr, flush=True)
        for words, found, told in (("", needed, True), (", to within half a point", nearly, False)):
            mean = {strategy: float(np.mean(each)) for strategy, each in found.items()}
            details = {strategy: f"{np.mean(each):.0f} ± {np.std(each):.0f}" for strategy, each in found.items()}
            share = mean[OURS] / max(mean["random"], 1)
            if told:
                halved.append(share <= HALF)
                details["accuracy"] = f"{np.mean(targets):.4f}"
            yield Row(f"Labels bought, {name}{words}", "random", share, "× the labels", None, details=details)
            for strategy in peer_scores.STRATEGIES if peers is not None else ():
                share, target = mean[OURS] / max(mean[strategy], 1), 1.0 if told else None
                yield Row(f"Labels bought, {name}{words}", strategy, share, "× the labels", target, at_most=True)
    yield Row("Sets with half of random's labels or fewer", "random", float(sum(halved)), "sets", 3)


def main() -> int:
    """Give 0 if every target was reached, else 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.next_labels", description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with crowd_label_sets, labelme_crowd and cifar10")
    parser.add_argument("--peers", metavar="PYTHON", help="an interpreter that has cleanlab and scikit-activeml")
    parser.add_argument("--sets", help="names with commas between them; by default all")
    parser.add_argument("--strategies", default=",".join(BESIDE), help="beside information, with commas between them")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0, help="choose options on other seeds than those reported")
    parser.add_argument("--steps", type=int, default=40, help="purchases in which all answers would be bought")
    parser.add_argument("--items", type=int, help="of larger tables, so many items, others for each seed")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "results", help="folder of the results")
    options = parser.parse_args()
    sets = read_sets(options.data)
    if options.sets:
        sets = {name: sets[name] for name in options.sets.split(",")}
    if options.items:
        sets = {name: partial(_some_items, make, options.items) for name, make in sets.items()}
    cut = (f" --items {options.items}" if options.items else "") + f" --seeds {options.seeds}"
    of_larger = f" Of larger tables {options.items:,} items are taken, others for each seed." if options.items else ""
    strategies = list(dict.fromkeys([OURS, "random", *options.strategies.split(",")]))
    assert set(strategies) <= set(STRATEGIES)
    return report(
        "next-labels",
        "Labels needed to be as accurate as with all answers",
        f"Made by `python -m benchmarks.next_labels --data FOLDER --peers PYTHON{cut}`. Every item starts with one "
        "answer, by a rater drawn at random; others are bought in purchases of a fortieth of the table, until the "
        "fusion of what was bought (`SparseDawidSkene`, the same for all) is as accurate as that of all answers. "
        f"Labels bought, without the first ones, are means and deviations over {options.seeds} seeds. cleanlab's "
        "ActiveLab and scikit-activeml's uncertainty sampling are told the same posterior as our strategies, in place "
        "of a classifier's; ActiveLab and entropy leave open who is asked: raters at random. IEThresh is "
        "scikit-activeml's least confident items by the raters with the highest upper bounds of interval estimation. "
        f"In CIFAR-10N a rater is one of the three places of an answer: who gave it is not told.{of_larger} "
        "Near the end of a table the exact accuracy of all answers is reached by luck, when the last few items on "
        "which raters are divided fall right: labels bought until it is less than half a point away are told beside.",
        AFTER,
        run(
            sets,
            strategies,
            options.peers,
            range(options.first_seed, options.first_seed + options.seeds),
            options.steps,
        ),
        options.first_seed,
        options.output,
    )


if __name__ == "__main__":
    sys.exit(main())
