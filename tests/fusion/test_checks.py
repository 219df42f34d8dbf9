"""Every fusion estimator passes the common checks, with each of its main options."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import annotruth as at
from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.checks import CHECKS

ESTIMATORS = [
    at.MajorityVote(),
    at.MeanLabel(),
    at.DawidSkene(),
    at.DawidSkene(one_coin=True),
    at.DawidSkene(prior="votes", confusion_prior=np.eye(3) + 0.1),
    at.STAPLE(),
    at.STAPLE(prior=np.full(3, 1 / 3)),
    at.STAPLE(smoothing=0.3),
    at.SpatialSTAPLE(window=9),
    at.Wawa(),
    at.ZeroBasedSkill(),
    at.MMSR(),
    at.KOS(foreground="1"),
    at.GLAD(),
    at.MACE(),
]


@pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning", "ignore:.*did not settle")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_estimator(estimator: FusionEstimator, check: Callable[[FusionEstimator], None]) -> None:
    check(estimator)
