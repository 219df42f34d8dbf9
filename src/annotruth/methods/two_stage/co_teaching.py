"""Two networks on the majority vote, of which each tells the other what to learn from."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from annotruth.data.annotations import Annotations
from annotruth.data.answers import Answers
from annotruth.errors import InputError
from annotruth.fusion import MajorityVote
from annotruth.methods.base import Batch, DataSpec, Method, MethodModel
from annotruth.methods.registry import register
from annotruth.methods.targets import fused_answers
from annotruth.nn import IdentityAnnotators, is_labelled


class TwoNetworks(MethodModel):
    """Two networks side by side; the truth is their mean."""

    truth: nn.ModuleList

    def log_networks(self, images: Tensor) -> list[Tensor]:
        """Each network's log-probabilities (items, classes)."""
        return [network(images).log_softmax(dim=1) for network in self.truth]

    def log_truth(self, images: Tensor) -> Tensor:
        """The log of the networks' mean probability."""
        return torch.stack(self.log_networks(images)).exp().mean(dim=0).log()


@register
@dataclass(frozen=True)
class CoTeaching(Method[TwoNetworks]):
    """Networks learn what is right before they learn errors by heart, and two of them err differently.

    So each hands the other the items on which its own loss is small.

    Options
    -------
    forget : share of a batch that is left out, as many as there seem to be wrong votes
    ramp : share of the training over which as many come to be left out
    """

    name = "co-teaching"
    paper = "Han et al. 2018"
    summary = "two networks on the majority vote that choose each other's items"
    tasks = ("labels",)
    model_class = TwoNetworks

    forget: float = 0.2
    ramp: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.forget < 1:
            raise InputError(f"forget is a share, 0 ≤ forget < 1, not {self.forget}.")
        if not 0 < self.ramp <= 1:
            raise InputError(f"ramp is a share of the training, 0 < ramp ≤ 1, not {self.ramp}.")

    def label_targets(self, annotations: Annotations) -> Answers:
        return fused_answers(MajorityVote(), annotations)

    def n_targets(self, spec: DataSpec) -> int:
        return 1

    def build(self, spec: DataSpec, network: nn.Module | None = None) -> TwoNetworks:
        networks = [self.truth_model(spec) if network is None else copy.deepcopy(network) for _ in range(2)]
        if network is not None:
            for layer in networks[1].modules():  # they must differ from the beginning
                getattr(layer, "reset_parameters", lambda: None)()
        return TwoNetworks(nn.ModuleList(networks), IdentityAnnotators(self.n_targets(spec), spec.classes))

    def loss(self, model: TwoNetworks, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        logs = model.log_networks(batch.images)
        item = is_labelled(batch.labels, logs[0].shape[1])[:, 0].nonzero(as_tuple=True)[0]
        label = batch.labels[item, 0].long()[:, None]
        each = [-log[item].gather(1, label).squeeze(1) for log in logs]
        if len(item) == 0:
            nothing = (each[0].sum() + each[1].sum()) * 0
            return nothing, nothing.detach()
        forgotten = self.forget * min(progress / self.ramp, 1)
        kept = max(1, round((1 - forgotten) * len(item)))
        first, second = (losses.detach().argsort()[:kept] for losses in each)
        loss = each[0][second].mean() + each[1][first].mean()
        return loss, (each[0].detach().mean() + each[1].detach().mean()) / 2
