"""Stand-ins for trained models, of masks and of label tables; and coarse drawings to train a real one on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.ndimage import binary_dilation, binary_erosion

from annotruth.data.annotations import Annotations
from annotruth.data.confusion import confusion_counts
from annotruth.simulate import noisy_digits, simulate_drawings


@dataclass
class FakeAnnotator:
    confusion: np.ndarray
    interval: tuple[float, float] | None
    pixel_wise: bool
    labelled: int = 4
    confusion_interval: np.ndarray | None = None

    @property
    def skill(self) -> float:
        return float(np.diag(self.confusion).mean())

    def confusion_map(self, image: np.ndarray, **told: Any) -> np.ndarray | None:
        if not self.pixel_wise:
            return None
        spatial = image.shape[1:]
        return np.broadcast_to(self.confusion.reshape(*self.confusion.shape, *[1] * len(spatial)),
                               (*self.confusion.shape, *spatial))  # fmt: skip


class FakeModel:
    """Knows the truth of the items it was made with, up to a certainty of 0.9."""

    def __init__(self, ann: Annotations, truth: np.ndarray, pixel_wise: bool) -> None:
        self.method = "pixel-cm" if pixel_wise else "global-cm"
        self.classes_, self.raters_ = ann.classes, ann.raters
        self.settings_: dict[str, Any] = {"method": self.method, "seed": 0, "network": {"channels": [8, 16]}}
        self.history_ = pd.DataFrame(
            {"epoch": [0, 1, 2], "train_loss": [1.0, 0.5, 0.4], "val_loss": [np.nan, 0.6, 0.5], "trace": [2, 1.9, 1.8]}
        )
        self.warnings_: list[str] = []
        n_classes = len(ann.classes)
        self.truth_of = {ann.item_image(i).tobytes(): truth[i] for i in range(len(ann))}
        self.annotators_ = {}
        for r, rater in enumerate(ann.raters):
            masks = np.stack([ann.item_masks(i)[r] for i in range(len(ann))])
            counts = confusion_counts(truth, masks, n_classes) + 1e-3
            interval = (0.4, 0.9) if r == 0 else None
            self.annotators_[rater] = FakeAnnotator(counts / counts.sum(1, keepdims=True), interval, pixel_wise)

    def predict_proba(self, images: np.ndarray, **told: Any) -> np.ndarray:
        n_classes = len(self.classes_)
        labels = np.stack([self.truth_of[image.tobytes()] for image in images])
        right = np.stack([labels == c for c in range(n_classes)], axis=1)
        return np.where(right, 0.9, 0.1 / (n_classes - 1)).astype(np.float32)


@dataclass
class Study:
    model: FakeModel
    ann: Annotations
    truth: np.ndarray


@pytest.fixture
def make_study() -> Callable[..., Study]:
    """Give a function that makes a small study: boxes of several classes, drawn well, too large, too small."""

    def make(
        n_items: int = 4,
        n_classes: int = 2,
        spatial: tuple[int, ...] = (16, 20),
        raters: tuple[str, ...] = ("good", "over", "under"),
        channels: int = 1,
        pixel_wise: bool = False,
        with_truth: bool = True,
        items: tuple[str, ...] | None = None,
    ) -> Study:
        generator = np.random.default_rng(0)
        truth = np.zeros((n_items, *spatial), dtype=np.uint8)
        for item in truth:
            starts = [generator.integers(1, size // 3) for size in spatial]
            item[tuple(slice(s, s + size // 2) for s, size in zip(starts, spatial))] = generator.integers(1, n_classes)
        drawn = {0: lambda box: box, 1: lambda box: binary_dilation(box, iterations=2), 2: binary_erosion}
        masks = np.stack(
            [[np.where(drawn[r % 3](t > 0), t.max(), 0) for r in range(len(raters))] for t in truth]
        ).astype(np.uint8)
        noise = generator.normal(size=(n_items, channels, *spatial)).astype(np.float32)
        ann = Annotations.from_masks(
            masks, truth[:, None] + 0.2 * noise, raters=raters, items=items,
            classes=["background", *(f"class {c}" for c in range(1, n_classes))], truth=truth if with_truth else None,
        )  # fmt: skip
        return Study(FakeModel(ann, truth, pixel_wise), ann, truth)

    return make


class FakeClassifier:
    """Takes an item's only feature, or its first pixel, for its class, and is 80 % sure of it."""

    method = "global-cm"

    def __init__(self, ann: Annotations, skill: float = 0.7) -> None:
        self.classes_, self.raters_ = np.array(ann.classes), ann.raters
        self.settings_: dict[str, Any] = {"method": self.method}
        self.history_ = pd.DataFrame({"epoch": [0, 1], "train_loss": [1.0, 0.5], "val_loss": [np.nan, 0.6]})
        self.warnings_: list[str] = []
        count = len(ann.classes)
        confusion = np.full((count, count), (1 - skill) / (count - 1))
        np.fill_diagonal(confusion, skill)
        self.annotators_ = {name: FakeAnnotator(confusion, (0.1, 0.9), False, labelled=9) for name in ann.raters}

    def predict_proba(self, ann: Annotations) -> np.ndarray:
        seen = np.array([int(ann.item_image(i).flat[0]) for i in range(len(ann))])
        count = len(ann.classes)
        return np.where(np.arange(count) == seen[:, None], 0.8, 0.2 / (count - 1))


@pytest.fixture
def fake_classifier() -> type[FakeClassifier]:
    """A stand-in for any label table."""
    return FakeClassifier


@pytest.fixture
def make_label_study() -> Callable[..., tuple[FakeClassifier, Annotations]]:
    """Give a function that makes a small label table with its model; the last two items look like other classes."""
    answers = np.array([[0, 0, 1], [1, 1, 1], [2, -1, -1], [0, 0, 0], [-1, -1, -1]])
    seen = np.array([0, 1, 2, 2, 1])

    def make(shape: tuple[int, ...] = (1, 6, 7), **given: Any) -> tuple[FakeClassifier, Annotations]:
        images = np.zeros((5, *shape), dtype=np.float32) + seen.reshape(-1, *[1] * len(shape))
        ann = Annotations.from_answers(answers, images, **{"classes": ["Hund & Katze", "ähnlich", "<b>"], **given})
        return FakeClassifier(ann), ann

    return make


@pytest.fixture(scope="session")
def drawn() -> Annotations:
    """A dozen digits on which ann and bob drew what is there and what is not."""
    images, truth, _ = noisy_digits(12, ink=127)
    drawings = simulate_drawings(truth, positive=0.5, negative=0.3, strength=0, raters=["ann", "bob"])
    return Annotations.from_masks(
        drawings.masks, images, ["ann", "bob"], classes=["none", "digit"], negatives=drawings.negatives
    )
