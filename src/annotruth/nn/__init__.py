"""What you may put into your own PyTorch code: backbones, annotator models, confusion matrices and the loss."""

from annotruth.nn.annotators import (
    GlobalAnnotators,
    IdentityAnnotators,
    LowRankAnnotators,
    PixelAnnotators,
    identity_scores,
)
from annotruth.nn.backbones import AnySize, unet
from annotruth.nn.confusion import Confusion, GlobalConfusion, IdentityConfusion, PixelConfusion
from annotruth.nn.likelihood import observed_log_likelihood
from annotruth.nn.low_rank import LowRankConfusion
from annotruth.nn.objective import noisy_label_loss

__all__ = [
    "AnySize",
    "Confusion",
    "GlobalAnnotators",
    "GlobalConfusion",
    "IdentityAnnotators",
    "IdentityConfusion",
    "LowRankAnnotators",
    "LowRankConfusion",
    "PixelAnnotators",
    "PixelConfusion",
    "identity_scores",
    "noisy_label_loss",
    "observed_log_likelihood",
    "unet",
]
