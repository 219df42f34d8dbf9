"""A network on the majority vote whose scores are clipped, so that no single wrong vote pulls hard."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from annotruth.errors import InputError
from annotruth.methods.base import Batch, MethodModel
from annotruth.methods.registry import register
from annotruth.methods.two_stage.majority import Majority
from annotruth.nn import noisy_label_loss


@register
@dataclass(frozen=True)
class LogitClip(Majority):
    """A plain reference that withstands wrong labels and knows nothing of raters.

    Options
    -------
    longest : class scores of greater length (Euclidean norm) are shortened to it while the network learns
    """

    name = "logit-clip"
    paper = "Wei et al. 2023"
    summary = "a network on the majority vote, its scores clipped in length"
    tasks = ("labels",)

    longest: float = 5.0

    def __post_init__(self) -> None:
        if not self.longest > 0:
            raise InputError(f"longest must be greater than 0, not {self.longest}.")

    def loss(self, model: MethodModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        scores = clip_length(model.truth(batch.images), self.longest)
        return noisy_label_loss(scores.log_softmax(dim=1), model.rater_confusion(batch), batch.labels)


def clip_length(scores: Tensor, longest: float) -> Tensor:
    """Shorten vectors along the second axis that are longer than that.

    Examples
    --------
    >>> import torch
    >>> clip_length(torch.tensor([[3.0, 4.0], [0.6, 0.8]]), longest=1.0)
    tensor([[0.6000, 0.8000],
            [0.6000, 0.8000]])
    """
    length = scores.norm(dim=1, keepdim=True)
    return scores * (longest / length.clamp_min(longest))
