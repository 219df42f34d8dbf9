"""What you may put into your own PyTorch code: backbones, annotator models, confusion matrices and the loss."""

from annotruth.nn.annotators import (
    GlobalAnnotators,
    GlobalLowRankAnnotators,
    IdentityAnnotators,
    KnownAnnotators,
    LowRankAnnotators,
    PixelAnnotators,
    PixelHeads,
    identity_scores,
)
from annotruth.nn.annotators.base import AnnotatorModel, check_annotator_model
from annotruth.nn.annotators.marking import Marking
from annotruth.nn.annotators.rater_features import FeatureAnnotators, FeaturePixelAnnotators, FeatureTable
from annotruth.nn.annotators.rater_table import rater_rows
from annotruth.nn.backbones import AnySize, unet
from annotruth.nn.blocks import one_pixel_axis
from annotruth.nn.classifiers import classifier_network, linear, mlp, small_cnn, small_resnet
from annotruth.nn.confusion import Confusion, GlobalConfusion, IdentityConfusion, PixelConfusion
from annotruth.nn.confusion.complement import Complement, NegativeConfusion
from annotruth.nn.confusion.likelihood import observed_log_likelihood
from annotruth.nn.confusion.low_rank import GlobalLowRankConfusion, LowRankConfusion
from annotruth.nn.confusion.rows import row_probabilities
from annotruth.nn.distributed import sum_over_processes, training_together
from annotruth.nn.labels import class_index, is_labelled
from annotruth.nn.losses.noisy_labels import noisy_label_loss
from annotruth.nn.losses.smoothness import smoothness_loss
from annotruth.nn.prob_unet import ProbabilisticUNet

__all__ = [
    "AnnotatorModel",
    "AnySize",
    "Complement",
    "Confusion",
    "FeatureAnnotators",
    "FeaturePixelAnnotators",
    "FeatureTable",
    "GlobalAnnotators",
    "GlobalConfusion",
    "GlobalLowRankAnnotators",
    "GlobalLowRankConfusion",
    "IdentityAnnotators",
    "IdentityConfusion",
    "KnownAnnotators",
    "LowRankAnnotators",
    "LowRankConfusion",
    "Marking",
    "NegativeConfusion",
    "PixelAnnotators",
    "PixelConfusion",
    "PixelHeads",
    "ProbabilisticUNet",
    "check_annotator_model",
    "class_index",
    "classifier_network",
    "identity_scores",
    "is_labelled",
    "linear",
    "mlp",
    "noisy_label_loss",
    "observed_log_likelihood",
    "one_pixel_axis",
    "rater_rows",
    "row_probabilities",
    "small_cnn",
    "small_resnet",
    "smoothness_loss",
    "sum_over_processes",
    "training_together",
    "unet",
]
