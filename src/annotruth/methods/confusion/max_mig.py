"""Max-MIG: a network that looks at images and a jury that looks at labels learn to agree, on more than one answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from annotruth.data.annotations import Annotations
from annotruth.fusion import MajorityVote
from annotruth.methods.base import Batch, DataSpec, Method, MethodModel
from annotruth.methods.protocols import Prepares
from annotruth.methods.registry import register
from annotruth.methods.targets import quietly
from annotruth.nn import (
    Confusion,
    GlobalConfusion,
    class_index,
    is_labelled,
    noisy_label_loss,
    one_pixel_axis,
    rater_rows,
)

MIN_PROBABILITY = 1e-2
"""Chance of any label of any rater in the jury's first view, so that no single label decides."""


class Jury(nn.Module):
    """Weighs labels: a score per rater, true class and label, and the classes' frequency.

    At first the scores are the logarithms of the raters' matrices against the majority vote.
    """

    log_prior: Tensor

    def __init__(self, raters: int, classes: int) -> None:
        super().__init__()
        self.scores = nn.Parameter((torch.eye(classes) + MIN_PROBABILITY).log().repeat(raters, 1, 1))
        self.register_buffer("log_prior", torch.zeros(classes).log_softmax(dim=0))

    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        log_matrices = rater_rows(self.scores, raters).log_softmax(dim=2)
        return GlobalConfusion(log_matrices.exp(), log_matrices)

    def log_verdict(self, labels: Tensor, raters: Tensor | None = None) -> Tensor:
        """Log-probabilities (batch, classes, pixels) of the truth, from labels (batch, raters, pixels) alone."""
        scores = rater_rows(self.scores, raters)
        item, rater, pixel = is_labelled(labels, scores.shape[1]).nonzero(as_tuple=True)
        said = scores[rater, :, class_index(labels[item, rater, pixel], scores.shape[1])]
        total = said.new_zeros(len(labels), labels.shape[2], scores.shape[1])
        total = total.index_put((item, pixel), said, accumulate=True) + self.log_prior
        return total.log_softmax(dim=2).movedim(2, 1)


class JuryModel(MethodModel):
    """A network that looks at images, and a jury that looks at labels."""

    annotators: Jury


@register
@dataclass(frozen=True)
class MaxMIG(Prepares, Method[JuryModel]):
    """Maximises the mutual information of the network's and the jury's answers (Kullback-Leibler form).

    Two answers carry information about each other only through the truth, so errors that raters share by chance do not
    pay.
    """

    name = "max-mig"
    paper = "Cao et al. 2019"
    summary = "a network and a jury of labels that inform each other"
    model_class = JuryModel
    learns_annotators = True

    def annotator_model(self, spec: DataSpec) -> nn.Module:
        return Jury(spec.raters, spec.classes)

    def prepare(self, model: JuryModel, annotations: Annotations) -> None:
        with quietly():
            voted = MajorityVote().fit(annotations)
        matrices = torch.from_numpy(np.asarray(voted.confusion_)).float()
        model.annotators.scores.data.copy_(
            ((matrices + MIN_PROBABILITY) / (1 + MIN_PROBABILITY * matrices.shape[2])).log()
        )
        frequency = torch.from_numpy(np.asarray(voted.prior_)).float() + MIN_PROBABILITY
        model.annotators.log_prior.copy_((frequency / frequency.sum()).log())

    def loss(self, model: JuryModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        log_truth = model.log_truth(batch.images)
        _, likelihood = noisy_label_loss(log_truth.detach(), model.rater_confusion(batch), batch.labels)
        labels = one_pixel_axis(batch.labels, 2)
        verdict = model.annotators.log_verdict(labels, batch.raters)
        anybody = is_labelled(labels, log_truth.shape[1]).any(dim=1)
        network = one_pixel_axis(log_truth, 2).movedim(1, 2)[anybody]
        information = mutual_information(network, verdict.movedim(1, 2)[anybody], model.annotators.log_prior)
        return -information, likelihood


def mutual_information(one: Tensor, other: Tensor, log_prior: Tensor) -> Tensor:
    """How much two answers (items, classes), as log-probabilities, tell about each other, given the classes' frequency.

    With K(x, y) = Σ_c p(c|x) · p(c|y) / p(c): mean over items of 1 + log K(x_i, y_i), minus mean over pairs of
    different items of K(x_i, y_j). 0 where there are no two items.

    Examples
    --------
    >>> sure = torch.tensor([[0.99, 0.01], [0.01, 0.99]]).log()
    >>> even = torch.tensor([0.5, 0.5]).log()
    >>> mutual_information(sure, sure, even) > mutual_information(sure, even.expand(2, 2), even)
    tensor(True)
    """
    count = len(one)
    if count < 2:
        return (one + other).sum() * 0.0
    same = (one + other - log_prior).logsumexp(dim=1)
    # K is linear in both answers, so the sum over all pairs is a product of sums.
    pairs = ((one.exp().sum(dim=0) * other.exp().sum(dim=0)) / log_prior.exp()).sum() - same.exp().sum()
    return 1 + same.mean() - pairs / (count * (count - 1))
