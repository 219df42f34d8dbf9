"""Annot-Mix: items, raters and labels are mixed two by two, and what is between them is learnt, too."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.distributions import Beta

from annotruth.methods.base import Batch, DataSpec, Method, MethodModel
from annotruth.methods.options import check_not_negative
from annotruth.methods.registry import register
from annotruth.nn import EmbeddedAnnotators, is_labelled, noisy_label_loss, rater_rows


class EmbeddedModel(MethodModel):
    """A network beside a model of raters who have a vector each."""

    annotators: EmbeddedAnnotators


@register
@dataclass(frozen=True)
class AnnotMix(Method[EmbeddedModel]):
    """A rater's label of an item is mixed with another's of another: vectors of raters can be mixed as pictures can.

    Options
    -------
    mixing : the shares are drawn from a beta distribution with both parameters of this size; 0 = nothing is mixed
    """

    name = "annot-mix"
    paper = "Herde et al. 2024"
    summary = "a matrix per rater and item, learnt from mixtures of items, raters and labels"
    tasks = ("labels",)
    model_class = EmbeddedModel
    learns_annotators = True
    annotator_rate = 0.1  # slower than the network, or matrices of items explain everything by themselves

    mixing: float = 1.0

    def __post_init__(self) -> None:
        check_not_negative(mixing=self.mixing)

    def annotator_model(self, spec: DataSpec) -> nn.Module:
        return EmbeddedAnnotators(spec.channels, spec.raters, spec.classes, spec.dims)

    def loss(self, model: EmbeddedModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        item, rater = is_labelled(batch.labels, model.annotators.classes).nonzero(as_tuple=True)
        if not model.training or self.mixing == 0 or len(item) == 0:
            return noisy_label_loss(model.log_truth(batch.images), model.rater_confusion(batch), batch.labels)
        other = torch.randperm(len(item), device=item.device)
        share = Beta(self.mixing, self.mixing).sample((len(item),)).to(batch.images)
        loss = mixed_loss(model, batch, item, rater, other, share)
        return loss, loss.detach()


def mixed_loss(model: EmbeddedModel, batch: Batch, item: Tensor, rater: Tensor, other: Tensor, share: Tensor) -> Tensor:
    """Cross-entropy of mixed labels.

    Parameters
    ----------
    item, rater : (given,) whose label of what
    other : (given,) with which of them each is mixed
    share : (given,) how much of the mixture is the first
    """

    def mix(values: Tensor) -> Tensor:
        weight = share.view(-1, *(1,) * (values.ndim - 1))
        return weight * values + (1 - weight) * values[other]

    raters = model.annotators
    images = mix(batch.images[item])
    logs = raters.log_matrices(raters.items(images), mix(rater_rows(raters.raters, batch.raters)[rater]))
    said = (model.log_truth(images)[:, :, None] + logs).logsumexp(dim=1)
    label = batch.labels[item, rater].long()
    first, second = (said.gather(1, labels[:, None]).squeeze(1) for labels in (label, label[other]))
    return -(share * first + (1 - share) * second).mean()
