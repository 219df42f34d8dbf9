"""Choose on one's own data: which method to take, found by cross-validation, without truth."""

from __future__ import annotations

from annotruth.choosing.comparison import Comparison
from annotruth.choosing.cross_validation import DEFAULT_METHODS, compare
from annotruth.choosing.scores import answer_lengths
from annotruth.choosing.verdict import Verdict

__all__ = ["DEFAULT_METHODS", "Comparison", "Verdict", "answer_lengths", "compare"]
