"""Expectation-maximisation around a network: a posterior of the truth, and matrices counted against it, in turns.

The steps are those of ``annotruth.fusion.em``, with the network's output as each item's prior.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from annotruth.errors import InputError
from annotruth.fusion.em import confusion_from_counts
from annotruth.methods.base import Batch, DataSpec, Method, MethodModel, register
from annotruth.methods.em.steps import add_counts, cross_entropy, label_posterior, label_shares, likeliest
from annotruth.nn import KnownAnnotators, noisy_label_loss, one_pixel_axis


class AlternatingModel(MethodModel):
    """A network and the raters' matrices as last counted.

    Attributes
    ----------
    stage : how many times they were counted
    frequency : (classes,) how common the classes were then
    earlier : the network as it was then, where a method looks back at it. Keeping that network instead of everybody's
        posterior takes no memory per pixel, and lets items be cut and mirrored
    """

    annotators: KnownAnnotators
    stage: Tensor
    frequency: Tensor

    def __init__(self, truth: nn.Module, annotators: nn.Module, classes: int, look_back: bool = False) -> None:
        super().__init__(truth, annotators)
        self.register_buffer("stage", torch.tensor(0))
        self.register_buffer("frequency", torch.full((classes,), 1 / classes))
        self.earlier = copy.deepcopy(truth).requires_grad_(False) if look_back else None


@dataclass(frozen=True)
class Alternating(Method):
    """Base of the methods that take a posterior of the truth and count matrices in turns.

    Options
    -------
    em_steps : how many posteriors the network learns from, one after the other; the first is the mean of the labels
    """

    learns_annotators = True
    looks_back = False

    em_steps: int = 10

    def __post_init__(self) -> None:
        if self.em_steps < 1:
            raise InputError(f"em_steps must be at least 1, not {self.em_steps}.")

    def annotator_model(self, shape: DataSpec) -> nn.Module:
        return KnownAnnotators(shape.raters, shape.classes)

    def build(self, shape: DataSpec, network: nn.Module | None = None) -> MethodModel:
        plain = super().build(shape, network)
        return AlternatingModel(plain.truth, plain.annotators, shape.classes, self.looks_back)

    def posterior(self, parts: AlternatingModel, batch: Batch, log_truth: Tensor) -> Tensor:
        """E-step: probabilities (batch, classes, *spatial) of the truth, from the second stage on.

        ``log_truth`` is what the network makes of the batch now.
        """
        matrices = parts.annotators.matrices
        here = matrices if batch.raters is None else matrices[batch.raters]
        return label_posterior(self.log_prior(parts, batch, log_truth), batch.labels, here)[0]

    def log_prior(self, parts: AlternatingModel, batch: Batch, log_truth: Tensor) -> Tensor:
        """The prior of the E-step: what the network makes of the batch."""
        return log_truth

    def counted_against(self, target: Tensor, log_truth: Tensor) -> Tensor:
        """What labels are counted against: the target that the network has just learnt, or what it makes of it."""
        return target

    def begin_epoch(self, parts: MethodModel, batches: Iterable[Batch], progress: float) -> None:
        assert isinstance(parts, AlternatingModel)
        due = self._stage(progress)
        if due > parts.stage:
            self._maximise(parts, batches)
            parts.stage.fill_(due)
            if parts.earlier is not None:
                parts.earlier.load_state_dict(parts.truth.state_dict())

    def finish(self, parts: MethodModel, batches: Iterable[Batch]) -> None:
        assert isinstance(parts, AlternatingModel)
        self._maximise(parts, batches)

    def settled(self, parts: MethodModel, progress: float) -> bool:
        return self._stage(progress) == self.em_steps - 1

    def loss(self, parts: MethodModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        assert isinstance(parts, AlternatingModel)
        log_truth = parts.log_truth(batch.images)
        _, likelihood = noisy_label_loss(log_truth.detach(), parts.rater_confusion(batch), batch.labels)
        return cross_entropy(log_truth, self._target(parts, batch, log_truth.detach()), batch.labels), likelihood

    def _stage(self, progress: float) -> int:
        """How many times matrices should have been counted by now."""
        return min(int(progress * self.em_steps + 1e-6), self.em_steps - 1)

    def _target(self, parts: AlternatingModel, batch: Batch, log_truth: Tensor) -> Tensor:
        if parts.stage == 0:
            return label_shares(batch.labels, log_truth.shape[1])
        return self.posterior(parts, batch, log_truth)

    def _maximise(self, parts: AlternatingModel, batches: Iterable[Batch]) -> None:
        """M-step of the matrices and of the classes' frequency."""
        counts, frequency = np.zeros(parts.annotators.matrices.shape), torch.zeros_like(parts.frequency)
        for batch in batches:
            log_truth = parts.log_truth(batch.images)
            truth = self.counted_against(self._target(parts, batch, log_truth), log_truth)
            add_counts(counts, batch, truth)
            frequency += one_pixel_axis(truth, 2).sum(dim=(0, 2))
        parts.annotators.matrices.copy_(torch.from_numpy(confusion_from_counts(counts)))
        parts.frequency.copy_(frequency / frequency.sum())


@register
@dataclass(frozen=True)
class GeneralisedEM(Alternating):
    """Raykar's algorithm: the posterior combines the network, as it was at the last E-step, with all labels.

    With one label an item the first posterior is that label, which makes everybody faithful for ever.
    """

    name = "gem"
    paper = "Raykar et al. 2010; algorithm 2 of Tanno et al. 2019"
    summary = "generalised EM: a network and counted matrices in turns"
    looks_back = True

    def log_prior(self, parts: AlternatingModel, batch: Batch, log_truth: Tensor) -> Tensor:
        assert parts.earlier is not None
        with torch.no_grad():
            return parts.earlier.eval()(batch.images).log_softmax(dim=1)


@register
@dataclass(frozen=True)
class ModelBootstrappedEM(Alternating):
    """Khetan's algorithm: matrices are counted against the network's own answers, so that one label an item will do.

    The prior of the posterior is the classes' frequency, not the network. A class that the network never answers is
    lost to it; so it takes two steps by default, as its authors do, which leaves the network time to learn.
    """

    name = "mbem"
    paper = "Khetan et al. 2018; algorithm 3 of Tanno et al. 2019"
    summary = "model-bootstrapped EM: matrices counted against the network's answers"

    em_steps: int = 2

    def log_prior(self, parts: AlternatingModel, batch: Batch, log_truth: Tensor) -> Tensor:
        return parts.frequency.log().view(1, -1, *[1] * (log_truth.ndim - 2)).expand(log_truth.shape)

    def counted_against(self, target: Tensor, log_truth: Tensor) -> Tensor:
        return likeliest(log_truth)


@register
@dataclass(frozen=True)
class AggNet(Alternating):
    """EM inside the training: the posterior follows the network at every step, matrices are counted at every stage."""

    name = "aggnet"
    paper = "Albarqouni et al. 2016"
    summary = "EM whose posterior follows the network at every step"
