"""Noisy digits with five simulated raters: the bundled data of the demo and of the papers' toy experiments."""

from __future__ import annotations

from typing import Any

from annotruth.experiments.table import Experiment, Row, Task
from annotruth.simulate import noisy_digits, simulate_masks

SETTINGS = ("dense", "one-label")
"""Every rater labels every digit, or one rater, drawn at random, labels each."""
TRAINING: dict[str, Any] = {"max_epochs": 16}
NOTE = "Raters are simulated: good, over, under, wrong, blank. The good rater's masks are the truth itself."


def digits_task(setting: str, seed: int, train: int = 1000, test: int = 500) -> Task:
    """Digits to learn from and digits held out; both, and the raters, depend on the seed."""
    images, truth, _ = noisy_digits(train + test, seed=seed)
    seen = simulate_masks(truth[:train], keep="all" if setting == "dense" else 1, seed=seed)
    held_out = simulate_masks(truth[train:], seed=seed + 1)
    classes = ("background", "digit")
    return Task(
        train=seen.annotations(images=images[:train], classes=classes),
        held_out=held_out.annotations(images=images[train:], classes=classes),
        confusion=held_out.confusion_per_item,
    )


DEMO_SEEDS = Experiment(
    name="demo-seeds",
    title="The demo over ten seeds: is a class ever swapped?",
    task=lambda setting, seed, quick: digits_task(setting, seed, *((200, 100) if quick else ())),
    settings=SETTINGS,
    rows=tuple(Row(method) for method in ("clean", "pixel-cm", "majority", "mean")),
    seeds=tuple(range(10)),
    training=TRAINING,
    quick={"max_epochs": 3},
    notes=(NOTE, "1,000 digits to learn from, 500 held out, other digits and other raters' masks with every seed."),
)
