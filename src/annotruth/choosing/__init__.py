"""Choose on one's own data: which method to take, found by cross-validation, and what to label next, by whom.

Names load on first use: what to label next can be found out without PyTorch, which comparing methods needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from annotruth.choosing.comparison import Comparison as Comparison
    from annotruth.choosing.cross_validation import DEFAULT_METHODS as DEFAULT_METHODS
    from annotruth.choosing.cross_validation import compare as compare
    from annotruth.choosing.queue import Queue as Queue
    from annotruth.choosing.queue import next_labels as next_labels
    from annotruth.choosing.scores import answer_lengths as answer_lengths
    from annotruth.choosing.verdict import Verdict as Verdict

_HOME = {
    "DEFAULT_METHODS": "annotruth.choosing.cross_validation",
    "Comparison": "annotruth.choosing.comparison",
    "Queue": "annotruth.choosing.queue",
    "Verdict": "annotruth.choosing.verdict",
    "answer_lengths": "annotruth.choosing.scores",
    "compare": "annotruth.choosing.cross_validation",
    "next_labels": "annotruth.choosing.queue",
}

__all__ = ["DEFAULT_METHODS", "Comparison", "Queue", "Verdict", "answer_lengths", "compare", "next_labels"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'annotruth.choosing' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
