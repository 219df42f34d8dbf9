"""CoNAL: raters share some of their confusion, and whose it was is guessed for every answer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotruth.methods.base import Batch, DataSpec, Method, MethodModel
from annotruth.methods.registry import register
from annotruth.nn import AnnotatorModel, Confusion, GlobalConfusion, is_labelled, item_embedding, rater_rows

LENGTH = 20
"""Numbers in the vector of an item, and of a rater."""


class CommonAndOwnMaps(AnnotatorModel):
    """A linear map that all raters share and one of each rater's own, all the identity at first.

    How much of the common one goes into an answer is the sigmoid of the product of the item's and the rater's vector.
    """

    def __init__(self, channels: int, raters: int, classes: int, dims: int) -> None:
        super().__init__()
        self.common = nn.Parameter(torch.eye(classes))
        self.own = nn.Parameter(torch.eye(classes).repeat(raters, 1, 1))
        self.items = item_embedding(channels, dims, LENGTH)
        self.raters = nn.Parameter(torch.randn(raters, LENGTH))

    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        """Softmaxed rows of the maps, which stand as matrices, for every item."""
        share, own = self.common_share(images, raters)[..., None, None], rater_rows(self.own, raters)
        return GlobalConfusion((share * self.common + (1 - share) * own).softmax(dim=3))

    def common_share(self, images: Tensor, raters: Tensor | None = None) -> Tensor:
        """How much of each answer (items, raters) is the common confusion's."""
        items, who = F.normalize(self.items(images), dim=1), F.normalize(rater_rows(self.raters, raters), dim=1)
        return torch.sigmoid(items @ who.T)

    def log_likelihood(self, truth: Tensor, batch: Batch) -> Tensor:
        """Log-probabilities (given,) of the given labels, for probabilities (items, classes) of the truth."""
        item, rater = is_labelled(batch.labels, truth.shape[1]).nonzero(as_tuple=True)
        share = self.common_share(batch.images, batch.raters)[item, rater, None]
        own = torch.einsum("ni,nij->nj", truth[item], rater_rows(self.own, batch.raters)[rater])
        scores = share * (truth @ self.common)[item] + (1 - share) * own
        return scores.log_softmax(dim=1).gather(1, batch.labels[item, rater, None].long()).squeeze(1)


class CommonAndOwnModel(MethodModel):
    """A network with both kinds of maps behind it."""

    annotators: CommonAndOwnMaps


@register
@dataclass(frozen=True)
class CoNAL(Method[CommonAndOwnModel]):
    """A crowd layer in which part of the confusion is common to all: what is hard to tell apart is so for everybody.

    Options
    -------
    difference_weight : how strongly each rater's own map is driven away from the common one
    """

    name = "conal"
    paper = "Chu et al. 2021"
    summary = "a crowd layer with a common confusion beside each rater's own"
    tasks = ("labels",)
    model_class = CommonAndOwnModel
    learns_annotators = True

    difference_weight: float = 1e-5

    def annotator_model(self, spec: DataSpec) -> nn.Module:
        return CommonAndOwnMaps(spec.channels, spec.raters, spec.classes, spec.dims)

    def loss(self, model: CommonAndOwnModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        maps = model.annotators
        said = maps.log_likelihood(model.log_truth(batch.images).exp(), batch)
        likelihood = -said.sum() / max(len(said), 1)
        # Squared, because the norm itself has no slope where both maps are the identity, as they are at first.
        difference = (rater_rows(maps.own, batch.raters) - maps.common).square().sum(dim=(1, 2)).mean()
        return likelihood - self.difference_weight * difference, likelihood.detach()
