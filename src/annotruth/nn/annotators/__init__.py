"""Annotator models: modules that give each rater's confusion matrices for a batch of images."""

from annotruth.nn.annotators.base import AnnotatorModel, check_annotator_model
from annotruth.nn.annotators.correlated import CorrelatedAnnotators, CorrelatedHeads
from annotruth.nn.annotators.drawn import DrawingAnnotators
from annotruth.nn.annotators.embedded import EmbeddedAnnotators, item_embedding
from annotruth.nn.annotators.marking import Marking
from annotruth.nn.annotators.per_rater import (
    GlobalAnnotators,
    GlobalLowRankAnnotators,
    IdentityAnnotators,
    KnownAnnotators,
    rater_rows,
)
from annotruth.nn.annotators.pixel import LowRankAnnotators, PixelAnnotators, PixelHeads
from annotruth.nn.annotators.rater_features import FeatureAnnotators, FeaturePixelAnnotators, FeatureTable

__all__ = [
    "AnnotatorModel",
    "CorrelatedAnnotators",
    "CorrelatedHeads",
    "DrawingAnnotators",
    "EmbeddedAnnotators",
    "FeatureAnnotators",
    "FeaturePixelAnnotators",
    "FeatureTable",
    "GlobalAnnotators",
    "GlobalLowRankAnnotators",
    "IdentityAnnotators",
    "KnownAnnotators",
    "LowRankAnnotators",
    "Marking",
    "PixelAnnotators",
    "PixelHeads",
    "check_annotator_model",
    "item_embedding",
    "rater_rows",
]
