"""What methods that foretell drawings train and find out, and what they have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from annotruth.methods.anchor.labellings import Labellings, labelling_count, labelling_name
from annotruth.methods.base import DataSpec, Method, MethodModel
from annotruth.methods.protocols import DoubtsTruth
from annotruth.methods.warmup import TraceRule
from annotruth.nn import DrawingAnnotators

UNDECIDED = -1
"""In the place of a labelling's number."""


class AnchoredModel(MethodModel):
    """A truth model, an annotator model that foretells drawings, too, and which labelling was found to be the truth.

    Attributes
    ----------
    anchor : which labelling is taken for true, by its place in ``methods.anchor.labellings``; -1 = not yet chosen
    lengths : (labellings,) nats per item that it takes to tell all labels by the labelling
    rival : a labelling whose borders the images show much rather; or that tells all labels more shortly, where these
        were taken at their word for want of a better one; -1 = there is none
    offsets : (labellings, raters, classes - 1) by how many pixels raters' borders lie within a labelling's, see
        ``methods.anchor.offsets``
    least_agreement : (2,) Dice with what is foretold, by item, below which it was drawn by a slip, or others do not
        tell it
    log_confusion : (raters, classes, classes) by Dawid and Skene's model of the labels alone, for the fused labelling
    """

    annotators: DrawingAnnotators
    anchor: Tensor
    lengths: Tensor
    rival: Tensor
    offsets: Tensor
    least_agreement: Tensor
    log_confusion: Tensor

    def __init__(self, truth: nn.Module, annotators: nn.Module, spec: DataSpec) -> None:
        super().__init__(truth, annotators)
        self.trace_rule = TraceRule()
        self.register_buffer("anchor", torch.tensor(UNDECIDED))
        self.register_buffer("rival", torch.tensor(UNDECIDED))
        self.register_buffer("offsets", torch.zeros(labelling_count(spec.raters), spec.raters, spec.classes - 1))
        self.register_buffer("least_agreement", torch.zeros(2))
        self.register_buffer("lengths", torch.full((labelling_count(spec.raters),), torch.nan))
        self.register_buffer("log_confusion", torch.zeros(spec.raters, spec.classes, spec.classes))

    def labellings(self, log_truth: Tensor, drawings: Tensor, labels: Tensor) -> Labellings:
        """What may be the truth, as foretold and as drawn."""
        return Labellings(drawings, labels, log_truth, self.log_confusion, self.offsets)


class Foretells(Method[Any], DoubtsTruth):
    """A method that may foretell drawings first; its annotator model is then a :class:`DrawingAnnotators`."""

    @property
    @abstractmethod
    def foretells(self) -> bool:
        """Whether its options say so."""

    @property
    def keeps_last_weights(self) -> bool:
        return self.foretells

    def build(self, spec: DataSpec, network: nn.Module | None = None) -> Any:
        if not self.foretells:
            return super().build(spec, network)
        truth = network if network is not None else self.truth_model(spec)
        return AnchoredModel(truth, self.annotator_model(spec), spec)

    def doubts(self, model: MethodModel, raters: Sequence[str]) -> list[str]:
        if not isinstance(model, AnchoredModel) or int(model.rival) == UNDECIDED:
            return []
        taken, other = (labelling_name(int(each), raters) for each in (model.anchor, model.rival))
        if model.lengths[model.rival] < model.lengths[model.anchor]:
            why = f"images foretell drawings too badly to tell who is right, and all labels are likelier by {other}"
        else:
            why = f"edges of the images lie along the borders of {other}"
        return [
            f"The estimated truth may be wrong: it follows {taken}, but {why}. Look at some images to see which of the "
            "two is right."
        ]
