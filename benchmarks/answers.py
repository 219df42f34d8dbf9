"""Dawid-Skene beside crowd-kit, on made-up and on real answers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from crowdkit.aggregation import DawidSkene as CrowdKit

import annotruth as at
from benchmarks import data
from benchmarks.measure import Row, in_fresh_process, seconds

ITERATIONS = 20


def run(n_answers: int) -> Iterator[Row]:
    """Compare on so many answers of 500 workers, 5 classes."""
    found, truth = data.answers(n_answers, 500, 5, per_item=5)
    annotations = data.table(found, len(truth), 500, 5)
    frame = pd.DataFrame({"task": found.item, "worker": found.rater, "label": found.label})

    def fuse() -> Any:
        return at.DawidSkene(max_iter=ITERATIONS, tol=0).fit(annotations).predict_proba()

    def crowd_kit() -> Any:
        return CrowdKit(n_iter=ITERATIONS, tol=-np.inf).fit_predict_proba(frame)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = crowd_kit().sort_index().sort_index(axis=1).to_numpy()
        difference = float(np.abs(fuse() - expected).max())
        rounds = [(seconds(crowd_kit), seconds(fuse, repeats=4)) for _ in range(2)]
    peer, ours = (min(times) for times in zip(*rounds))
    work = f"Dawid-Skene, {n_answers:,} answers, 500 workers, 5 classes, {ITERATIONS} iterations"
    details = {"seconds": ours, "peer seconds": peer, "largest difference of posteriors": difference}
    yield Row(work, "crowd-kit", peer / ours, "× faster", 30, same=difference <= 1e-6, details=details)


def large(sizes: list[int]) -> tuple[list[Row], dict[int, float]]:
    """Time and memory of growing numbers of answers, of 20,000 workers and 10 classes; times by size."""
    runs = {size: in_fresh_process("dawid_skene", *map(str, (size, 20_000, 10, 10, ITERATIONS))) for size in sizes}
    times = {size: run["seconds"] for size, run in runs.items()}
    first, last = sizes[0], sizes[-1]
    growth = (times[last] / times[first]) / (last / first)
    work = f"Dawid-Skene, {last:,} answers, 20,000 workers, 10 classes, {ITERATIONS} iterations"
    memory = Row(work, "none can", runs[last]["extra"] / 2**30, "GB", 6, at_most=True, details=runs[last])
    details = {f"seconds for {size:,}": taken for size, taken in times.items()}
    linear = Row(
        f"the same, from {first:,} answers", "itself, per answer", growth, "× the time", 1.1, True, details=details
    )
    return [memory, linear], times


def real(folder: Path) -> Iterator[Row]:
    """Accuracy on real answers: tables NAME_answers.csv (item, worker, label) and NAME_truth.csv, at any depth."""
    for path in sorted(folder.rglob("*_answers.csv")):
        name = path.name.removesuffix("_answers.csv")
        if name not in ("bluebirds", "dog_breed"):
            continue
        frame = pd.read_csv(path).rename(columns={"worker": "rater"})
        truth = pd.read_csv(path.with_name(f"{name}_truth.csv")).set_index("item")["truth"]
        annotations = at.Annotations.from_table(frame, truth=truth)
        known = annotations.truth >= 0
        right = {
            estimator: float((estimator.fit(annotations).predict() == annotations.truth)[known].mean())
            for estimator in (at.DawidSkene(), at.MajorityVote())
        }
        ours, majority = right.values()
        labels = CrowdKit(n_iter=100).fit_predict(frame.rename(columns={"item": "task", "rater": "worker"}))
        peer = float((labels.reindex(truth.index) == truth).mean())
        details = {"accuracy": ours, "crowd-kit": peer, "majority": majority, "items": int(known.sum())}
        yield Row(
            f"accuracy on {name}", "crowd-kit Dawid-Skene", 100 * (ours - peer), "points above", 0, details=details
        )
        if name == "bluebirds":
            gain = 100 * (ours - majority)
            yield Row(f"accuracy on {name}", "majority vote", gain, "points above", 10, details=details)
