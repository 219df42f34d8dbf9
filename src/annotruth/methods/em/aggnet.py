"""Expectation-maximisation inside the training of a network (Albarqouni et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass

from annotruth.methods.em.alternating import Alternating, AlternatingModel
from annotruth.methods.registry import register


@register
@dataclass(frozen=True)
class AggNet(Alternating[AlternatingModel]):
    """EM inside the training: the posterior follows the network at every step, matrices are counted at every stage."""

    name = "aggnet"
    paper = "Albarqouni et al. 2016"
    summary = "EM whose posterior follows the network at every step"
