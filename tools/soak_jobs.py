"""The jobs of the soak: what is begun, killed and gone on with, and what is compared in the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Job:
    """A job that can be cut off and gone on with.

    Attributes
    ----------
    begin, go_on : words of the command line for an output folder; or what to call with it
    outcome : what is compared, of a folder
    fresh : start it as a new interpreter instead of forking
    weight : how often it is chosen; less for what takes long
    seconds, pace : how long it takes undisturbed, as measured at first, and by the last time that it ran through
    """

    name: str
    begin: Callable[[Path], Any]
    go_on: Callable[[Path], Any]
    outcome: Callable[[Path], Any]
    fresh: bool = False
    weight: int = 5
    wanted: Any = None
    seconds: float = 0.0
    pace: float = 0.0
    kills: Counter[str] = field(default_factory=Counter)
    hindered: Counter[str] = field(default_factory=Counter)
    places: Counter[str] = field(default_factory=Counter)
    finished: int = 0
    identical: int = 0
    troubles: list[str] = field(default_factory=list)


CLUSTER = """
import time
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:
        print(cluster.scheduler_address, flush=True)
        time.sleep(86400)
"""


@contextmanager
def dask_cluster(folder: Path) -> Iterator[str | None]:
    """The address of a small Dask cluster, in processes of its own; None where there is no Dask."""
    (folder / "cluster.py").write_text(CLUSTER)
    with subprocess.Popen(
        [sys.executable, folder / "cluster.py"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        start_new_session=True,
    ) as cluster:  # fmt: skip
        try:
            assert cluster.stdout is not None
            yield cluster.stdout.readline().strip() or None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(cluster.pid, signal.SIGKILL)


def make_jobs(base: Path, dask: str | None) -> list[Job]:
    """Jobs on small data, which are made first."""
    _make_data(base)
    quick = ["--epochs", "4", "--batch-size", "2", "--quiet", "--accelerator", "cpu", "--patience", "4"]

    def training(name: str, words: list[str], *more: str, fresh: bool = False) -> Job:
        def begin(out: Path) -> list[str]:
            return ["train", *words, "-o", str(out), *quick, *more, "--overwrite"]

        def go_on(out: Path) -> list[str]:
            return ["train", *words, "-o", str(out), "--resume", "--quiet", "--accelerator", "cpu", *more[2:]]

        weight = 1 if fresh else 5
        return Job(name, begin, go_on, lambda out: (out / "model.annotruth").read_bytes(), fresh, weight)

    def fusing(name: str, *more: str) -> Job:
        def begin(out: Path) -> list[str]:
            return ["fuse", str(base / "planes"), "-o", str(out), "--quiet", "--overwrite", *more]

        return Job(name, begin, begin, _fused)

    def importing(out: Path) -> list[str]:
        return ["import", str(base / "drawn"), "-o", str(out), "--quiet", "--overwrite"]

    planes, volumes = str(base / "planes"), str(base / "volumes")
    table = [str(base / "answers.csv"), "--features", str(base / "features.npy")]
    return [
        training("train, planes", [planes], "--method", "pixel-cm"),
        training("train, volumes", [volumes], "--method", "mean"),
        training("train, a label table", table, "--method", "global-cm"),
        fusing("fuse"),
        fusing("fuse, two processes", "--jobs", "2"),
        *([] if dask is None else [fusing("fuse, Dask", "--dask", dask)]),
        Job("import", importing, importing, _files),
        Job("reproduce", _reproduce, _reproduce, _table, weight=2),
        training("train, two processes", [planes], "--method", "mean", "--devices", "2", fresh=True),
    ]


def _make_data(base: Path) -> None:
    import numpy as np

    from annotruth.io import write_case_folder
    from annotruth.simulate import simulate_masks

    rng = np.random.default_rng(0)
    for name, shape, count in (("planes", (24, 24), 12), ("volumes", (8, 8, 8), 6)):
        truth = np.zeros((count, *shape), np.uint8)
        for mask in truth:
            corner = rng.integers(0, min(shape) // 2, len(shape))
            mask[tuple(slice(start, start + min(shape) // 2) for start in corner)] = 1
        images = (truth[:, None] + rng.normal(0, 0.3, (count, 1, *shape))).astype(np.float32)
        annotations = simulate_masks(truth, ("good", "over", "under"), keep="all").annotations(images=images)
        write_case_folder(base / name, annotations, suffix=".npy")
    answers = "".join(f"{n},r{r},{'ab'[int(n % 2) ^ int(rng.random() < 0.1)]}\n" for n in range(200) for r in range(4))
    (base / "answers.csv").write_text(f"item,rater,label\n{answers}")
    np.save(base / "features.npy", np.arange(200)[:, None] % 2 + rng.normal(0, 0.3, (200, 3)))
    for rater in ("ann", "bob", "cy"):
        (base / "drawn" / rater).mkdir(parents=True)
        for case in range(150):
            shapes = [{"label": "cell", "points": rng.uniform(0, 64, (5, 2)).tolist(), "shape_type": "polygon"}]
            drawing = {"shapes": shapes, "imagePath": f"{case}.png", "imageHeight": 64, "imageWidth": 64}
            (base / "drawn" / rater / f"{case}.json").write_text(json.dumps(drawing))


def _files(out: Path) -> dict[str, Any]:
    """Every file of a folder."""
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def _fused(out: Path) -> dict[str, Any]:
    """Every file of a fusion; but for how long it took."""
    files = _files(out)
    content = json.loads(files["fusion.json"])
    del content["seconds"]
    return {**files, "fusion.json": content}


def _reproduce(out: Path) -> Callable[[], None]:
    def run() -> None:
        from annotruth.experiments import run_experiment
        from annotruth.experiments.core.columns import DICE
        from annotruth.experiments.core.experiment import Experiment, Row
        from annotruth.experiments.core.task import Scale
        from annotruth.experiments.data import digits

        few = Scale({"train": 16, "test": 6}, {"max_epochs": 2, "batch_size": 8})
        rows = (Row("mean"), Row("pixel-cm"))
        run_experiment(
            Experiment(
                "tiny", "A tiny table", digits.digits_task, {"dense": digits.SETTINGS["dense"]}, rows, (DICE,), few, few
            ),
            out,
        )

    return run


def _table(out: Path) -> list[Any]:
    """The scores; but for how long trainings took."""
    rows = json.loads((out / "tiny.json").read_text())["rows"]
    return [{name: value for name, value in row.items() if name != "wall_time"} for row in rows]
