"""Work done in a process of its own: ``python -m benchmarks.tasks NAME ARGUMENTS`` prints a line of JSON."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import annotruth as at
from annotruth.parallel.threads import thread_count
from benchmarks import data
from benchmarks.measure import PeakMemory


def first_call(size: int) -> dict[str, Any]:
    """Time of the first fusion of a process, and of the second: the difference is compiling, or loading from disk."""
    annotations = at.Annotations.from_masks(data.volumes(size, 2)[None])
    times = []
    for _ in range(2):
        start = time.perf_counter()
        at.STAPLE().fit(annotations).predict_proba()
        times.append(time.perf_counter() - start)
    return {"first": times[0], "second": times[1]}


def staple_memory(size: int, n_classes: int) -> dict[str, Any]:
    """Peak memory of a fusion beyond its input, and the size of its output."""
    annotations = at.Annotations.from_masks(data.volumes(size, n_classes)[None], classes=n_classes)
    at.STAPLE().fit(at.Annotations.from_masks(data.volumes(72, n_classes)[None], classes=n_classes)).predict_proba()
    with PeakMemory() as peak:
        posterior = at.STAPLE().fit(annotations).predict_proba()
    return {"extra": peak.extra, "output": posterior.nbytes}


def dawid_skene(n_answers: int, n_workers: int, n_classes: int, per_item: int, n_iter: int) -> dict[str, Any]:
    """Time and memory of Dawid-Skene on many answers."""
    found, truth = data.answers(n_answers, n_workers, n_classes, per_item)
    annotations = data.table(found, len(truth), n_workers, n_classes)
    some = annotations.take(range(min(len(truth), 2**18 // per_item + 1)))  # enough to compile what many answers need
    at.DawidSkene(max_iter=1, tol=0).fit(some).predict_proba()
    del some
    with PeakMemory() as peak:
        start = time.perf_counter()
        posterior = at.DawidSkene(max_iter=n_iter, tol=0).fit(annotations).predict_proba()
        taken = time.perf_counter() - start
    right = float((posterior.argmax(axis=1) == truth).mean())
    return {"seconds": taken, "extra": peak.extra, "accuracy": right, "threads": thread_count()}


def import_all(source: str, output: str, images: str | None = None) -> dict[str, Any]:
    """Time of an import, and its peak memory beyond what libraries take."""
    from annotruth.io import import_source

    with PeakMemory() as peak:
        start = time.perf_counter()
        imported = import_source(source, output, **({} if images is None else {"images": images}))
        taken = time.perf_counter() - start
    assert not imported.skipped
    return {"seconds": taken, "extra": peak.extra, "items": imported.items}


def load_all(source: str) -> dict[str, Any]:
    """Time of reading an export's polygons as numbers, without painting masks."""
    from pathlib import Path

    from annotruth.io.problems import refuse
    from annotruth.io.sources.cvat import CvatShapes

    start = time.perf_counter()
    contents = CvatShapes().read(Path(source), refuse)
    loaded = time.perf_counter() - start
    for item in contents.items:
        for mask in item.masks.values():
            for shape in mask.read.args[0]:  # type: ignore[attr-defined]
                shape.points()
    return {"seconds": time.perf_counter() - start, "loaded": loaded}


if __name__ == "__main__":
    known = {task.__name__: task for task in (first_call, staple_memory, dawid_skene, import_all, load_all)}
    numbers = [int(argument) if argument.isdigit() else argument for argument in sys.argv[2:]]
    print(json.dumps(known[sys.argv[1]](*numbers)))  # type: ignore[operator]
