"""Train a method on annotations, keep the model, use it."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from annotruth.training.classifier import Classifier
from annotruth.training.expected import ExpectedAnnotator
from annotruth.training.raters import Annotator
from annotruth.training.segmenter import Segmenter
from annotruth.training.storage import read_facts

__all__ = ["Annotator", "Classifier", "ExpectedAnnotator", "Segmenter", "load_model"]


def load_model(path: str | Path, network: nn.Module | None = None) -> Segmenter | Classifier:
    """Load a model that ``save`` wrote. One trained around your own network needs that network again."""
    kind = Classifier if read_facts(Path(path))["kind"] == "Classifier" else Segmenter
    return kind.load(path, network)
