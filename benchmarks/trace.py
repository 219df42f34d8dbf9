"""When trace and volume find the raters' matrices, on random crowds: ``python -m benchmarks.trace [--crowds 200]``.

The network is the simplest that can express the truth: a class distribution of its own for each of a few kinds of
pictures. So what is compared are objectives, and nothing else; likelihood, trace and volume are the package's.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from annotruth.experiments.core.plots import COLOURS
from annotruth.methods.confusion.geo_crowd_net import log_volume
from annotruth.metrics import confusion_error
from annotruth.nn import GlobalAnnotators
from benchmarks.measure import ROOT, machine
from benchmarks.random_crowds import CLASSES, REPORTED, Crowd, draw_crowd

WEIGHTS = {
    "likelihood alone": 0.0, "trace": 0.03, "posterior-weighted trace": 0.1, "volume of the truth": 0.03,
    "volume of the matrices": 0.003,
}  # fmt: skip
"""By objective; chosen among 0.003, 0.01, 0.03 and 0.1 on forty other crowds."""
FOUND = 0.02
"""Matrices are found if the squared distance of a row from the true one is at most this: two entries off by 0.1."""
STEPS, RATE, SIDE_BY_SIDE = 200, 0.1, 8


class Problem:
    """Labels of some crowds, counted by the look of the picture, and the objectives on them.

    Crowds with as many classes are solved side by side, which changes nothing but the time: no rater labels a picture
    of another crowd, the loss is a sum over crowds, and Adam treats every number by itself.
    """

    def __init__(self, crowds: Sequence[Crowd]) -> None:
        self.crowds, self.classes = crowds, crowds[0].posterior.shape[1]
        self.looks = len(crowds[0].posterior)
        raters = [len(crowd.matrices) for crowd in crowds]
        first = np.cumsum([0, *raters])
        self.of_crowd = [slice(start, start + n) for start, n in zip(first, raters)]
        counts = np.zeros((len(crowds), self.looks, self.classes, first[-1]), dtype=np.float32)
        for number, (crowd, mine) in enumerate(zip(crowds, self.of_crowd)):
            item, rater = np.nonzero(crowd.answers >= 0)
            label = crowd.answers[item, rater]
            np.add.at(counts[number], (crowd.looks[item], label, mine.start + rater), 1 / len(item))
        # One item for each look and label, which all raters of the crowd gave it, and how often each of them did.
        self.counts = torch.from_numpy(counts.reshape(-1, first[-1]))
        self.look = torch.arange(len(crowds) * self.looks).repeat_interleave(self.classes)
        label = torch.arange(self.classes).repeat(len(crowds) * self.looks)
        own = torch.block_diag(*[torch.ones(self.looks * self.classes, n) for n in raters]) > 0
        self.labels = torch.where(own, label[:, None], -1).to(torch.int16)
        self.share = torch.stack(
            [torch.from_numpy(np.bincount(crowd.looks, minlength=self.looks) / len(crowd.looks)) for crowd in crowds]
        ).float()

    def loss(self, scores: Tensor, annotators: GlobalAnnotators, objective: str) -> Tensor:
        """What is minimised, of the truth's scores (crowds · looks, classes) and all raters' matrices."""
        log_truth = scores.log_softmax(dim=1)
        confusion, weight = annotators(log_truth), WEIGHTS[objective]
        by_posterior = log_truth.detach().exp()[self.look] if objective == "posterior-weighted trace" else None
        log_likelihood, trace = confusion.likelihood(log_truth[self.look], self.labels, by_posterior)
        loss = -(self.counts * log_likelihood).sum()
        if objective.endswith("trace"):
            return loss + weight * (self.counts * trace).sum()
        if objective == "volume of the truth":
            shown = log_truth.exp().view(len(self.crowds), self.looks, self.classes).mT
            rooms = [log_volume(rows * (share * self.looks).sqrt()) for rows, share in zip(shown, self.share)]
            return loss - weight * torch.stack(rooms).sum()
        if objective == "volume of the matrices":
            matrices = confusion.dense()[0]
            rooms = [log_volume(matrices[mine].movedim(1, 0).flatten(1)) for mine in self.of_crowd]
            return loss - weight * torch.stack(rooms).sum()
        return loss

    def fit(self, objective: str, from_truth: bool = False) -> list[tuple[np.ndarray, np.ndarray]]:
        """Posterior (looks, classes) and matrices of each crowd.

        Begun as trainings begin, with raters who are taken to be right; or at the truth: does the objective stay there?
        """
        scores = torch.zeros(len(self.crowds) * self.looks, self.classes)
        annotators = GlobalAnnotators(self.of_crowd[-1].stop, self.classes)
        if from_truth:
            posterior = np.concatenate([crowd.posterior for crowd in self.crowds])
            scores = torch.from_numpy(posterior).float().clamp_min(1e-3).log()
            annotators.set_matrices(torch.from_numpy(np.concatenate([crowd.matrices for crowd in self.crowds])))
        scores = torch.nn.Parameter(scores)
        optimiser = torch.optim.Adam([scores, *annotators.parameters()], lr=RATE)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS)
        for _ in range(STEPS):
            optimiser.zero_grad()
            self.loss(scores, annotators, objective).backward()
            optimiser.step()
            schedule.step()
        with torch.no_grad():
            posterior = scores.softmax(dim=1).view(len(self.crowds), self.looks, self.classes).numpy()
            matrices = annotators(scores).dense()[0].numpy()
        return [(one, matrices[mine]) for one, mine in zip(posterior, self.of_crowd)]


@dataclass(frozen=True)
class Result:
    """A crowd, and by objective the CM error, the share of items whose class is told, and the error from the truth."""

    seed: int
    kind: str
    raters: int
    classes: int
    one_label: bool
    clear: bool
    margin: float
    error: dict[str, float]
    told: dict[str, float]
    kept: dict[str, float]


def run(seeds: Iterable[int]) -> Iterator[Result]:
    """Every objective on every crowd."""
    drawn = {seed: draw_crowd(seed) for seed in seeds}
    for classes in CLASSES:
        mine = [(seed, crowd) for seed, crowd in drawn.items() if crowd.posterior.shape[1] == classes]
        for start in range(0, len(mine), SIDE_BY_SIDE):
            some = mine[start : start + SIDE_BY_SIDE]
            problem = Problem([crowd for _, crowd in some])
            found = {objective: problem.fit(objective) for objective in WEIGHTS}
            kept = {objective: problem.fit(objective, from_truth=True) for objective in WEIGHTS}
            for number, (seed, crowd) in enumerate(some):
                ours = {objective: each[number] for objective, each in found.items()}
                right = crowd.posterior.argmax(axis=1)
                told = {
                    objective: round(float((posterior.argmax(axis=1) == right) @ problem.share[number].numpy()), 4)
                    for objective, (posterior, _) in ours.items()
                }
                yield Result(
                    seed, crowd.kind, len(crowd.matrices), classes, crowd.one_label, crowd.clear,
                    round(crowd.margin, 4), {name: _error(each[1], crowd) for name, each in ours.items()}, told,
                    {name: _error(each[number][1], crowd) for name, each in kept.items()},
                )  # fmt: skip


def _error(matrices: np.ndarray, crowd: Crowd) -> float:
    return round(confusion_error(matrices, crowd.matrices), 5)


GROUPS: dict[str, Callable[[Result], bool]] = {
    "all crowds": lambda one: True,
    "mean matrix not dominant": lambda one: one.margin <= 0,
    "dominant by less than 0.1": lambda one: 0 < one.margin < 0.1,
    "dominant by 0.1 or more": lambda one: one.margin >= 0.1,
    "– two raters": lambda one: one.margin >= 0.1 and one.raters == 2,
    "– three or four raters": lambda one: one.margin >= 0.1 and one.raters in (3, 4),
    "– five or eight raters": lambda one: one.margin >= 0.1 and one.raters >= 5,
    "– all raters label each item": lambda one: one.margin >= 0.1 and not one.one_label,
    "– one label each": lambda one: one.margin >= 0.1 and one.one_label,
    "– every picture shows its class": lambda one: one.margin >= 0.1 and one.clear,
    "– pictures that may be several classes": lambda one: one.margin >= 0.1 and not one.clear,
}


def shares(results: list[Result], values: str = "error") -> list[list[str]]:
    """In which share of each group of crowds each objective finds (or keeps) the matrices, as lines of a table."""
    lines = []
    for name, belongs in GROUPS.items():
        mine = [one for one in results if belongs(one)]
        found = [
            f"{np.mean([getattr(one, values)[objective] <= FOUND for one in mine]):.0%}" if mine else "–"
            for objective in WEIGHTS
        ]
        lines.append([name, str(len(mine)), *found])
    return lines


def plot(path: Path, results: list[Result]) -> None:
    """Error over dominance, a plot for each objective."""
    figure = Figure(figsize=(3.1 * len(WEIGHTS), 3.4), layout="constrained")
    grid = figure.subplots(1, len(WEIGHTS), sharey=True)
    for axes, objective in zip(grid, WEIGHTS):
        for clear, colour, label in ((True, COLOURS[0], "clear pictures"), (False, COLOURS[1], "ambiguous pictures")):
            mine = [one for one in results if one.clear == clear]
            errors = [max(one.error[objective], 1e-4) for one in mine]
            axes.plot([one.margin for one in mine], errors, "o", color=colour, markersize=3.5, alpha=0.7, label=label)
        axes.axhline(FOUND, color="#888888", linewidth=0.8)
        axes.axvspan(-1, 0, color="#888888", alpha=0.2, linewidth=0)
        axes.set(xlim=(-0.9, 1.02), yscale="log", title=objective, xlabel="dominance of the mean matrix")
    grid[0].set_ylabel("CM error")
    grid[0].legend(fontsize=8, loc="lower left")
    figure.savefig(path, dpi=110)


def write(folder: Path, results: list[Result], seconds: float) -> None:
    """Write trace.md, .json and .png."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {"machine": machine(), "weights": WEIGHTS, "found": FOUND, "crowds": [asdict(one) for one in results]}
    (folder / "trace.json").write_text(json.dumps(found, ensure_ascii=False) + "\n")
    plot(folder / "trace.png", results)
    (folder / "trace.md").write_text(_page(results, seconds))


def _page(results: list[Result], seconds: float) -> str:
    heads = ["crowds", "number", *WEIGHTS]
    weights = ", ".join(f"{name} {weight:g}" for name, weight in WEIGHTS.items() if weight)

    def table(values: str) -> str:
        lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *shares(results, values)]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    return "\n".join(
        [
            "# Trace and volume on random crowds",
            "",
            f"Made by `python -m benchmarks.trace` in {seconds / 60:.0f} minutes on one core. {len(results)} random "
            "crowds of two to eight raters and two to five classes, who guess, flip classes each in their own way, "
            "flip alike, or differ, and label kinds of pictures; the network has a class distribution for each kind. "
            "[What it is about](../explanation/trace.md).",
            "",
            f"Weights, chosen on other crowds: {weights}.",
            "",
            "## In which share of crowds matrices are found",
            "",
            f"From raters who are taken to be right, as trainings begin. Found: CM error of at most {FOUND}, which is "
            "two entries of a row off by 0.1.",
            "",
            table("error"),
            "",
            "## In which share true matrices are kept",
            "",
            "Begun at the truth: does the objective stay there? Where it keeps what it does not find, training is led "
            "astray by its start; where it does not, the objective itself prefers something else.",
            "",
            table("kept"),
            "",
            "![CM error over dominance](trace.png)",
            "",
            f"Measured on: {', '.join(f'{name} {value}' for name, value in machine().items())}.",
            "",
        ]
    )


def main() -> int:
    """Run and write; always 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trace", description=__doc__)
    parser.add_argument("--crowds", type=int, default=len(REPORTED))
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "results", help="folder of the results")
    options = parser.parse_args()
    torch.set_num_threads(1)
    started = time.process_time()
    results: list[Any] = []
    for result in run(REPORTED[: options.crowds]):
        results.append(result)
        if len(results) % 20 == 0:
            print(f"{len(results)} crowds, {time.process_time() - started:.0f} s", flush=True)
    write(options.output, results, time.process_time() - started)
    return 0


if __name__ == "__main__":
    sys.exit(main())
