"""A network for each rater, each trained on that rater's labels alone; their average is the estimate."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from annotruth.methods.base import Batch, DataSpec, Method, MethodModel
from annotruth.methods.inference import in_rounds
from annotruth.methods.protocols import Samples
from annotruth.methods.registry import register
from annotruth.nn import IdentityAnnotators, IdentityConfusion, noisy_label_loss


class SeparateNetworks(MethodModel):
    """One network per rater side by side."""

    truth: nn.ModuleList

    def log_networks(self, images: Tensor) -> list[Tensor]:
        """Every network's log-probabilities (batch, classes, *spatial)."""
        return [network(images).log_softmax(dim=1) for network in self.truth]

    def log_truth(self, images: Tensor) -> Tensor:
        """The log of the networks' mean probability."""
        logs = torch.stack(self.log_networks(images))
        return logs.logsumexp(dim=0) - torch.tensor(float(len(logs)), device=logs.device).log()


@register
@dataclass(frozen=True)
class Separate(Samples, Method[SeparateNetworks]):
    """Nobody's errors are modelled, only averaged."""

    name = "separate"
    paper = "baseline of Zhang et al. 2020"
    summary = "a network per rater, averaged"
    tasks = ("masks",)

    def build(self, spec: DataSpec, network: nn.Module | None = None) -> SeparateNetworks:
        networks = [
            copy.deepcopy(network) if network is not None else self.truth_model(spec) for _ in range(spec.raters)
        ]
        return SeparateNetworks(nn.ModuleList(networks), IdentityAnnotators(spec.raters, spec.classes))

    def loss(self, model: SeparateNetworks, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        logs = model.log_networks(batch.images)
        word = IdentityConfusion(1, logs[0].shape[1])
        losses = [noisy_label_loss(log, word, batch.labels[:, [rater]])[0] for rater, log in enumerate(logs)]
        total = torch.stack(losses).mean()
        return total, total

    def sample(
        self, model: SeparateNetworks, images: Tensor, n: int, generator: torch.Generator, spec: DataSpec
    ) -> Tensor:
        who = in_rounds(spec.raters, n, generator).to(images.device)
        return torch.stack(model.log_networks(images))[who].exp()
