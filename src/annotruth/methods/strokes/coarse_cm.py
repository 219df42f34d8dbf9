"""Coarse positive and negative drawings: a network for the truth, and one for the errors of what is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.methods.base import Batch, DataSpec, Method, MethodModel
from annotruth.methods.options import check_not_negative
from annotruth.methods.protocols import LearnsFromTruth, ShowsPanels, Stages
from annotruth.methods.registry import register
from annotruth.methods.strokes.drawings import both_drawings, check_strokes
from annotruth.nn import (
    Complement,
    Confusion,
    IdentityConfusion,
    Marking,
    NegativeConfusion,
    PixelAnnotators,
    PixelConfusion,
    identity_scores,
    is_labelled,
    noisy_label_loss,
    smoothness_loss,
)
from annotruth.validation import one_of

COUNTS_FROM = 0.2
"""Share of the training after which it counts how much of each class is marked, and how rightly: a young network cannot
tell."""
JUDGED_FROM = 0.3
"""Share of the training after which held-out marks are taken to judge the network."""


class DrawingAnnotators(PixelAnnotators):
    """A matrix per drawing and pixel, and M, which all negative drawings share: what is learnt of how people err."""

    def __init__(self, drawings: int, spec: DataSpec, learnt: bool) -> None:
        super().__init__(spec.channels, drawings, spec.classes, spec.dims, plan=spec.network)
        self.complement = Complement(spec.classes, learnt)


class CoarseModel(MethodModel):
    """A truth model, a model of how people err, and what is counted of their marks on the way."""

    annotators: DrawingAnnotators

    def __init__(self, truth: nn.Module, annotators: nn.Module, spec: DataSpec) -> None:
        super().__init__(truth, annotators)
        self.marking = Marking(spec.raters, spec.classes)

    @property
    def complement(self) -> Complement:
        """M."""
        return self.annotators.complement

    def usual_scores(self) -> Tensor:
        """Scores (raters, classes, classes) of the counted errors, the same wherever somebody draws."""
        # The inverse of softplus; row sums are those that the learnt matrices start with.
        return (self.marking.errors() * F.softplus(self.marking.marks.new_tensor(1.0))).expm1().log()

    def scores(self, images: Tensor) -> Tensor:
        """Scores (batch, drawings, classes, classes, *spatial): the network learns where errors are not the usual."""
        learnt = self.annotators(images).scores
        unusual = self.usual_scores() - identity_scores(learnt.shape[2]).to(learnt)
        unusual = unusual.repeat(learnt.shape[1] // len(unusual), 1, 1)
        return learnt + unusual.view(1, *unusual.shape, *[1] * (learnt.ndim - 4))


@register
@dataclass(frozen=True)
class CoarseCM(Stages, LearnsFromTruth, ShowsPanels, Method[CoarseModel]):
    """People mark pixels, rightly or wrongly, as a class or as not a class.

    Options
    -------
    unmarked : "ignore" learns nothing from pixels that nobody marked, beyond how much of each class is marked;
        "background" takes what somebody who drew on an image left unmarked for background, as in hasty whole masks
    negatives : whether to learn from drawings of what is not there
    matrices : "shared" gives both drawings of a person one matrix per pixel, "separate" one each
    complement : M, which class somebody calls a pixel not to be, is "uniform" or "learnt"
    trace_weight, trace : as of pixel-cm
    smoothness : weight of the preference for one class among neighbours that look alike, times the share of pixels of
        which nothing is said; give 0 where structures are only a few pixels wide, as vessels are
    warmup : share of the training before errors are learnt from the image; before that they are counted
    """

    name = "coarse-cm"
    paper = "Emerging semantic segmentation from positive and negative coarse label learning"
    summary = "strokes of what is there and what is not, with a model of their errors"
    tasks = ("masks",)
    learns_annotators = True
    learns_from_raters = False  # strokes cannot be judged as whole masks can
    shrinks_trace = True
    annotator_rate = 0.1
    model_class = CoarseModel
    report_panels = ("complement",)

    unmarked: Literal["ignore", "background"] = "ignore"
    negatives: bool = True
    matrices: Literal["shared", "separate"] = "shared"
    complement: Literal["uniform", "learnt"] = "uniform"
    trace_weight: float = 0.01
    trace: Literal["posterior", "plain"] = "posterior"
    smoothness: float = 1.0
    warmup: float = 0.5

    def __post_init__(self) -> None:
        one_of(self.unmarked, ("ignore", "background"), "unmarked")
        one_of(self.matrices, ("shared", "separate"), "matrices")
        one_of(self.complement, ("uniform", "learnt"), "complement")
        one_of(self.trace, ("posterior", "plain"), "trace")
        if not 0 <= self.warmup <= 1:
            raise InputError(f"warmup is a share of the training, 0 ≤ warmup ≤ 1, not {self.warmup}.")
        check_not_negative(smoothness=self.smoothness)

    def check(self, annotations: Annotations) -> None:
        check_strokes(annotations, self.unmarked == "background", self.negatives)

    def mask_targets(self, annotations: Annotations, index: int) -> Tensor:
        """Positive, then negative drawings: (2 · raters, *spatial)."""
        return both_drawings(annotations, index, self.unmarked == "background", self.negatives)

    def n_targets(self, spec: DataSpec) -> int:
        return 2 * spec.raters

    def annotator_model(self, spec: DataSpec) -> nn.Module:
        drawings = spec.raters * (1 if self.matrices == "shared" else 2)
        return DrawingAnnotators(drawings, spec, self.complement == "learnt")

    def objective_is_final(self, model: CoarseModel, progress: float) -> bool:
        # Learnt errors change the form of the loss, but held-out marks are as likely before and after: the best counts.
        return progress >= (min(self.warmup, JUDGED_FROM) if self.matrices == "shared" else self.warmup)

    def loss(self, model: CoarseModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        """Marks at their word; then as a sample of which some is wrong, and some classes are marked more."""
        log_truth = model.log_truth(batch.images)
        classes = log_truth.shape[1]
        positive, negative = batch.labels.chunk(2, dim=1)
        if model.training:
            model.marking.count(log_truth, positive, negative, model.complement())
        log_marked = model.marking.of_marked(log_truth) if progress >= COUNTS_FROM else log_truth
        there, not_there = self.drawn(model, batch, progress)
        terms = [(log_marked, there, positive, self.trace_weight), (log_marked, not_there, negative, self.trace_weight)]
        if batch.truth is not None:
            terms.append((log_truth, IdentityConfusion(1, classes), batch.truth[:, None], 0.0))
        loss = 0 * log_truth.sum()  # a batch without labels has a gradient, too
        likelihood = count = log_truth.new_zeros(())
        for log_class, confusion, labels, weight in terms:
            given = is_labelled(labels, classes).sum()
            if given:
                weight = weight if progress >= self.warmup else 0.0
                of_term, of_labels = noisy_label_loss(log_class, confusion, labels, weight, self.trace)
                loss, likelihood, count = loss + given * of_term, likelihood + given * of_labels, count + given
        loss, likelihood = loss / count.clamp_min(1), likelihood / count.clamp_min(1)
        if self.smoothness and count:
            # As much as there is to be told of pixels that nobody marked; on thin strokes it does harm, too.
            in_doubt = ~is_labelled(batch.labels, classes).any(dim=1)
            if batch.truth is not None:
                in_doubt &= ~is_labelled(batch.truth, classes)
            some = in_doubt.flatten(1).any(dim=1)
            spread = smoothness_loss(log_truth[some], batch.images[some])
            loss = loss + self.smoothness * in_doubt.float().mean() * spread
        return loss, likelihood

    def confusion(self, model: CoarseModel, images: Tensor) -> Confusion:
        scores = model.scores(images)
        return PixelConfusion(scores if self.matrices == "shared" else scores.chunk(2, dim=1)[0])

    def drawn(self, model: CoarseModel, batch: Batch, progress: float = 1.0) -> tuple[Confusion, Confusion]:
        """How people draw what is there, and what is not."""
        people, classes = batch.labels.shape[1] // 2, len(model.complement.scores)
        there: IdentityConfusion | PixelConfusion = IdentityConfusion(people, classes)
        taken_for = there
        if progress >= self.warmup:
            scores = model.scores(batch.images)
            there, taken_for = PixelConfusion(scores[:, :people]), PixelConfusion(scores[:, -people:])
        elif progress >= COUNTS_FROM:
            usual = model.usual_scores()
            usual = usual.view(1, *usual.shape, *[1] * (batch.labels.ndim - 2))
            there = taken_for = PixelConfusion(usual.expand(len(batch.labels), -1, -1, -1, *batch.labels.shape[2:]))
        return there, NegativeConfusion(taken_for, model.complement())
