"""pOSAL: a network on the majority vote whose masks a discriminator judges patch by patch."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from annotruth.methods.base import Batch, DataSpec
from annotruth.methods.options import check_not_negative
from annotruth.methods.registry import register
from annotruth.methods.two_stage.adversarial import Adversarial, Judged, JudgedModel
from annotruth.nn import class_index, dice_loss, is_labelled, noisy_label_loss
from annotruth.nn.labels import one_hot


@register
@dataclass(frozen=True)
class POSAL(Adversarial[JudgedModel]):
    """Overlap with the vote, probabilities that are even inside a class, and masks that look real in every patch.

    By default the single-domain form: discriminators learn to tell the network's masks from those of the vote. With two
    domains, as in the paper, they learn to tell masks of the other domain from those of the labelled one. That is where
    it gains: pictures that nobody labelled. With one domain it was no better than its own network unjudged in small
    trials.

    Options
    -------
    smoothness : how much it counts that neighbours of one class differ in probability
    """

    name = "posal"
    paper = "Wang et al. 2019 (pOSAL); baseline of Wu et al. 2022"
    summary = "a network on the majority vote, its masks judged patch by patch"

    smoothness: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative(smoothness=self.smoothness)

    def build(self, spec: DataSpec, network: nn.Module | None = None) -> JudgedModel:
        network = self.truth_model(spec) if network is None else network
        judges = {"mask": self.judge(spec.classes, spec.dims)}
        return JudgedModel(Judged(network, judges), self.annotator_model(spec))

    def loss(self, model: JudgedModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        log_truth, vote = model.log_truth(batch.images), batch.labels[:, 0]
        _, likelihood = noisy_label_loss(log_truth, model.rater_confusion(batch), batch.labels)
        classes = log_truth.shape[1]
        loss = dice_loss(log_truth, vote) + self.smoothness * unevenness(log_truth.exp(), vote)
        real, fake = {"mask": one_hot(vote, classes)}, {"mask": log_truth.exp()}
        return loss + self.judged(model, real, fake, is_labelled(vote, classes), progress), likelihood


def unevenness(probabilities: Tensor, labels: Tensor) -> Tensor:
    """By how much direct neighbours that have the same label differ in its probability: a mean over such pairs.

    Parameters
    ----------
    probabilities : (batch, classes, *spatial)
    labels : (batch, *spatial) uint8, 255 = not labelled

    Examples
    --------
    >>> import torch
    >>> probabilities = torch.tensor([[[0.9, 0.7, 0.2], [0.1, 0.3, 0.8]]])
    >>> unevenness(probabilities, torch.tensor([[0, 0, 1]], dtype=torch.uint8))  # the first two have the same label
    tensor(0.2000)
    """
    classes = probabilities.shape[1]
    labelled, index = is_labelled(labels, classes), class_index(labels, classes)
    total, pairs = probabilities.new_zeros(()), probabilities.new_zeros(())
    for axis in range(1, labels.ndim):
        here, there = (slice(None),) * axis + (slice(1, None),), (slice(None),) * axis + (slice(-1),)
        same = labelled[here] & labelled[there] & (index[here] == index[there])
        step = probabilities.diff(dim=axis + 1).abs().gather(1, index[here].unsqueeze(1)).squeeze(1)
        total, pairs = total + (step * same).sum(), pairs + same.sum()
    return total / pairs.clamp_min(1)
