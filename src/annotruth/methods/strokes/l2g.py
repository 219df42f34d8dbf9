"""A network that sees whole images learns from one that sees parts of them: the idea of L2G."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from annotruth.errors import InputError
from annotruth.methods.base import Batch, DataSpec, MethodModel, register
from annotruth.methods.strokes.box_sup import BoxSup
from annotruth.nn import IdentityAnnotators, IdentityConfusion, noisy_label_loss


class LocalGlobalModel(MethodModel):
    """The network that is asked, which sees whole images, and one that sees parts of them."""

    def __init__(self, truth: nn.Module, annotators: nn.Module, local: nn.Module) -> None:
        super().__init__(nn.ModuleList([truth, local]), annotators)

    def log_truth(self, images: Tensor) -> Tensor:
        return self.truth[0](images).log_softmax(dim=1)  # type: ignore[index]

    def log_local(self, images: Tensor) -> Tensor:
        """What the other network sees."""
        return self.truth[1](images).log_softmax(dim=1)  # type: ignore[index]


@register
@dataclass(frozen=True)
class LocalToGlobal(BoxSup):
    """MethodModel show details that a whole image hides; what is seen there is handed on.

    Simplified: the paper starts from labels of whole images, and hands on attention maps of classes; here, as in the
    coarse-label paper's table, both networks start from boxes, and probabilities are handed on. A part is a half of
    each side, at a random place.

    Options
    -------
    transfer : how much the local network's word counts for the global one
    """

    name = "l2g"
    paper = "Jiang et al. 2022, its idea; comparison of the coarse-label paper"
    summary = "box-sup with a second network that looks at parts of images"

    transfer: float = 1.0

    def __post_init__(self) -> None:
        if self.transfer < 0:
            raise InputError(f"transfer must not be negative, as {self.transfer} is.")

    def build(self, shape: DataSpec, network: nn.Module | None = None) -> MethodModel:
        truth = network if network is not None else self.truth_model(shape)
        local = copy.deepcopy(network) if network is not None else self.truth_model(shape)
        return LocalGlobalModel(truth, IdentityAnnotators(self.n_targets(shape), shape.classes), local)

    def loss(self, parts: MethodModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        assert isinstance(parts, LocalGlobalModel)
        log_truth = parts.log_truth(batch.images)
        labels = self.labels(log_truth, batch, progress)
        word = IdentityConfusion(1, log_truth.shape[1])
        loss, likelihood = noisy_label_loss(log_truth, word, labels)
        if not parts.training or not likelihood:
            return loss, likelihood
        window = _part(batch.images.shape[2:])
        log_local = parts.log_local(batch.images[window].contiguous())
        of_local, _ = noisy_label_loss(log_local, word, labels[window])
        handed_on = ((log_truth[window].exp() - log_local.detach().exp()) ** 2).sum(dim=1).mean()
        return loss + of_local + self.transfer * handed_on, likelihood


def _part(size: torch.Size) -> tuple[slice, ...]:
    """Half of each side of a batch (batch, channels, *spatial), somewhere."""
    window = []
    for length in size:
        side = -(-length // 2)
        start = int(torch.randint(0, length - side + 1, ()))
        window.append(slice(start, start + side))
    return (slice(None), slice(None), *window)
