"""Several hypotheses: a network draws several masks, and each rater's mask teaches the one that is closest."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from annotruth.errors import InputError
from annotruth.methods.base import Batch, DataSpec, Method, MethodModel
from annotruth.methods.inference import in_rounds
from annotruth.methods.options import check_at_least
from annotruth.methods.protocols import Samples
from annotruth.methods.registry import register
from annotruth.nn import class_index, is_labelled, unet


class Hypotheses(MethodModel):
    """The truth is the mean of all hypotheses."""

    def __init__(self, truth: nn.Module, annotators: nn.Module, hypotheses: int) -> None:
        super().__init__(truth, annotators)
        self.hypotheses = hypotheses

    def log_hypotheses(self, images: Tensor) -> Tensor:
        """Log-probabilities (batch, hypotheses, classes, *spatial)."""
        return self.truth(images).unflatten(1, (self.hypotheses, -1)).log_softmax(dim=2)

    def log_truth(self, images: Tensor) -> Tensor:
        return self.log_hypotheses(images).logsumexp(dim=1) - math.log(self.hypotheses)


@register
@dataclass(frozen=True)
class MultiHypothesis(Samples, Method[Hypotheses]):
    """Hypotheses share the ways of drawing among them; nobody's labels are thought better than another's.

    Options
    -------
    hypotheses : how many
    relaxation : how much of each mask teaches the hypotheses that are not closest to it, so that none dies out
    """

    name = "multi-hypothesis"
    paper = "Rupprecht et al. 2017 (LUW)"
    summary = "several hypotheses, each taught by the masks closest to it, averaged"
    tasks = ("masks",)

    hypotheses: int = 4
    relaxation: float = 0.1

    def __post_init__(self) -> None:
        check_at_least(2, hypotheses=self.hypotheses)
        if not 0 <= self.relaxation < 1:
            raise InputError(f"relaxation is a share, 0 ≤ relaxation < 1, not {self.relaxation}.")

    def build(self, spec: DataSpec, network: nn.Module | None = None) -> Hypotheses:
        outputs = self.hypotheses * spec.classes
        if network is None:
            truth: nn.Module = unet(spec.channels, outputs, spec.dims, spec.network)
        else:
            truth = nn.Sequential(network, (nn.Conv2d if spec.dims == 2 else nn.Conv3d)(spec.classes, outputs, 1))
        return Hypotheses(truth, self.annotator_model(spec), self.hypotheses)

    def loss(self, model: Hypotheses, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        losses, given = mask_losses(model.log_hypotheses(batch.images), batch.labels)
        best = torch.zeros_like(losses).scatter_(2, losses.argmin(dim=2, keepdim=True), 1.0)
        others = (1 - best) * self.relaxation / (self.hypotheses - 1)
        total = (losses * (best * (1 - self.relaxation) + others)).sum() / given
        return total, (losses.detach() * best).sum() / given

    def sample(self, model: Hypotheses, images: Tensor, n: int, generator: torch.Generator, spec: DataSpec) -> Tensor:
        which = in_rounds(self.hypotheses, n, generator).to(images.device)
        return model.log_hypotheses(images).exp()[:, which].transpose(0, 1)


def mask_losses(log_hypotheses: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Negative log-likelihood of each mask under each hypothesis, summed over its pixels; and the number of labels.

    Parameters
    ----------
    log_hypotheses : (batch, hypotheses, classes, *spatial)
    labels : (batch, raters, *spatial), 255 = not labelled

    Returns
    -------
    losses : (batch, raters, hypotheses);  given : scalar, at least 1

    Examples
    --------
    >>> sure_of_0, sure_of_1 = torch.tensor([[0.9], [0.1]]), torch.tensor([[0.1], [0.9]])
    >>> losses, _ = mask_losses(torch.stack([sure_of_0, sure_of_1])[None].log(), torch.tensor([[[1]]]))
    >>> losses.exp().reciprocal()
    tensor([[[0.1000, 0.9000]]])
    """
    classes = log_hypotheses.shape[2]
    given = is_labelled(labels, classes)
    observed = class_index(labels, classes)
    said = [(one.gather(1, observed) * given).flatten(2).sum(dim=2) for one in log_hypotheses.unbind(dim=1)]
    return -torch.stack(said, dim=2), given.sum().clamp_min(1)
