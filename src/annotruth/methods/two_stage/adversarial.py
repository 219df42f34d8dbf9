"""What networks on the majority vote share whose maps a discriminator judges: what is real, and what is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.methods.base import M, MethodModel
from annotruth.methods.options import check_not_negative
from annotruth.methods.two_stage.majority import OnVote
from annotruth.nn.adversarial import PatchDiscriminator, adversarial_losses
from annotruth.validation import MISSING_PIXEL, one_of


class Judged(nn.Module):
    """A truth model: a network, and a discriminator for each kind of its maps, which prediction does not need."""

    def __init__(self, network: nn.Module, judges: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self.network, self.judges = network, nn.ModuleDict(judges)

    def forward(self, images: Tensor) -> Tensor:
        return self.network(images)


class JudgedModel(MethodModel):
    """A network with discriminators."""

    truth: Judged


@dataclass(frozen=True)
class Adversarial(OnVote[M]):
    """The network learns to make maps that a discriminator cannot tell from real ones.

    With one domain, real maps are those of the vote. Those are hard and the network's soft, so that a discriminator
    finds them out whatever they show, and the network would learn to be sure that there is nothing: so discriminators
    are bounded, and their say rises over the first half of the training. With two domains, what nobody labelled is the
    target domain, and real maps are the network's own of items that somebody labelled.

    Options
    -------
    domains : "one", or "two", where items that nobody labelled are pictures of another domain, to be labelled as well
    adversarial : how much it counts that the network's maps are found out
    """

    tasks = ("masks",)

    domains: Literal["one", "two"] = "one"
    adversarial: float = 0.01

    def __post_init__(self) -> None:
        one_of(self.domains, ("one", "two"), "domains")
        check_not_negative(adversarial=self.adversarial)

    def check(self, annotations: Annotations) -> None:
        if self.domains == "one":
            return
        bare = sum(bool((annotations.item_masks(index) == MISSING_PIXEL).all()) for index in range(len(annotations)))
        if not 0 < bare < len(annotations):
            lack = "somebody labelled every item" if bare == 0 else "nobody labelled any"
            raise InputError(
                f"The method {self.name} with domains='two' needs items that somebody labelled and, from the other "
                f"domain, items that nobody did; here {lack}. Add such items, or use domains='one', or majority."
            )

    def judge(self, channels: int, dims: int) -> PatchDiscriminator:
        """A discriminator of maps with so many channels."""
        return PatchDiscriminator(channels, dims, bounded=self.domains == "one")

    def judged(
        self,
        model: JudgedModel,
        real: Mapping[str, Tensor],
        fake: Mapping[str, Tensor],
        labelled: Tensor,
        progress: float,
    ) -> Tensor:
        """What discriminators add to the loss.

        Parameters
        ----------
        real, fake : by discriminator, maps (items, channels, *spatial) of the vote, and of the network
        labelled : (items, *spatial) where the vote says something; elsewhere the network's map stands for it
        progress : of the training, from 0 to 1
        """
        source = labelled.flatten(1).any(dim=1).float()
        weight = self.adversarial * (min(2 * progress, 1.0) if self.domains == "one" else 1.0)
        total = source.new_zeros(())
        for name, judge in model.truth.judges.items():
            made = fake[name]
            if self.domains == "two":
                fools, judges = adversarial_losses(judge, made, made, source, 1 - source)
            else:
                drawn = torch.where(labelled.unsqueeze(1), real[name], made)
                fools, judges = adversarial_losses(judge, drawn, made, source, source)
            total = total + weight * fools + judges
        return total
