"""Confusion matrices as a network gives them: the identity, one per rater, one per pixel, of low rank, of negatives."""

from annotruth.nn.confusion.base import Confusion, IdentityConfusion, one_pixel_axis
from annotruth.nn.confusion.complement import Complement, NegativeConfusion
from annotruth.nn.confusion.correlated import CorrelatedConfusion
from annotruth.nn.confusion.low_rank import GlobalLowRankConfusion, LowRankConfusion
from annotruth.nn.confusion.per_rater import GlobalConfusion
from annotruth.nn.confusion.pixel import PixelConfusion, identity_scores, observed_log_likelihood, row_probabilities

__all__ = [
    "Complement",
    "Confusion",
    "CorrelatedConfusion",
    "GlobalConfusion",
    "GlobalLowRankConfusion",
    "IdentityConfusion",
    "LowRankConfusion",
    "NegativeConfusion",
    "PixelConfusion",
    "identity_scores",
    "observed_log_likelihood",
    "one_pixel_axis",
    "row_probabilities",
]
