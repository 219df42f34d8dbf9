"""The ways of data through the modules, drawn: `python -m tools.ways` writes docs/images/way-*.svg.

A test fails when a module that is drawn is not there.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

ROOT = Path(__file__).parents[1]
BLUE, GREY = "#4477aa", "#555555"


class Stop(NamedTuple):
    """A module on the way, what happens there, and what goes on to the next."""

    modules: tuple[str, ...]
    what: str
    hands_on: str = ""


WAYS: dict[str, tuple[str, tuple[Stop, ...]]] = {
    "train": (
        "annotruth train cases/ -o run",
        (
            Stop(("cli/train.py",), "asks which source it is"),
            Stop(
                ("io/sources/case_folder.py", "io/case_files.py", "io/dataset.py"),
                "reads the heads of all files",
                "Annotations; pixels are read later",
            ),
            Stop(
                ("training/runs.py", "methods/registry.py"),
                "whatever is wrong is said here; the method is resolved once",
                "method_",
            ),
            Stop(
                ("training/datasets.py", "io/files.py"),
                "every file is read once; masks become targets (method.mask_targets), images z-scores",
                "batches of images and labels",
            ),
            Stop(
                ("training/trainer.py", "training/module.py"),
                "epochs, checkpoints, early stopping; each step asks the method for its loss",
            ),
            Stop(
                ("methods/confusion/pixel_cm.py", "methods/warmup.py"),
                "loss(model, batch, progress), by the stage of the warm-up",
            ),
            Stop(
                ("nn/backbones.py", "nn/annotators/pixel.py", "nn/confusion/pixel.py", "nn/losses/noisy_labels.py"),
                "log-probabilities of the truth, matrices of the raters, the likelihood of their labels",
                "a trained model: module_",
            ),
            Stop(
                ("training/rater_counts.py", "training/raters.py"),
                "all masks against the estimated truth: matrices, skill, intervals",
            ),
            Stop(
                ("training/diagnostics.py", "fusion/identifiability.py"),
                "why the result may be wrong, in words",
            ),
            Stop(("training/storage.py",), "run/model.annotruth: safetensors and JSON"),
        ),
    ),
    "fuse": (
        "annotruth fuse cases/ -o fused/",
        (
            Stop(("cli/fuse.py", "fusion/registry.py"), "makes the estimator by its name"),
            Stop(
                ("io/sources/case_folder.py",),
                "sound cases; the others are set aside and named",
                "Annotations",
            ),
            Stop(
                ("fusion/folder/masks.py", "parallel/workers.py"),
                "goes through the cases, here, in processes or on a cluster",
            ),
            Stop(
                ("fusion/stores.py", "fusion/votes.py"),
                "count: distinct tuples of votes, and how often each occurs",
                "Votes: small, whatever the images' size",
            ),
            Stop(
                ("fusion/staple.py", "fusion/dawid_skene.py", "fusion/em.py"),
                "estimate: expectation-maximisation, its loop in one file",
                "FusionState: whatever an estimator learns",
            ),
            Stop(
                ("fusion/folder/masks.py", "parallel/workers.py"),
                "posterior of every case, given the state; estimators that refine look at pixels first",
            ),
            Stop(("fusion/raters.py", "fusion/identifiability.py"), "skill and intervals, ranks, warnings"),
            Stop(("fusion/folder/results.py", "io/writing.py"), "labels, probabilities, raters.csv, fusion.json"),
        ),
    ),
    "classifier": (
        "Classifier().fit(X, answers)",
        (
            Stop(("training/inputs.py",), "whatever people have", "Annotations: a table with features or images"),
            Stop(("training/classifier.py", "methods/registry.py"), "checks; the method is resolved once", "method_"),
            Stop(
                ("training/datasets.py",),
                "answers become targets (method.label_targets), features z-scores",
                "batches, each with the raters who answered in it",
            ),
            Stop(("training/trainer.py", "training/module.py"), "epochs, early stopping; each step a loss"),
            Stop(
                ("methods/confusion/global_cm_table.py", "methods/em/steps.py", "fusion/em.py"),
                "before each epoch raters are counted anew; each step learns from the posterior",
                "a trained model: module_",
            ),
            Stop(
                ("training/rater_counts.py", "training/raters.py"),
                "all answers against the estimated truth: matrices, skill, intervals",
            ),
            Stop(("training/diagnostics.py", "fusion/identifiability.py"), "why the result may be wrong, in words"),
        ),
    ),
}


def draw(path: Path, title: str, stops: tuple[Stop, ...]) -> None:
    """One way, from top to bottom."""
    heights = [0.62 + 0.24 * -(-len(stop.modules) // 2) for stop in stops]
    gaps = [0.55 if stop.hands_on else 0.32 for stop in stops]
    total = sum(heights) + sum(gaps[:-1]) + 0.5
    figure = Figure(figsize=(7.6, 0.82 * total))
    axes = figure.add_axes((0.01, 0.01, 0.98, 0.98))
    axes.set(xlim=(0, 10), ylim=(total, 0))
    axes.axis("off")
    axes.text(5, 0.18, title, family="monospace", ha="center", va="center", fontsize=11, weight="bold")
    top = 0.5
    for number, (stop, height, gap) in enumerate(zip(stops, heights, gaps)):
        box = FancyBboxPatch((0.25, top), 9.5, height, boxstyle="round,pad=0,rounding_size=0.1", fc="#eef3f8", ec=BLUE)
        axes.add_patch(box)
        pairs = [stop.modules[start : start + 2] for start in range(0, len(stop.modules), 2)]
        for row, pair in enumerate(pairs):
            names = " · ".join(pair)
            axes.text(0.5, top + 0.26 + 0.24 * row, names, family="monospace", va="center", fontsize=8.5, color=BLUE)
        axes.text(0.5, top + height - 0.24, stop.what, va="center", fontsize=9)
        top += height
        if number < len(stops) - 1:
            axes.annotate("", (5, top + gap), (5, top), arrowprops={"arrowstyle": "-|>", "color": GREY})
            axes.text(5.2, top + gap / 2, stop.hands_on, va="center", fontsize=8.5, style="italic", color=GREY)
        top += gap
    figure.savefig(path)


def missing() -> list[str]:
    """Modules that are drawn but not there."""
    source = ROOT / "src" / "annotruth"
    drawn = {module for _, stops in WAYS.values() for stop in stops for module in stop.modules}
    return sorted(module for module in drawn if not (source / module).is_file())


def main() -> None:
    """Draw all ways."""
    matplotlib.rcParams["svg.hashsalt"] = "annotruth"  # the same picture is the same file
    matplotlib.rcParams["svg.fonttype"] = "none"
    for name, (title, stops) in WAYS.items():
        path = ROOT / "docs" / "images" / f"way-{name}.svg"
        draw(path, title, stops)
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
