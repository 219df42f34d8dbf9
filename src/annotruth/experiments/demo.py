"""The demo: handwritten digits, five simulated raters, four ways to learn from them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path

from annotruth.errors import IdentifiabilityWarning
from annotruth.experiments.core.task import Scale
from annotruth.experiments.data.digits import SETTINGS, digits_task
from annotruth.io import atomic
from annotruth.metrics import confusion_rmse, dice
from annotruth.reporting import report
from annotruth.training import Segmenter

METHODS = ("clean", "pixel-cm", "majority", "mean")
SCALE = Scale({"train": 500, "test": 300}, {"max_epochs": 16})
"""Fewer digits than the table has: under four minutes on two cores."""

QUICK = Scale({"train": 40, "test": 20}, {"max_epochs": 2})
"""Enough to see that everything works, and to learn next to nothing."""

Scores = dict[str, dict[str, dict[str, float]]]


def run_demo(
    folder: Path,
    seed: int = 0,
    progress: bool = True,
    tell: Callable[[str], None] = lambda line: None,
    quick: bool = False,
) -> Scores:
    """Train every method on dense labels and on one label per image; write scores.json and report.html.

    The held-out digits choose nothing: training stops by the noisy labels of its own digits.

    Returns
    -------
    ``{"dense": {method: {"dice": …, "cm_rmse": …}}, "one-label": {…}}``: foreground Dice on held-out digits, and the
    error of the raters' confusion matrices there
    """
    scale = QUICK if quick else SCALE
    scores: Scores = {setting: {} for setting in SETTINGS}
    for setting, arguments in SETTINGS.items():
        task = digits_task(seed=seed, **scale.sizes, **arguments)
        assert task.confusion is not None
        for method in METHODS:
            if method == "clean" and setting != "dense":
                scores[setting][method] = scores["dense"][method]  # the truth is the same, whoever labelled
                continue
            tell(f"{setting}: training {method}")
            model = Segmenter(method=method, seed=seed, progress=progress, **scale.training)
            with warnings.catch_warnings():
                # Baselines mistake the raters' errors for truth and then doubt the raters; the scores say so plainly.
                if method != "pixel-cm":
                    warnings.simplefilter("ignore", IdentifiabilityWarning)
                model.fit(task.train)
            images = task.held_out.images
            scores[setting][method] = {
                "dice": round(dice(model.predict(images), task.held_out.truth), 4),
                "cm_rmse": round(float(confusion_rmse(model.confusion(images), task.confusion)), 4),
            }
            if (setting, method) == ("dense", "pixel-cm"):
                shown, cases = model, task.held_out
    with atomic(folder / "scores.json") as temporary:
        temporary.write_text(json.dumps(scores, indent=2) + "\n")
    shown.save(folder / "model.annotruth")
    report(shown, cases, folder / "report.html", scores=scores)
    return scores
