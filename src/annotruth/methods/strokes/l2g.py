"""A network that sees whole images learns from one that sees parts of them: the idea of L2G."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from annotruth.methods.base import Batch, DataSpec, MethodModel
from annotruth.methods.options import check_not_negative
from annotruth.methods.registry import register
from annotruth.methods.strokes.box_sup import BoxMethod
from annotruth.methods.warmup import loss_at_their_word


class LocalGlobalModel(MethodModel):
    """The network that is asked, which sees whole images, and one that sees parts of them."""

    truth: nn.ModuleList

    def __init__(self, truth: nn.Module, annotators: nn.Module, local: nn.Module) -> None:
        super().__init__(nn.ModuleList([truth, local]), annotators)

    def log_truth(self, images: Tensor) -> Tensor:
        return self.truth[0](images).log_softmax(dim=1)

    def log_local(self, images: Tensor) -> Tensor:
        """What the other network sees."""
        return self.truth[1](images).log_softmax(dim=1)


@register
@dataclass(frozen=True)
class LocalToGlobal(BoxMethod[LocalGlobalModel]):
    """Parts show details that a whole image hides; what is seen there is handed on.

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
        check_not_negative(transfer=self.transfer)

    def build(self, spec: DataSpec, network: nn.Module | None = None) -> LocalGlobalModel:
        truth = network if network is not None else self.truth_model(spec)
        local = copy.deepcopy(network) if network is not None else self.truth_model(spec)
        return LocalGlobalModel(truth, self.annotator_model(spec), local)

    def loss(self, model: LocalGlobalModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        log_truth = model.log_truth(batch.images)
        labels = self.labels(log_truth, batch, progress)
        loss, likelihood = loss_at_their_word(log_truth, labels)
        if not model.training or not likelihood:
            return loss, likelihood
        window = _part(batch.images.shape[2:])
        log_local = model.log_local(batch.images[window].contiguous())
        of_local, _ = loss_at_their_word(log_local, labels[window])
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
