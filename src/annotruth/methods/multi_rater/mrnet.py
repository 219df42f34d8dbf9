"""MRNet: a network that is told how expert each rater is, and draws the mask that they would agree upon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from annotruth.data.annotations import Annotations
from annotruth.methods.base import HEAD_START, Batch, DataSpec, Method, MethodModel
from annotruth.methods.multi_rater.prism_model import (
    MAX_CONFIDENCE,
    MIN_CONFIDENCE,
    Prism,
    cropped,
    everywhere,
    trust_of,
    trusted,
)
from annotruth.methods.needs import need_several_raters
from annotruth.methods.protocols import AnswersQuestions
from annotruth.methods.registry import register
from annotruth.nn import is_labelled
from annotruth.nn.prism import mask_loss, said, shares

LEAST_VARIANCE = 1e-8
"""Between raters. Where all are thought to draw the same, a root has no slope."""


class Expertness(nn.Module):
    """The truth model: encoder and decoder with the raters' expertness in a ConvLSTM, masks of all raters, refinement.

    What raters would draw is read from a first mask; where they differ, the mask is drawn anew.
    """

    def __init__(self, spec: DataSpec, network: nn.Module | None) -> None:
        super().__init__()
        convolution = nn.Conv2d if spec.dims == 2 else nn.Conv3d
        self.prism = Prism(spec, "convlstm", network)
        self.raters, self.classes = spec.raters, spec.classes
        self.each = convolution(spec.classes, spec.raters * spec.classes, kernel_size=3, padding=1)
        self.refine = convolution(2 * spec.classes, spec.classes, kernel_size=3, padding=1)

    def forward(self, images: Tensor, expertness: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the mask (batch, classes, *spatial) and of each rater's (batch, raters, classes, …)."""
        features = self.prism.features(images)
        maps = everywhere(expertness, images).expand(-1, -1, *self.prism.padded_size(images))
        first = self.prism.conp(features, maps)
        each = self.each(first).unflatten(1, (self.raters, self.classes)).log_softmax(dim=2)
        differ = (each.exp().var(dim=1, unbiased=False) + LEAST_VARIANCE).sqrt()
        last = first + self.refine(torch.cat([first.softmax(dim=1), differ], dim=1))
        return cropped(last.log_softmax(dim=1), images), cropped(each, images)


class ExpertnessModel(MethodModel):
    """Everybody is as expert as the others, unless it is said otherwise."""

    truth: Expertness

    def log_truth(self, images: Tensor, trust: Tensor | None = None) -> Tensor:
        return self.truth(images, trusted(trust, self.truth.raters, images))[0]


@register
@dataclass(frozen=True)
class MRNet(AnswersQuestions, Method[ExpertnessModel]):
    """Expertness is drawn at random in training, and the mask to learn is the raters' mean with it as weight.

    So the network can be told whom to trust, but does not find out by itself. It learns the mask by structure and
    overlap, too, as ``mrprism`` does: by likelihood alone, small structures were lost.
    """

    name = "mrnet"
    paper = "Ji et al. 2021"
    summary = "a network told how expert each rater is, by a ConvLSTM"
    tasks = ("masks",)
    head_start = HEAD_START
    questions = ("confidences",)

    def check(self, annotations: Annotations) -> None:
        need_several_raters(annotations, self.name, "is told whom of the raters to trust more")

    def predict_options(self, raters: Sequence[str], asked: Mapping[str, Any]) -> dict[str, Any]:
        return {"trust": trust_of(asked["confidences"], raters)} if asked else {}

    def build(self, spec: DataSpec, network: nn.Module | None = None) -> ExpertnessModel:
        return ExpertnessModel(Expertness(spec, network), self.annotator_model(spec))

    def loss(self, model: ExpertnessModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        given = said(batch.labels, model.truth.classes)
        expertness = batch.images.new_ones(batch.labels.shape[:2])
        if model.training:
            expertness = MIN_CONFIDENCE + (MAX_CONFIDENCE - MIN_CONFIDENCE) * torch.rand_like(expertness)
            expertness = expertness / expertness.mean(dim=1, keepdim=True)
        log_truth, log_each = model.truth(batch.images, expertness)
        target = shares(given, everywhere(expertness, batch.images).expand(batch.labels.shape))
        counted = is_labelled(batch.labels, given.shape[2]).any(dim=1)
        of_mask = -((target * log_truth).sum(dim=1) * counted).sum() / counted.sum().clamp_min(1)
        of_raters = -(given * log_each).sum() / given.sum().clamp_min(1)
        return mask_loss(log_truth, target, counted) + of_raters, of_mask.detach()
