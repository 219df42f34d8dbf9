"""Global matrices, told from the truth by a large volume instead of a small trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from annotruth.methods.base import Batch, DataSpec, Method, MethodModel
from annotruth.methods.options import check_not_negative
from annotruth.methods.registry import register
from annotruth.nn import GlobalAnnotators, is_labelled, noisy_label_loss
from annotruth.validation import one_of

SMOOTHING = 1e-3
"""Added to the diagonal of what a volume is of, so that it is not zero where a batch shows few of the classes."""


@register
@dataclass(frozen=True)
class GeoCrowdNet(Method[MethodModel]):
    """Many pairs of truth and matrices explain the labels; taken is the one in which the answers fill most room.

    Options
    -------
    volume : "truth" = of the network's answers, as if all classes were seen for sure somewhere (F in the paper);
        "raters" = of all raters' matrices, as if for every class somebody were sure (W)
    volume_weight : how much the logarithm of the volume counts beside the likelihood
    """

    name = "geo-crowd-net"
    paper = "Ibrahim et al. 2023"
    summary = "a matrix per rater, with the largest volume of truth or matrices"
    tasks = ("labels",)
    learns_annotators = True
    annotator_rate = 3.0  # few numbers that must keep pace with a whole network

    volume: Literal["truth", "raters"] = "truth"
    volume_weight: float = 0.01

    def __post_init__(self) -> None:
        one_of(self.volume, ("truth", "raters"), "volume")
        check_not_negative(volume_weight=self.volume_weight)

    def annotator_model(self, spec: DataSpec) -> nn.Module:
        return GlobalAnnotators(spec.raters, spec.classes)

    def loss(self, model: MethodModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        log_truth, confusion = model.log_truth(batch.images), model.rater_confusion(batch)
        loss, likelihood = noisy_label_loss(log_truth, confusion, batch.labels)
        if not is_labelled(batch.labels, log_truth.shape[1]).any():
            return loss, likelihood
        rows = log_truth.exp().T if self.volume == "truth" else confusion.dense()[0].movedim(1, 0).flatten(1)
        return loss - self.volume_weight * log_volume(rows), likelihood


def log_volume(rows: Tensor) -> Tensor:
    """The log-determinant of the mean of products of rows (classes, n) with each other, a little smoothed.

    Examples
    --------
    >>> sure, unsure = torch.eye(2), torch.full((2, 2), 0.5)
    >>> log_volume(sure) > log_volume(unsure)
    tensor(True)
    """
    products = rows @ rows.T / rows.shape[1]
    return torch.logdet(products + SMOOTHING * torch.eye(len(rows), dtype=rows.dtype, device=rows.device))
