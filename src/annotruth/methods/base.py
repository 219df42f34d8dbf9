"""What a method is: targets from labels, a model to train, a loss, and what the model says of the raters.

Beyond this core there are optional protocols (``annotruth.methods.protocols``), for those methods that need them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, TypeVar, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotruth.data.annotations import Annotations
from annotruth.data.answers import Answers
from annotruth.methods.protocols import ONE_STAGE, Stages
from annotruth.nn import (
    Confusion,
    IdentityAnnotators,
    IdentityConfusion,
    NetworkPlan,
    classifier_network,
    dice_loss,
    dice_loss_of_raters,
    noisy_label_loss,
    plan_network,
    unet,
)
from annotruth.nn.backbones import DEFAULT_SIDE
from annotruth.renamed import old_names

HEAD_START = 0.2
"""Share of the training that is a head start, for methods that need one."""

Task = Literal["masks", "labels"]
"""Masks are learnt by a segmenter, one label per item by a classifier."""


@dataclass(frozen=True)
class DataSpec:
    """What a network must fit: the data's channels (or features), raters, classes, spatial axes, and the task.

    ``rater_columns`` counts the numbers that tell what is known of a rater, where the method takes that. ``network`` is
    the plan of segmentation networks; None = one for images of 64 pixels along each axis.
    """

    channels: int
    raters: int
    classes: int
    dims: int
    task: Task = "masks"
    rater_columns: int = 0
    network: NetworkPlan | None = None

    @property
    def plan(self) -> NetworkPlan:
        """The plan of segmentation networks, or that of images of 64 pixels along each axis."""
        return self.network or plan_network((DEFAULT_SIDE,) * self.dims)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> DataSpec:
        """Undo ``dataclasses.asdict``."""
        network = record.get("network")
        return cls(**{**record, "network": None if network is None else NetworkPlan(**network)})


class Batch(NamedTuple):
    """Items to learn from, together.

    Attributes
    ----------
    images : (items, channels, *spatial), or (items, features)
    labels : (items, raters, *spatial) uint8, 255 = not labelled; or (items, raters) int16, -1 = not labelled
    positions : (items,) where the items stand in the data set
    raters : (raters,) who the raters of ``labels`` are, where only those with a label in this batch are listed; None =
        all, in order
    confusion : (items, all raters, classes, classes) what is known of the raters' errors on these items, nan where
        nothing is; None = nothing
    truth : (items, *spatial) uint8 true labels to learn from beside the raters', 255 = unknown; None = none are known
    """

    images: Tensor
    labels: Tensor
    positions: Tensor | None = None
    raters: Tensor | None = None
    confusion: Tensor | None = None
    truth: Tensor | None = None


class MethodModel(nn.Module):
    """A truth model and an annotator model, side by side: what a method trains and a file stores.

    What a method finds out while it trains is kept in buffers of a subclass, so that a training can be resumed.
    """

    def __init__(self, truth: nn.Module, annotators: nn.Module, spec: DataSpec | None = None) -> None:
        super().__init__()
        self.truth = truth
        self.annotators = annotators

    def log_truth(self, images: Tensor) -> Tensor:
        """Log-probabilities (batch, classes, *spatial) of the true class."""
        return F.log_softmax(self.truth(images), dim=1)

    def confusion(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        """The matrices of all raters for these images, or of some (their positions)."""
        return self.annotators(images, raters)

    def rater_confusion(self, batch: Batch) -> Confusion:
        """The matrices of a batch's raters."""
        return self.confusion(batch.images, batch.raters)


M = TypeVar("M", bound=MethodModel)


@dataclass(frozen=True)
class Method(Generic[M]):
    """The default composition: a network, raters taken at their word, and the likelihood of their labels.

    A method overrides what it does differently. Its fields are its options; their defaults are the method's.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    summary: ClassVar[str]
    tasks: ClassVar[tuple[Task, ...]] = ("masks", "labels")
    """What the method can learn from."""
    model_class: ClassVar[type[MethodModel]] = MethodModel
    """What :meth:`build` makes: a class made from a truth model, an annotator model and a :class:`DataSpec`."""
    learns_annotators: ClassVar[bool] = False
    """Whether the annotator model tells how raters err; if not, they are compared with the estimated truth later."""
    learns_from_raters: ClassVar[bool] = True
    """Whether the raters' labels teach the network, so that their errors can mislead it."""
    counts_copies_once: ClassVar[bool] = False
    """Whether raters who give the same answers, wrong ones too, count as one."""
    shrinks_trace: ClassVar[bool] = False
    """Whether the loss makes matrices as diffuse as labels allow, so that too much of it may make them too diffuse."""
    learns_overlap: ClassVar[bool] = False
    """Whether the loss of masks adds their Dice to the likelihood; where there is one mask to learn for each item."""
    head_start: ClassVar[float] = 0.0
    """Share of the training in which masks are first learnt at their word, and by overlap: :data:`HEAD_START`, or none.
    Explained by raters' errors, or by chance, from the first step on, a small structure may be lost for good."""
    annotator_rate: ClassVar[float] = 1.0
    """The annotator model's learning rate, as a multiple of the truth model's."""

    @property
    def keeps_last_weights(self) -> bool:
        """Whether networks for masks keep their last weights, and not those by which held-out labels are likeliest.

        So do those that learn overlap, of which the likelihood of a few held-out masks says little.
        """
        return self.learns_overlap

    def check(self, annotations: Annotations) -> None:
        """Refuse annotations that the method cannot learn from, before anything is begun."""

    # -- targets from labels ------------------------------------------------------------------------------------

    def mask_targets(self, annotations: Annotations, index: int) -> Tensor:
        """What one item's masks teach: (targets, *spatial) uint8. Every rater's mask, unless a method fuses them."""
        return as_tensor(annotations.item_masks(index))

    def label_targets(self, annotations: Annotations) -> Answers:
        """What a label table teaches: every rater's answers, unless a method fuses them."""
        return annotations.answers

    def n_targets(self, spec: DataSpec) -> int:
        """How many there are: the raters that :meth:`mask_targets` and :meth:`label_targets` speak of."""
        return spec.raters

    # -- the model ----------------------------------------------------------------------------------------------

    def truth_model(self, spec: DataSpec) -> nn.Module:
        """The network from images to class logits, where the user gives none."""
        if spec.task == "labels":
            return classifier_network(None, spec.channels, spec.classes, spec.dims)
        return unet(spec.channels, spec.classes, spec.dims, spec.network)

    def annotator_model(self, spec: DataSpec) -> nn.Module:
        """The model of how raters err: a module with ``forward(images, raters=None)`` that gives their matrices."""
        return IdentityAnnotators(self.n_targets(spec), spec.classes)

    def build(self, spec: DataSpec, network: nn.Module | None = None) -> M:
        """Put both models together, around the user's own network if there is one."""
        truth = network if network is not None else self.truth_model(spec)
        return cast("M", self.model_class(truth, self.annotator_model(spec), spec))

    # -- learning -----------------------------------------------------------------------------------------------

    def loss(self, model: M, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        """The loss to minimise, and the negative log-likelihood of the labels.

        ``progress`` runs from 0 to 1 over the training.
        """
        log_truth = model.log_truth(batch.images)
        loss, likelihood = noisy_label_loss(log_truth, model.rater_confusion(batch), batch.labels)
        if self.learns_overlap and batch.labels.ndim > 2:
            loss = loss + dice_loss(log_truth, batch.labels[:, 0])
        return loss, likelihood

    def training_loss(self, model: M, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        """:meth:`loss` as it is trained by: masks may have a head start before it."""
        if batch.labels.ndim == 2 or progress >= self.head_start:
            return self.loss(model, batch, progress)
        log_truth = model.log_truth(batch.images)
        word = IdentityConfusion(batch.labels.shape[1], log_truth.shape[1])
        loss, likelihood = noisy_label_loss(log_truth, word, batch.labels)
        everybody = log_truth.unsqueeze(1).expand(-1, batch.labels.shape[1], *log_truth.shape[1:])
        return loss + dice_loss_of_raters(everybody, batch.labels), likelihood

    @property
    def stages(self) -> Stages:
        """How the training changes on its way: a method may be its own schedule, have one, or have none."""
        return self if isinstance(self, Stages) else ONE_STAGE

    # -- what was learnt ----------------------------------------------------------------------------------------

    def confusion(self, model: M, images: Tensor) -> Confusion:
        """Every rater's confusion matrices for these images."""
        return model.confusion(images)


def as_tensor(masks: np.ndarray) -> Tensor:
    """Masks as a tensor; views that torch cannot take (mirrored, read-only) are copied."""
    return torch.from_numpy(np.require(masks, requirements=["C", "W"]))


if not TYPE_CHECKING:  # or a type checker would let any name pass
    __getattr__ = old_names(
        __name__,
        {
            "Parts": "annotruth.methods.MethodModel",
            "Shape": "annotruth.methods.DataSpec",
            "METHODS": "annotruth.methods.METHODS",
            "make_method": "annotruth.methods.make_method",
            "methods_for": "annotruth.methods.methods_for",
            "register": "annotruth.methods.register",
        },
    )
