"""Models of masks: how near their truth comes to the known one, or to that of an expert who was left out.

    python -m benchmarks.masks [--data FOLDER] [--seeds 3] [--share 1]

Prints its table and writes it to docs/results/fusion-masks.md and .json. The folder holds, at any depth,
hippocampus_msd_48x64x48.npz and cfos_wue1_512.npz; without it there are digits only.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import annotruth as at
from annotruth.experiments.data import hippocampus
from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.registry import make_estimator
from annotruth.metrics import dice
from annotruth.simulate import MaskRater, noisy_digits, simulate_masks
from benchmarks.measure import ROOT
from benchmarks.results import write_table

MODELS: dict[str, tuple[str, dict[str, Any], str]] = {
    "majority": ("majority", {}, "dataset"),
    "STAPLE": ("staple", {}, "dataset"),
    "STAPLE, each case alone": ("staple", {}, "case"),
    "STAPLE, random field": ("staple", {"smoothing": 0.5}, "dataset"),
    "STAPLE, graph cut": ("graph-cut-staple", {}, "dataset"),
    "Dawid-Skene": ("dawid-skene", {}, "dataset"),
    "IBCC": ("ibcc", {}, "dataset"),
    "Spatial STAPLE": ("spatial-staple", {}, "dataset"),
    "COLLATE": ("collate", {}, "dataset"),
    "COLLATE, three levels": ("collate", {"levels": 3}, "dataset"),
    "SIMPLE": ("simple", {}, "dataset"),
    "SIMPLE, each case alone": ("simple", {}, "case"),
    "shape-based": ("shape-based", {}, "dataset"),
    "STEPS": ("steps", {}, "dataset"),
    "non-local STAPLE": ("non-local-staple", {}, "dataset"),
}
CROWDS: dict[str, dict[str, Any]] = {
    "five": {"raters": ["good", "over", "under", "wrong", "blank"]},
    "three of five": {"raters": ["good", "over", "under", "wrong", "blank"], "keep": 3},
    "careless": {"raters": ["careless"] * 5, "strength": 2.5},
    "no good one": {"raters": [MaskRater("over", s) for s in (0.3, 0.6)] + [MaskRater("under", s) for s in (0.3, 0.6)]
                    + [MaskRater("wrong", 0.5)]},
}  # fmt: skip
WORDS = (
    "Dice, in %, of the fused masks: the mean over images and foreground classes, then over seeds. *Digits* and "
    "*hippocampus* (slices, two parts): with the truth. Crowds: *five*: one who draws the truth, one too large, one "
    "too small, one in pieces and with parts swapped, one blank; *three of five* of these at each image; *careless*: "
    "five who slip on every other image; *no good one*: two too large, two too small, one in pieces; *specks*: five "
    "who err in 5 to 25 % of the pixels; *moved*: five whose mask lies up to two pixels off, another way in each "
    "image. *cFOS*: five experts, each in turn left out, and compared with the fusion of the other four (12 images). "
    "*Raters* is the mean of the raters themselves. All models have their default settings. While they were written, "
    "seed 0 was looked at, which is not in the table, and two of the cFOS images, which are; one default came of it: "
    "that COLLATE estimates class frequencies."
)


def sets(folder: Path | None, n_seeds: int, share: int) -> Iterator[tuple[str, at.Annotations, np.ndarray]]:
    """Name, annotations, and the masks (items, *spatial) to compare with; a name comes once for each seed."""
    seeds = range(1, n_seeds + 1)
    for seed in seeds:
        images, truth, _ = noisy_digits(100 // share, seed=seed)
        yield from _crowds("digits", images, truth, 2, seed)
    volumes = _find(folder, "hippocampus_msd_48x64x48.npz")
    for seed in seeds if volumes else ():
        images, truth = hippocampus.slices_of_volumes(volumes.parent, seed, (50 // share, 1))[0]
        yield from _crowds("hippocampus", images, truth, 3, seed)
    experts = _find(folder, "cfos_wue1_512.npz")
    if experts:
        with np.load(experts, allow_pickle=False) as found:
            images, masks = found["images"][:: 3 * share, None].astype(np.float32), found["raters"][:: 3 * share]
        for left_out in range(masks.shape[1]):
            others = np.delete(masks, left_out, axis=1)
            yield "cFOS", at.Annotations.from_masks(others, images, classes=2), masks[:, left_out]


def _find(folder: Path | None, name: str) -> Any:
    return None if folder is None else next(iter(sorted(folder.rglob(name))), None)


def _crowds(
    name: str, images: np.ndarray, truth: np.ndarray, n_classes: int, seed: int
) -> Iterator[tuple[str, at.Annotations, np.ndarray]]:
    for crowd, how in CROWDS.items():
        drawn = simulate_masks(truth, n_classes=n_classes, seed=seed, **how)
        yield f"{name}: {crowd}", drawn.annotations(images), truth
    rng = np.random.default_rng(seed)
    wrong = rng.random((len(truth), 5, *truth.shape[1:])) < np.linspace(0.05, 0.25, 5)[:, None, None]
    other = (truth[:, None] + rng.integers(1, n_classes, wrong.shape)) % n_classes
    specks = np.where(wrong, other, truth[:, None]).astype(np.uint8)
    yield f"{name}: specks", at.Annotations.from_masks(specks, images, classes=n_classes), truth
    moved = np.stack([[np.roll(t, rng.integers(-2, 3, 2), axis=(0, 1)) for _ in range(5)] for t in truth])
    yield f"{name}: moved", at.Annotations.from_masks(moved, images, classes=n_classes), truth


def table(folder: Path | None, n_seeds: int, share: int) -> list[dict[str, Any]]:
    """A row for each model, a column for each set."""
    found: dict[str, dict[str, list[float]]] = {}
    for name, drawn, truth in sets(folder, n_seeds, share):
        n_classes = len(drawn.classes)
        scores = {"raters": [float(np.nanmean([dice(m, truth, n_classes) for m in drawn.masks.swapaxes(0, 1)]))]}
        for model, (method, options, scope) in MODELS.items():
            fused: FusionEstimator = make_estimator(method, scope, options).fit(drawn)
            scores[model] = [dice(np.asarray(fused.predict()), truth, n_classes)]
        for model, values in scores.items():
            found.setdefault(model, {}).setdefault(name, []).extend(values)
        print(name, {model: round(100 * values[0], 1) for model, values in scores.items()}, file=sys.stderr, flush=True)
    return [
        {"model": model, **{name: round(100 * float(np.mean(values)), 1) for name, values in by_set.items()}}
        for model, by_set in found.items()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.masks", description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of hippocampi and of experts' nuclei")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--share", type=int, default=1, help="take one image in so many, to try it")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = table(options.data, options.seeds, options.share)
    title, command = "Dice, in %, of models of masks", "python -m benchmarks.masks --data FOLDER"
    write_table(options.output, "fusion-masks", title, command, rows, WORDS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
