"""Generalised expectation-maximisation: a network and counted matrices in turns (Raykar et al. 2010)."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from annotruth.methods.base import Batch, DataSpec
from annotruth.methods.em.alternating import Alternating, AlternatingModel
from annotruth.methods.registry import register


class LookingBackModel(AlternatingModel):
    """A network and matrices, with the network as it was when these were last counted.

    Keeping that network instead of everybody's posterior takes no memory per pixel, and lets items be cut and mirrored.
    """

    def __init__(self, truth: nn.Module, annotators: nn.Module, spec: DataSpec) -> None:
        super().__init__(truth, annotators, spec)
        self.earlier = copy.deepcopy(truth).requires_grad_(False)

    def counted(self, stage: int) -> None:
        super().counted(stage)
        self.earlier.load_state_dict(self.truth.state_dict())


@register
@dataclass(frozen=True)
class GeneralisedEM(Alternating[LookingBackModel]):
    """Raykar's algorithm: the posterior combines the network, as it was at the last E-step, with all labels.

    With one label an item the first posterior is that label, which makes everybody faithful for ever.
    """

    name = "gem"
    paper = "Raykar et al. 2010; algorithm 2 of Tanno et al. 2019"
    summary = "generalised EM: a network and counted matrices in turns"
    model_class = LookingBackModel

    def log_prior(self, model: LookingBackModel, batch: Batch, log_truth: Tensor) -> Tensor:
        with torch.no_grad():
            return model.earlier.eval()(batch.images).log_softmax(dim=1)
