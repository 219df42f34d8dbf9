"""Expectation-maximisation around a network: a posterior of the truth, and matrices counted against it, in turns.

The steps are those of ``annotruth.fusion.em``, with the network's output as each item's prior.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from annotruth.fusion.em import confusion_from_counts
from annotruth.methods.base import HEAD_START, Batch, DataSpec, Method, MethodModel
from annotruth.methods.em.steps import add_counts, cross_entropy, label_posterior, label_shares
from annotruth.methods.options import check_at_least
from annotruth.methods.protocols import Stages
from annotruth.nn import KnownAnnotators, noisy_label_loss, one_pixel_axis


class AlternatingModel(MethodModel):
    """A network and the raters' matrices as last counted.

    Attributes
    ----------
    stage : how many times they were counted
    frequency : (classes,) how common the classes were then
    """

    annotators: KnownAnnotators
    stage: Tensor
    frequency: Tensor

    def __init__(self, truth: nn.Module, annotators: nn.Module, spec: DataSpec) -> None:
        super().__init__(truth, annotators)
        self.register_buffer("stage", torch.tensor(0))
        self.register_buffer("frequency", torch.full((spec.classes,), 1 / spec.classes))

    def counted(self, stage: int) -> None:
        """Note that matrices were counted for this stage."""
        self.stage.fill_(stage)


A = TypeVar("A", bound=AlternatingModel)


@dataclass(frozen=True)
class Alternating(Stages, Method[A]):
    """Base of the methods that take a posterior of the truth and count matrices in turns.

    Options
    -------
    em_steps : how many posteriors the network learns from, one after the other; the first is the mean of the labels
    """

    model_class = AlternatingModel
    learns_annotators = True
    head_start = HEAD_START

    em_steps: int = 10

    def __post_init__(self) -> None:
        check_at_least(1, em_steps=self.em_steps)

    def annotator_model(self, spec: DataSpec) -> nn.Module:
        return KnownAnnotators(spec.raters, spec.classes)

    def posterior(self, model: A, batch: Batch, log_truth: Tensor) -> Tensor:
        """E-step: probabilities (batch, classes, *spatial) of the truth, from the second stage on.

        ``log_truth`` is what the network makes of the batch now.
        """
        matrices = model.annotators.matrices
        here = matrices if batch.raters is None else matrices[batch.raters]
        return label_posterior(self.log_prior(model, batch, log_truth), batch.labels, here)[0]

    def log_prior(self, model: A, batch: Batch, log_truth: Tensor) -> Tensor:
        """The prior of the E-step: what the network makes of the batch."""
        return log_truth

    def counted_against(self, target: Tensor, log_truth: Tensor) -> Tensor:
        """What labels are counted against: the target that the network has just learnt, or what it makes of it."""
        return target

    def begin_epoch(self, model: A, batches: Iterable[Batch], progress: float) -> None:
        due = self._stage(progress)
        if due > model.stage:
            self._maximise(model, batches)
            model.counted(due)

    def finish(self, model: A, batches: Iterable[Batch]) -> None:
        self._maximise(model, batches)

    def objective_is_final(self, model: A, progress: float) -> bool:
        return self._stage(progress) == self.em_steps - 1

    def loss(self, model: A, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        log_truth = model.log_truth(batch.images)
        _, likelihood = noisy_label_loss(log_truth.detach(), model.rater_confusion(batch), batch.labels)
        return cross_entropy(log_truth, self._target(model, batch, log_truth.detach()), batch.labels), likelihood

    def _stage(self, progress: float) -> int:
        """How many times matrices should have been counted by now."""
        return min(int(progress * self.em_steps + 1e-6), self.em_steps - 1)

    def _target(self, model: A, batch: Batch, log_truth: Tensor) -> Tensor:
        if model.stage == 0:
            return label_shares(batch.labels, log_truth.shape[1])
        return self.posterior(model, batch, log_truth)

    def _maximise(self, model: A, batches: Iterable[Batch]) -> None:
        """M-step of the matrices and of the classes' frequency."""
        counts, frequency = np.zeros(model.annotators.matrices.shape), torch.zeros_like(model.frequency)
        for batch in batches:
            log_truth = model.log_truth(batch.images)
            truth = self.counted_against(self._target(model, batch, log_truth), log_truth)
            add_counts(counts, batch, truth)
            frequency += one_pixel_axis(truth, 2).sum(dim=(0, 2))
        model.annotators.matrices.copy_(torch.from_numpy(confusion_from_counts(counts)))
        model.frequency.copy_(frequency / frequency.sum())
