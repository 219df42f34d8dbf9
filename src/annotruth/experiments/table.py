"""Experiments as data, and the one runner for all of them: methods × settings × seeds, resumable.

An experiment names its data, its settings (dense labels, one label per image …) and its methods. The runner trains each
combination, keeps every finished one on disk, and writes a table as JSON and Markdown, and a plot.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from annotruth.annotations import Annotations
from annotruth.errors import AnnotruthWarning
from annotruth.experiments.writing import environment, write_results
from annotruth.io import atomic
from annotruth.metrics import confusion_rmse, dice
from annotruth.training import Segmenter

SWAPPED_BELOW = 0.3
"""A foreground Dice below this, where even majority vote does far better, means that classes were swapped or lost."""


@dataclass(frozen=True)
class Task:
    """What to learn from, and what to score on.

    Attributes
    ----------
    train : the raters' labels; truth is attached only for the method ``clean``
    held_out : other items, with images and truth
    confusion : (items, raters, classes, classes) the raters' true confusion there, or None where it is unknown
    """

    train: Annotations
    held_out: Annotations
    confusion: np.ndarray | None = None


@dataclass(frozen=True)
class Row:
    """A line of the table: a method with options, under a name of its own."""

    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""

    @property
    def label(self) -> str:
        return self.name or self.method


@dataclass(frozen=True)
class Experiment:
    """A table to be made: every row in every setting, once per seed.

    Attributes
    ----------
    task : (setting, seed, quick) to the data
    training : arguments of ``Segmenter`` for all rows; ``quick`` replaces some of them
    paper : the paper's figures by (setting, row label), such as ``{("dense", "pixel-cm"): {"dice": 0.829}}``
    notes : what a reader must know, one sentence each
    """

    name: str
    title: str
    task: Callable[[str, int, bool], Task]
    settings: tuple[str, ...]
    rows: tuple[Row, ...]
    seeds: tuple[int, ...] = (0, 1, 2)
    training: Mapping[str, Any] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)
    paper: Mapping[tuple[str, str], Mapping[str, float]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def run_experiment(
    experiment: Experiment,
    folder: Path,
    *,
    quick: bool = False,
    seeds: Sequence[int] | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Run what is not yet done, and write ``<name>.json``, ``<name>.md`` and ``<name>.png`` into the folder.

    Finished combinations lie in ``<folder>/.<name>/`` and are not run again; delete that folder to start over.
    """
    seeds = list(seeds if seeds is not None else experiment.seeds)[: 1 if quick else None]
    training = {**experiment.training, **(experiment.quick if quick else {})}
    name = f"{experiment.name}-quick" if quick else experiment.name
    done = []
    for setting in experiment.settings:
        for seed in seeds:
            task: Task | None = None
            for row in experiment.rows:
                kept = folder / f".{name}" / f"{setting}-{row.label}-{seed}.json"
                asked = {"method": row.method, "options": dict(row.options), **training}
                result = _finished(kept, asked)
                if result is None:
                    task = task or experiment.task(setting, seed, quick)
                    result = {"asked": asked, **_score(task, row, seed, training)}
                    with atomic(kept) as temporary:
                        temporary.write_text(json.dumps(result))
                tell(f"{setting}, seed {seed}, {row.label}: Dice {result['dice']:.4f}")
                done.append({"setting": setting, "method": row.label, "seed": seed, **result})
    table = {
        "experiment": name,
        "title": experiment.title,
        "notes": list(experiment.notes),
        "environment": environment(),
        "training": dict(training),
        "rows": [
            _summary(experiment, setting, row, done) for setting in experiment.settings for row in experiment.rows
        ],
    }
    write_results(folder, name, table)
    return table


def _finished(path: Path, asked: dict[str, Any]) -> dict[str, Any] | None:
    """A combination run earlier, if it was asked for in the same way."""
    if not path.is_file():
        return None
    result = json.loads(path.read_text())
    return result if result["asked"] == json.loads(json.dumps(asked)) else None


def _score(task: Task, row: Row, seed: int, training: Mapping[str, Any]) -> dict[str, Any]:
    model = Segmenter(method=row.method, seed=seed, progress=False, **training, **row.options)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AnnotruthWarning)  # kept in the result instead
        model.fit(task.train)
    wall_time = time.perf_counter() - started
    images = task.held_out.images
    score = dice(model.predict(images), task.held_out.truth, n_classes=len(task.train.classes))
    result = {
        "dice": score,
        "swapped": float(score < SWAPPED_BELOW),
        "wall_time": wall_time,
        "warnings": model.warnings_,
    }
    if task.confusion is not None:
        result["cm_rmse"] = float(confusion_rmse(model.confusion(images), task.confusion))
    return result


def _summary(experiment: Experiment, setting: str, row: Row, done: list[dict[str, Any]]) -> dict[str, Any]:
    mine = [result for result in done if (result["setting"], result["method"]) == (setting, row.label)]
    metrics = [metric for metric in ("dice", "cm_rmse", "wall_time") if metric in mine[0]]
    spread: dict[str, Any] = {
        metric: {
            "mean": float(np.mean([result[metric] for result in mine])),
            "sd": float(np.std([result[metric] for result in mine], ddof=1)) if len(mine) > 1 else 0.0,
            "each": [round(result[metric], 5) for result in mine],
        }
        for metric in metrics
    }
    return {
        "setting": setting,
        "method": row.label,
        "options": dict(row.options),
        **spread,
        "swapped": int(sum(result["swapped"] for result in mine)),
        "warned": int(sum(bool(result["warnings"]) for result in mine)),
        "seeds": [result["seed"] for result in mine],
        "paper": dict(experiment.paper.get((setting, row.label), {})),
    }
