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
from annotruth.nn.backbones import AnySize, unet
from annotruth.nn.classifiers import classifier_network, linear, mlp, small_cnn, small_resnet
from annotruth.nn.complement import Complement, NegativeConfusion
from annotruth.nn.confusion import Confusion, GlobalConfusion, IdentityConfusion, PixelConfusion
from annotruth.nn.features import FeatureAnnotators, FeaturePixelAnnotators, FeatureTable
from annotruth.nn.labels import class_index, is_given
from annotruth.nn.likelihood import observed_log_likelihood
from annotruth.nn.low_rank import GlobalLowRankConfusion, LowRankConfusion
from annotruth.nn.marking import Marking
from annotruth.nn.objective import noisy_label_loss
from annotruth.nn.prob_unet import ProbabilisticUNet
from annotruth.nn.smoothness import smoothness_loss

__all__ = [
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
    "class_index",
    "classifier_network",
    "identity_scores",
    "is_given",
    "linear",
    "mlp",
    "noisy_label_loss",
    "observed_log_likelihood",
    "small_cnn",
    "small_resnet",
    "smoothness_loss",
    "unet",
]
