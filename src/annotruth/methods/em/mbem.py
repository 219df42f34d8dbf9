"""Model-bootstrapped expectation-maximisation: matrices counted against the network (Khetan et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from annotruth.methods.base import Batch
from annotruth.methods.em.alternating import Alternating, AlternatingModel
from annotruth.methods.registry import register
from annotruth.nn import one_hot_argmax


@register
@dataclass(frozen=True)
class ModelBootstrappedEM(Alternating[AlternatingModel]):
    """Khetan's algorithm: matrices are counted against the network's own answers, so that one label an item will do.

    The prior of the posterior is the classes' frequency, not the network. A class that the network never answers is
    lost to it; so it takes two steps by default, as its authors do, which leaves the network time to learn.
    """

    name = "mbem"
    paper = "Khetan et al. 2018; algorithm 3 of Tanno et al. 2019"
    summary = "model-bootstrapped EM: matrices counted against the network's answers"

    em_steps: int = 2

    def log_prior(self, model: AlternatingModel, batch: Batch, log_truth: Tensor) -> Tensor:
        return model.frequency.log().view(1, -1, *[1] * (log_truth.ndim - 2)).expand(log_truth.shape)

    def counted_against(self, target: Tensor, log_truth: Tensor) -> Tensor:
        return one_hot_argmax(log_truth)
