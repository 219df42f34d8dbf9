"""Union-Net: all raters' labels of an item are taken together, as one answer out of raters times classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from annotruth.methods.base import Batch, DataSpec, Method, MethodModel
from annotruth.methods.registry import register
from annotruth.nn import AnnotatorModel, Confusion, GlobalConfusion, is_labelled
from annotruth.validation import one_of


class UnionMap(AnnotatorModel):
    """Scores (raters, true, observed), the identity at first. Softmaxed rows of a rater's stand as their matrix."""

    def __init__(self, raters: int, classes: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.eye(classes).repeat(raters, 1, 1))

    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        """Matrices of all raters, or of some (their positions)."""
        return GlobalConfusion((self.scores if raters is None else self.scores[raters]).softmax(dim=2))

    def log_union(self, truth: Tensor, form: str) -> Tensor:
        """Log-probabilities (items, raters, classes) of who says what, adding up to 1 over both."""
        table = self.scores.movedim(1, 0).flatten(1)  # (true, raters · observed)
        if form == "layer":
            union = (truth @ table).log_softmax(dim=1)
        else:
            union = (truth @ table.softmax(dim=1)).log()
        return union.unflatten(1, (len(self.scores), -1))


class UnionModel(MethodModel):
    """A network, and what comes of its answers in the union of all labels."""

    annotators: UnionMap


@register
@dataclass(frozen=True)
class UnionNet(Method[UnionModel]):
    """One cross-entropy over everything that anybody could say, so that raters are weighed against each other.

    Options
    -------
    form : "transition" = a matrix of probabilities from true classes to raters' labels (B in the paper); "layer" = a
        free linear layer, and a softmax behind it (A)
    """

    name = "union-net"
    paper = "Wei et al. 2022"
    summary = "all raters' labels as one answer of a union"
    tasks = ("labels",)
    model_class = UnionModel
    learns_annotators = True

    form: Literal["transition", "layer"] = "transition"

    def __post_init__(self) -> None:
        one_of(self.form, ("transition", "layer"), "form")

    def annotator_model(self, spec: DataSpec) -> nn.Module:
        return UnionMap(spec.raters, spec.classes)

    def loss(self, model: UnionModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        truth = model.log_truth(batch.images).exp()
        item, rater = is_labelled(batch.labels, truth.shape[1]).nonzero(as_tuple=True)
        who = rater if batch.raters is None else batch.raters[rater]
        said = model.annotators.log_union(truth, self.form)[item, who, batch.labels[item, rater].long()]
        loss = -said.sum() / max(len(said), 1)
        return loss, loss.detach()
