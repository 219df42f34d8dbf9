"""Train a method on annotations, keep the model, use it."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from annotruth.training.annotators import Annotator
from annotruth.training.segmenter import Segmenter

__all__ = ["Annotator", "Segmenter", "load_model"]


def load_model(path: str | Path, network: nn.Module | None = None) -> Segmenter:
    """Load a model that ``save`` wrote. One trained around your own network needs that network again."""
    return Segmenter.load(path, network)
