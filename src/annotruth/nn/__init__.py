"""What you may put into your own PyTorch code: backbones, annotator models, confusion matrices and the loss."""

from typing import TYPE_CHECKING

from annotruth.nn.annotators import (
    AnnotatorModel,
    CorrelatedAnnotators,
    CorrelatedHeads,
    DrawingAnnotators,
    EmbeddedAnnotators,
    FeatureAnnotators,
    FeaturePixelAnnotators,
    FeatureTable,
    GlobalAnnotators,
    GlobalLowRankAnnotators,
    IdentityAnnotators,
    KnownAnnotators,
    LowRankAnnotators,
    Marking,
    PixelAnnotators,
    PixelHeads,
    check_annotator_model,
    item_embedding,
    rater_rows,
)
from annotruth.nn.backbones import AnySize, UNetDecoder, UNetEncoder, pad_end, unet
from annotruth.nn.classifiers import classifier_network, linear, mlp, planned_resnet, small_cnn, small_resnet
from annotruth.nn.confusion import (
    Complement,
    Confusion,
    CorrelatedConfusion,
    GlobalConfusion,
    GlobalLowRankConfusion,
    IdentityConfusion,
    LowRankConfusion,
    NegativeConfusion,
    PixelConfusion,
    identity_scores,
    observed_log_likelihood,
    one_pixel_axis,
    row_probabilities,
)
from annotruth.nn.labels import (
    class_index,
    decay_and_add_,
    is_labelled,
    one_hot_argmax,
    sum_over_processes,
    training_together,
)
from annotruth.nn.losses import dice_loss, dice_loss_of_raters, noisy_label_loss, smoothness_loss
from annotruth.nn.monai_networks import monai_network
from annotruth.nn.plan import NetworkPlan, plan_network
from annotruth.nn.prob_unet import ProbabilisticUNet
from annotruth.nn.stochastic import StochasticUNet
from annotruth.renamed import old_names

__all__ = [
    "AnnotatorModel",
    "AnySize",
    "Complement",
    "Confusion",
    "CorrelatedAnnotators",
    "CorrelatedConfusion",
    "CorrelatedHeads",
    "DrawingAnnotators",
    "EmbeddedAnnotators",
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
    "NetworkPlan",
    "PixelAnnotators",
    "PixelConfusion",
    "PixelHeads",
    "ProbabilisticUNet",
    "StochasticUNet",
    "UNetDecoder",
    "UNetEncoder",
    "check_annotator_model",
    "class_index",
    "classifier_network",
    "decay_and_add_",
    "dice_loss",
    "dice_loss_of_raters",
    "identity_scores",
    "is_labelled",
    "item_embedding",
    "linear",
    "mlp",
    "monai_network",
    "noisy_label_loss",
    "observed_log_likelihood",
    "one_hot_argmax",
    "one_pixel_axis",
    "pad_end",
    "plan_network",
    "planned_resnet",
    "rater_rows",
    "row_probabilities",
    "small_cnn",
    "small_resnet",
    "smoothness_loss",
    "sum_over_processes",
    "training_together",
    "unet",
]

if not TYPE_CHECKING:  # or a type checker would let any name pass
    __getattr__ = old_names(__name__, {"is_given": "annotruth.nn.is_labelled"})
