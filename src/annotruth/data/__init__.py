"""Who said what about which item: the types that flow through everything."""

from annotruth.data.annotations import Annotations, ArrayLike, Lazy, Spacing
from annotruth.data.answers import (
    Answers,
    answers_from_frame,
    answers_from_matrix,
    class_name,
    merge_answers,
    sort_answers,
)
from annotruth.data.comparisons import Comparisons
from annotruth.data.confusion import confusion_counts, is_labelled, normalise_rows
from annotruth.data.findings import Findings
from annotruth.data.marks import Marks
from annotruth.data.objects import Objects

__all__ = [
    "Annotations",
    "Answers",
    "ArrayLike",
    "Comparisons",
    "Findings",
    "Lazy",
    "Marks",
    "Objects",
    "Spacing",
    "answers_from_frame",
    "answers_from_matrix",
    "class_name",
    "confusion_counts",
    "is_labelled",
    "merge_answers",
    "normalise_rows",
    "sort_answers",
]
