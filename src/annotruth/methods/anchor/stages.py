"""The schedule: foretell everybody's drawings, choose what to take for true, then learn truth and errors together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from annotruth.methods.anchor.choice import choose
from annotruth.methods.anchor.labellings import TOGETHER, WORD, overlap
from annotruth.methods.anchor.model import UNDECIDED, AnchoredModel
from annotruth.methods.base import Batch
from annotruth.methods.protocols import Stages
from annotruth.methods.warmup import loss_at_their_word
from annotruth.nn import class_index, dice_loss, dice_loss_of_raters, is_labelled, noisy_label_loss
from annotruth.nn.labels import one_hot
from annotruth.validation import MISSING_PIXEL

FORETELLING = 0.5
"""Share of the training in which drawings are foretold; then somebody's are taken for the truth."""
JOINT = 0.7
"""Share of the training after which the truth also learns from what the others' errors give away."""


@dataclass(frozen=True)
class Anchored(Stages):
    """Foretell drawings; take one labelling for true and learn the errors against it; then learn both together.

    While drawings are foretold, the truth model learns labels at their word. What is then taken for true stays so to
    the end: where the rater who is believed drew, or several voted, the drawing or the vote itself, unless it was a
    slip; elsewhere what others' drawings tell of it, or what is foretold of it. Errors are read from the features that
    foretell drawings, and from those of the pixels around.

    Attributes
    ----------
    trace_weight : how much the trace counts at last; None = as much as the likelihood of held-out labels allows
    trace : which diagonal entries count, "posterior" or "plain" (see ``nn.noisy_label_loss``)
    annotator_rate : how fast the annotator model learns at last, as a multiple of the truth model's rate; drawings are
        learnt to be foretold as fast as the truth
    """

    trace_weight: float | None = None
    trace: Literal["posterior", "plain"] = "posterior"
    annotator_rate: float = 1.0

    def objective_is_final(self, model: AnchoredModel, progress: float) -> bool:
        return progress >= JOINT and int(model.anchor) != UNDECIDED

    def annotator_pace(self, model: AnchoredModel, progress: float) -> float:
        if int(model.anchor) != UNDECIDED:
            return 1.0 if progress >= JOINT else max(1 / self.annotator_rate, 1.0)
        return max(1 - (progress / FORETELLING) ** 2, 0.0) / self.annotator_rate  # falls to nothing: drawings settle

    def begin_epoch(self, model: AnchoredModel, batches: Iterable[Batch], progress: float) -> None:
        if progress >= FORETELLING and int(model.anchor) == UNDECIDED:
            choose(model, batches)

    def loss(self, model: AnchoredModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        """The loss of the stage that it is time for, and the negative log-likelihood of the labels."""
        log_truth = model.log_truth(batch.images)
        with torch.set_grad_enabled(torch.is_grad_enabled() and int(model.anchor) == UNDECIDED):
            drawings, features = model.annotators.foretell(batch.images)
        at_their_word, likelihood = loss_at_their_word(log_truth, batch.labels)
        at_their_word = at_their_word + dice_loss_of_raters(
            log_truth.unsqueeze(1).expand(-1, batch.labels.shape[1], *log_truth.shape[1:]), batch.labels
        )
        if int(model.anchor) == UNDECIDED:
            return at_their_word + drawing_loss(drawings, batch.labels), likelihood
        target = self._target(model, log_truth, drawings, batch.labels)
        anchored = at_their_word if target is None else _overlap_loss(log_truth, target)
        confusion = model.annotators.errors(features.detach(), batch.raters)
        if self.objective_is_final(model, progress):
            weight = model.trace_rule.weight.item() if self.trace_weight is None else self.trace_weight
            learnt = log_truth.detach() if target is None else log_truth  # labels at their word are all it learns then
            explained, likelihood = noisy_label_loss(learnt, confusion, batch.labels, weight, self.trace)
        else:
            known = log_truth.detach() if target is None else one_hot(target, log_truth.shape[1]).clamp_min(1e-6).log()
            explained, _ = noisy_label_loss(known, confusion, batch.labels)
        return anchored + explained, likelihood

    @torch.no_grad()
    def _target(self, model: AnchoredModel, log_truth: Tensor, drawings: Tensor, labels: Tensor) -> Tensor | None:
        """What is taken for true: (batch, *spatial) uint8; None = everybody's labels."""
        chosen = int(model.anchor)
        if chosen == model.annotators.raters + TOGETHER.index(WORD):
            return None
        labellings = model.labellings(log_truth, drawings, labels)
        target = foretold = labellings.foretold(chosen)
        for known, least in zip(
            (labellings.by_others(chosen), labellings.drawn(chosen)), model.least_agreement.flip(0)
        ):
            slip = (overlap(known, foretold) < least).view(-1, *[1] * (known.ndim - 1))
            target = torch.where((known == MISSING_PIXEL) | slip, target, known)
        nobody = (labels == MISSING_PIXEL).all(dim=1)  # padding, above all
        return target.masked_fill(nobody, MISSING_PIXEL)

    def after_epoch(self, model: AnchoredModel, likelihood: float, progress: float) -> None:
        if self.objective_is_final(model, progress):
            model.trace_rule.after_epoch(likelihood, (progress - JOINT) / (1 - JOINT))


def drawing_loss(drawings: Tensor, labels: Tensor) -> Tensor:
    """Negative log-likelihood of labels (batch, raters, *spatial) foretold as (batch, raters, classes, *spatial).

    One minus the Dice of each rater's drawings is added, without which those who draw little are foretold late.

    Examples
    --------
    >>> drawings = torch.tensor([[[[0.5, 0.25], [0.5, 0.75]]]]).log()
    >>> drawing_loss(drawings, torch.tensor([[[0, 255]]], dtype=torch.uint8))  # log 2, and 1 - 1 / 1.5
    tensor(1.0265)
    """
    classes = drawings.shape[2]
    given = is_labelled(labels, classes)
    said = drawings.gather(2, class_index(labels, classes).unsqueeze(2)).squeeze(2)
    return dice_loss_of_raters(drawings, labels) - (said * given).sum() / given.sum().clamp_min(1)


def _overlap_loss(log_truth: Tensor, target: Tensor) -> Tensor:
    likelihood, _ = loss_at_their_word(log_truth, target.unsqueeze(1))
    return likelihood + dice_loss(log_truth, target)
