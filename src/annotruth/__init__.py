"""annotruth learns the truth from annotators who disagree.

The names here are the public surface. They load on first use, so that ``annotruth fuse`` and ``annotruth check``
never wait for PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from annotruth.fusion.other_answers import listed_models
from annotruth.fusion.registry import listed_estimators

__version__ = "0.2.0.dev0"

_HOME = {
    "Annotations": "annotruth.data.annotations",
    "Comparisons": "annotruth.data.comparisons",
    "Findings": "annotruth.data.findings",
    "Marks": "annotruth.data.marks",
    "load": "annotruth.io",
    **{estimator.class_name: "annotruth.fusion" for estimator in listed_estimators().values()},
    **{model.class_name: "annotruth.fusion" for model in listed_models().values()},
    "fuse_with": "annotruth.fusion",
    "Segmenter": "annotruth.training",
    "Classifier": "annotruth.training",
    "Ensemble": "annotruth.training",
    "load_model": "annotruth.training",
    "compare": "annotruth.choosing",
    "next_labels": "annotruth.choosing",
    "report": "annotruth.reporting",
}

__all__ = [*_HOME, "__version__"]

if TYPE_CHECKING:
    from annotruth.data.annotations import Annotations as Annotations


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'annotruth' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
