"""The demo: handwritten digits, five simulated raters, four ways to learn from them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from annotruth.errors import IdentifiabilityWarning
from annotruth.io import atomic
from annotruth.metrics import confusion_rmse, dice
from annotruth.report import report
from annotruth.simulate import noisy_digits, simulate_masks
from annotruth.training import Segmenter

METHODS = ("clean", "pixel-cm", "majority", "mean")
SETTINGS: dict[str, Any] = {"dense": "all", "one-label": 1}
TRAIN, TEST = 1000, 500

Scores = dict[str, dict[str, dict[str, float]]]


def run_demo(
    folder: Path, seed: int = 0, progress: bool = True, tell: Callable[[str], None] = lambda line: None
) -> Scores:
    """Train every method on dense labels and on one label per image; write scores.json and report.html.

    The held-out digits choose nothing: training stops by the noisy labels of its own digits.

    Returns
    -------
    ``{"dense": {method: {"dice": …, "cm_rmse": …}}, "one-label": {…}}``: foreground Dice on held-out digits, and the
    error of the raters' confusion matrices there
    """
    images, truth, _ = noisy_digits(TRAIN + TEST, seed=seed)
    held_out = simulate_masks(truth[TRAIN:], seed=seed + 1)
    assert held_out.confusion_per_item is not None
    scores: Scores = {}
    for setting, keep in SETTINGS.items():
        annotations = simulate_masks(truth[:TRAIN], keep=keep, seed=seed).annotations(images=images[:TRAIN])
        scores[setting] = {}
        for method in METHODS:
            tell(f"{setting}: training {method}")
            model = Segmenter(method=method, max_epochs=20, seed=seed, progress=progress)
            with warnings.catch_warnings():
                # Baselines mistake the raters' errors for truth and then doubt the raters; the scores say so plainly.
                if method != "pixel-cm":
                    warnings.simplefilter("ignore", IdentifiabilityWarning)
                model.fit(annotations)
            scores[setting][method] = {
                "dice": round(dice(model.predict(images[TRAIN:]), truth[TRAIN:]), 4),
                "cm_rmse": round(confusion_rmse(model.confusion(images[TRAIN:]), held_out.confusion_per_item), 4),
            }
            if (setting, method) == ("dense", "pixel-cm"):
                shown = model
    with atomic(folder / "scores.json") as temporary:
        temporary.write_text(json.dumps(scores, indent=2) + "\n")
    shown.save(folder / "model.annotruth")
    report(shown, held_out.annotations(images=images[TRAIN:]), folder / "report.html", scores=scores)
    return scores
