"""Train a method on annotations, keep the model, use it."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from annotruth.training.classifier import Classifier
from annotruth.training.dense_crf import DenseCRF
from annotruth.training.ensemble import Ensemble, load_files, model_files
from annotruth.training.expected import ExpectedAnnotator
from annotruth.training.raters import Annotator
from annotruth.training.segmenter import Segmenter

__all__ = ["Annotator", "Classifier", "DenseCRF", "Ensemble", "ExpectedAnnotator", "Segmenter", "load_model"]


def load_model(path: str | Path, network: nn.Module | None = None) -> Segmenter | Classifier | Ensemble:
    """Load a model that ``save`` wrote, or that of a run's folder.

    One trained around your own network needs that network again. A folder with runs of several folds (``fold_0``,
    ``fold_1`` …) gives an :class:`Ensemble` of their models.
    """
    ensemble = load_files(model_files(path), network)
    return ensemble if len(ensemble.models) > 1 else ensemble.models[0]
