"""The truth without images: label fusion for masks and for answers.

Estimators load on first use, whichever registered file they are in: see :mod:`annotruth.fusion.registry`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from annotruth.fusion.other_answers import listed_models
from annotruth.fusion.registry import listed_estimators, register

_HOME = {each.class_name: each.module for each in [*listed_estimators().values(), *listed_models().values()]} | {
    "ObjectConsensus": "annotruth.fusion.object_consensus",
    "UnlabelledWarning": "annotruth.fusion.base",
    "count_case": "annotruth.fusion.stores",
    "find_copied_pairs": "annotruth.fusion.copied_pairs",
    "find_spammers": "annotruth.fusion.spamming",
    "fuse_with": "annotruth.fusion.with_probabilities",
    "group_objects": "annotruth.fusion.object_matching",
    "skill_over_time": "annotruth.fusion.over_time",
}

__all__ = [*_HOME, "register"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'annotruth.fusion' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
