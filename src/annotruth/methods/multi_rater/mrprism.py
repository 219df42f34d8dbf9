"""MrPrism: a mask from confidences in the raters, confidences from the mask, again and again."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.methods.base import Batch, DataSpec, Method
from annotruth.methods.multi_rater.prism_model import (
    MAX_CONFIDENCE,
    MIN_CONFIDENCE,
    START_CONFIDENCE,
    Prism,
    PrismModel,
    Step,
    cropped,
    trust_of,
    trusted,
)
from annotruth.methods.needs import need_several_raters
from annotruth.methods.options import check_at_least, check_not_negative
from annotruth.methods.protocols import AnswersQuestions, FusesLabels, ShowsPanels, Stages
from annotruth.methods.registry import register
from annotruth.nn import Confusion, PixelConfusion, is_labelled
from annotruth.nn.prism import (
    INTEGRATIONS,
    PATCH,
    RULES,
    SLIPS,
    DivP,
    Rule,
    decided,
    fuse,
    mask_loss,
    multi_head_loss,
    opinions,
    patched,
    said,
    shares,
    shuffle_loss,
    ssim_loss,
    unpatched,
)
from annotruth.validation import MISSING_PIXEL, one_of

START_NOISE = 0.2
"""Deviation of what is added, patch by patch, to the confidences that training begins with (eq. 14)."""
OPINION_THRESHOLD = 0.5
"""What a head finds more probable than this, its rater is thought to say."""
VOTE_SHARE = 0.2
"""For this share of the training the mask learns what most said, whatever DivP, which knows nobody yet, makes of it."""
JUDGED_FROM = 0.7
"""From this share of the training on, held-out labels decide which weights are best: before, a vague mask makes them
likelier than one that decides."""
EVEN_SHARE = 0.5
"""Share of the items on which training begins with even confidences, as prediction does."""


@register
@dataclass(frozen=True)
class MrPrism(Stages, AnswersQuestions, FusesLabels, ShowsPanels, Method[PrismModel]):
    """Confidences in the raters give a mask of the image, the mask gives confidences, and so on.

    The mask learns which class labels speak for, given the mask of the recurrence before and how raters err; DivP
    learns how they err on the mask. At first the mask learns what most said.

    Options
    -------
    recurrences : how many times, in training and in prediction
    fusion : how labels are fused: "bayes", by each rater's mean matrix; or by confidences, patch by patch: "weights",
        and "literal", the paper's equation as it stands, which inverts them (see ``nn.prism.fusion``)
    slips : share of the labels, between 0 and 1, that "bayes" takes for slips: the more of them, the less do those who
        seem sure outvote the others. With many raters of whom some err alike, 0.5 may be better
    integration : how confidences come into the decoder: "attention", "concat" or "convlstm"
    head_loss : what DivP learns from: "multi-head", how likely its heads find their own raters' labels; "shuffle", the
        paper's, how like the mask the fusion of its own raters is, and how like the labels' under shuffled confidences;
        or "both". Only the first makes a matrix say how often a rater errs
    shuffle_weight, shuffles : how much shuffled fusions count, and how often confidences are dealt out anew
    """

    name = "mrprism"
    paper = "Wu et al. 2022"
    summary = "a mask from confidences in raters, confidences from the mask, recurrently"
    tasks = ("masks",)
    learns_annotators = True
    questions = ("recurrence", "confidences")
    report_panels = ("recurrences",)

    recurrences: int = 3
    fusion: Rule = "bayes"
    slips: float = SLIPS
    integration: Literal["attention", "concat", "convlstm"] = "attention"
    head_loss: Literal["multi-head", "shuffle", "both"] = "multi-head"
    shuffle_weight: float = 0.3
    shuffles: int = 3

    def __post_init__(self) -> None:
        one_of(self.fusion, RULES, "fusion")
        one_of(self.integration, tuple(INTEGRATIONS), "integration")
        check_at_least(1, recurrences=self.recurrences, shuffles=self.shuffles)
        one_of(self.head_loss, ("multi-head", "shuffle", "both"), "head_loss")
        if not 0 < self.slips < 1:
            raise InputError(f"slips must lie between 0 and 1, not be {self.slips}.")
        check_not_negative(shuffle_weight=self.shuffle_weight)

    def check(self, annotations: Annotations) -> None:
        need_several_raters(annotations, self.name, "weighs raters against each other")

    def predict_options(self, raters: Sequence[str], asked: Mapping[str, Any]) -> dict[str, Any]:
        options = dict(asked)
        if asked.get("recurrence", 0) < 0:
            raise InputError(
                f"Recurrences are counted from 0, and the last is {self.recurrences - 1}; not {asked['recurrence']}."
            )
        if "confidences" in options:
            options["trust"] = trust_of(options.pop("confidences"), raters)
        return options

    def build(self, spec: DataSpec, network: nn.Module | None = None) -> PrismModel:
        truth = Prism(spec, self.integration, network)
        return PrismModel(truth, DivP(spec.raters, spec.classes, spec.dims), self.recurrences)

    def objective_is_final(self, model: PrismModel, progress: float) -> bool:
        return progress >= JUDGED_FROM

    def loss(self, model: PrismModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        """Every item takes part in one recurrence, those of a batch in different ones.

        Gradients of a recurrence do not reach the one before, so that the loss of all is the sum of each: to take one
        of them per item costs a third and is right on average.
        """
        labels = model.truth.padded(batch.labels, MISSING_PIXEL)
        given = said(patched(labels), model.annotators.classes)
        per_item, size = len(given) // len(labels), labels.shape[2:]
        trust, start, due = self._begin(model, labels, per_item)
        features, confidence = model.truth.features(batch.images), unpatched(start.expand(-1, -1, given.shape[3]), size)
        target = shares(given, start)
        with torch.no_grad():
            for last in range(1, self.recurrences):
                first, after = bisect_left(due, last), bisect_right(due, last)  # of the items due after this one more
                if first == len(due):
                    break
                step = model.step([f[first:] for f in features], confidence[first:])
                confidence[first:] = step.confidences(trust[first:])
                if progress < VOTE_SHARE:
                    continue
                here = slice(first * per_item, after * per_item)
                target[here] = self._fused(model, given[here], step, trust[first:after])
        step = model.step(features, confidence)
        anybody = is_labelled(labels, given.shape[2]).any(dim=1)
        likelihood = multi_head_loss(given, step.matrices, step.mask)
        if model.training:
            model.remember(step)
        loss = mask_loss(step.log_truth, unpatched(decided(target), size), anybody)
        if self.head_loss != "shuffle":
            loss = loss + likelihood
        if self.head_loss != "multi-head":
            thought = (opinions(step.mask, step.matrices.detach()) > OPINION_THRESHOLD).float()
            of_heads = unpatched(
                fuse(self.fusion, thought, step.matrices, step.mask, prior=False, slips=self.slips)[:, 1:], size
            )
            shuffled = shuffle_loss(self.fusion, given, step.matrices, step.mask, self.shuffles, self.slips)
            loss = loss + ssim_loss(of_heads, step.log_truth.exp()[:, 1:], anybody) + self.shuffle_weight * shuffled
        return loss, likelihood.detach()

    def _begin(self, model: PrismModel, labels: Tensor, per_item: int) -> tuple[Tensor, Tensor, list[int]]:
        """Trust (items, raters), confidences to begin with (items · patches, raters, 1), and each item's recurrence.

        Equations 14 and 15, with noise that is the same for the pixels of a patch.
        """
        items, raters = labels.shape[:2]
        if not model.training:
            trust = torch.ones(items, raters, device=labels.device)
            start = torch.full((items * per_item, raters, 1), START_CONFIDENCE, device=labels.device)
            return trust, start, [self.recurrences - 1] * items
        drawn = MIN_CONFIDENCE + (MAX_CONFIDENCE - MIN_CONFIDENCE) * torch.rand(items, raters, device=labels.device)
        even = torch.rand(items, 1, device=labels.device) < EVEN_SHARE
        trust = torch.where(even, 1, drawn / drawn.mean(dim=1, keepdim=True))
        noise = START_NOISE * torch.randn(items, per_item, raters, device=labels.device) * ~even[:, :, None]
        start = (START_CONFIDENCE * trust[:, None] + noise).clamp(0, 1).flatten(0, 1).unsqueeze(2)
        return trust, start, self._due(items, float(torch.rand(())))

    def _due(self, items: int, shift: float) -> list[int]:
        """The recurrence that each item takes part in, ascending: equal shares, on average over shifts in [0, 1)."""
        return [int((item + shift) * self.recurrences / items) for item in range(items)]

    def rater_confidences(self, model: PrismModel, images: Tensor, raters: int, **options: Any) -> Tensor:
        step = model.estimate(images, **options)
        return cropped(unpatched(step.right(), step.log_truth.shape[2:]), images)

    def fuse_labels(self, model: PrismModel, images: Tensor, labels: Tensor, **options: Any) -> Tensor:
        step = model.estimate(images, **options)
        given = said(patched(model.truth.padded(labels, MISSING_PIXEL)), model.annotators.classes)
        together = self._fused(model, given, step, trusted(options.get("trust"), model.annotators.raters, images))
        return cropped(unpatched(together, step.log_truth.shape[2:]), images)

    def _fused(self, model: PrismModel, given: Tensor, step: Step, trust: Tensor) -> Tensor:
        """What raters said, patch by patch, of the first items of a recurrence, fused after it."""
        per_patch = trust.repeat_interleave(len(step.mask) // len(step.log_truth), dim=0)
        matrices = model.typical().expand_as(step.matrices) if self.fusion == "bayes" else step.matrices.detach()
        return fuse(self.fusion, given, matrices[: len(given)], step.mask[: len(given)], per_patch, slips=self.slips)

    def confusion(self, model: PrismModel, images: Tensor) -> Confusion:
        scores = model.estimate(images).scores
        every = F.interpolate(scores.flatten(1, 3), scale_factor=float(PATCH)).unflatten(1, scores.shape[1:4])
        return PixelConfusion(cropped(every, images))
