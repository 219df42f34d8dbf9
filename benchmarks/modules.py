"""Which of our modules a job goes through: `python -m benchmarks.modules` writes docs/results/modules.md.

A module counts if any function of its own runs, while nothing is being imported, in a training of a case folder, a
fusion of one, or a classifier's fit; compiled kernels count when Python calls them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import annotruth
from benchmarks.measure import ROOT

SOURCE = str(Path(annotruth.__file__).parent) + "/"
MOST = {"train": 25, "fuse": 15}
"""Modules that a job should go through at most."""
FOLDERS = (
    *(
        "cli",
        "io",
        "data",
        "",
        "parallel",
        "fusion",
        "methods",
        "nn",
        "training",
        "metrics",
        "reporting",
        "experiments",
    ),
)
"""In the order in which a job meets them."""
TITLES = {
    "train": "annotruth train cases/",
    "fuse": "annotruth fuse cases/",
    "classify": "Classifier().fit(X, answers)",
    "segment": "Segmenter().fit(annotations)",
    "staple": "STAPLE().fit(annotations).predict_proba()",
}
DRAWN = ("train", "fuse", "classify")
"""The others are the first two without files and command line."""


class Tracer:
    """Notes whose functions run, apart from what runs while a module is imported."""

    def __init__(self) -> None:
        self.seen: dict[str, set[str]] = defaultdict(set)
        self._importing: dict[int, int] = defaultdict(int)

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code, thread = frame.f_code, threading.get_ident()
        if code.co_name == "<module>":
            self._importing[thread] += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not self._importing[thread] and code.co_filename.startswith(SOURCE):
            self.seen[code.co_filename.removeprefix(SOURCE)].add(code.co_qualname)


def traced(job: Callable[[], None]) -> dict[str, list[str]]:
    """The modules that a job goes through, with the functions of each that ran."""
    tracer = Tracer()
    threading.setprofile(tracer)
    sys.setprofile(tracer)
    try:
        job()
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return {module: sorted(functions) for module, functions in sorted(tracer.seen.items())}


def job_of(name: str, folder: Path) -> Callable[[], None]:
    """What is traced, on a small data set in a folder."""
    if name == "classify":
        return _classify
    if name in ("segment", "staple"):
        return partial({"segment": _segment, "staple": _staple}[name], _digits())

    def run() -> None:
        from annotruth.cli import main

        more = ["--epochs", "2"] if name == "train" else []
        sys.argv = ["annotruth", name, str(folder / "cases"), "-o", str(folder / name), "-q", *more]
        main()

    return run


def make_cases(folder: Path) -> None:
    """Two dozen digits by five simulated raters, as a case folder of NPY files."""
    from annotruth.io import write_case_folder
    from annotruth.simulate import noisy_digits, simulate_masks

    images, truth, _ = noisy_digits(24)
    write_case_folder(folder, simulate_masks(truth).annotations(images=images))


def _classify() -> None:
    import numpy as np

    from annotruth import Classifier

    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 60)
    features = np.eye(2)[truth] + rng.normal(0, 0.2, (60, 2))
    answers = np.where(rng.random((60, 3)) < 0.8, truth[:, None], 1 - truth[:, None])
    Classifier(max_epochs=2, progress=False).fit(features, answers)


def _digits() -> Any:
    from annotruth.simulate import noisy_digits, simulate_masks

    images, truth, _ = noisy_digits(24)
    return simulate_masks(truth).annotations(images=images)


def _segment(digits: Any) -> None:
    from annotruth import Segmenter

    Segmenter(max_epochs=2, progress=False).fit(digits)


def _staple(digits: Any) -> None:
    from annotruth import STAPLE

    STAPLE().fit(digits).predict_proba()


def page(found: dict[str, dict[str, list[str]]]) -> str:
    """The result in words."""
    made = datetime.now(UTC).strftime("%Y-%m-%d")
    lines = ["# The modules a job goes through", "", f"Made by `python -m benchmarks.modules` on {made}.", ""]
    lines += [" ".join((__doc__ or "").split("\n\n")[1].split()), "", "![The modules of each job](modules.png)", ""]
    for name, modules in found.items():
        target = f" (target: at most {MOST[name]})" if name in MOST else ""
        size = sum(len((Path(SOURCE) / module).read_text().splitlines()) for module in modules)
        lines += [f"## `{TITLES[name]}`: {len(modules)} modules{target}", "", _size(size, name), ""]
        lines += ["| module | functions that ran |", "| --- | ---: |"]
        lines += [f"| `{module}` | {len(functions)} |" for module, functions in modules.items()]
        lines += [""]
    return "\n".join(lines)


def _size(lines: int, name: str) -> str:
    """How much code that is, and what the target would make of it."""
    target = f" In {MOST[name]} modules that would be {lines // MOST[name]} in each." if name in MOST else ""
    return f"They have {lines:,} lines together.{target}"


def draw(path: Path, results: dict[str, dict[str, list[str]]]) -> None:
    """The modules of each job, folder under folder in the way data flow."""
    found = {name: results[name] for name in DRAWN}
    figure = Figure(figsize=(3.6 * len(found), 0.23 * max(map(len, found.values())) + 3.2), layout="constrained")
    for axes, (name, modules) in zip(figure.subplots(1, len(found)), found.items()):
        by_folder: dict[str, list[str]] = defaultdict(list)
        for module in modules:
            folder, slash, rest = module.partition("/")
            by_folder[folder if slash else ""].append(rest or module)
        height = 0.0
        for folder in FOLDERS:
            inside = by_folder.get(folder, [])
            if inside:
                size = len(inside) + 1.2
                axes.add_patch(Rectangle((0, height), 1, size, facecolor="#eef3f8", edgecolor="#4477aa"))
                axes.text(0.03, height + 0.6, f"{folder}/" if folder else "", weight="bold", va="center", fontsize=9)
                for row, module in enumerate(inside):
                    axes.text(0.08, height + 1.5 + row, module.removesuffix(".py"), va="center", fontsize=8)
                height += size
                axes.annotate(
                    "", (0.5, height + 0.55), (0.5, height), arrowprops={"arrowstyle": "->", "color": "#4477aa"}
                )
                height += 0.6
        axes.set(xlim=(0, 1), ylim=(height - 0.6, 0), xticks=[], yticks=[])
        axes.set_title(f"{TITLES[name]}\n{len(modules)} modules", fontsize=9)
        axes.set_frame_on(False)
    figure.savefig(path)


def main() -> None:
    """Trace every job in a process of its own, print the counts and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.modules", description=__doc__)
    parser.add_argument("--trace", choices=TITLES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "results", help="folder of the results")
    options = parser.parse_args()
    if options.trace:
        found = traced(job_of(options.trace, options.folder))
        (options.folder / f"{options.trace}.json").write_text(json.dumps(found))
        return
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        make_cases(Path(folder) / "cases")
        for name, title in TITLES.items():
            command = [sys.executable, "-m", "benchmarks.modules", "--trace", name, "--folder", folder]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
            results[name] = json.loads((Path(folder) / f"{name}.json").read_text())
            sys.stdout.write(f"{title}: {len(results[name])} modules\n")
    (options.output / "modules.md").write_text(page(results))
    draw(options.output / "modules.png", results)


if __name__ == "__main__":
    main()
