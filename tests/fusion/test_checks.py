"""Every fusion estimator passes the common checks, with each of its main options."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import annotruth as at
from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.checks import CHECKS, check_cases_in_workers

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
]
MODELS_OF_ANSWERS = [
    at.Wawa(),
    at.ZeroBasedSkill(),
    at.MMSR(),
    at.KOS(foreground="1"),
    at.GLAD(),
    at.MACE(),
    at.IBCC(),
    at.HierarchicalDawidSkene(),
    at.ClusteredDawidSkene(clusters=2),
    at.AveragedModels(),
    at.AveragedModels(members=[("majority", {}, 1), ("glad", {}, 2)]),
]
MODELS_OF_MASKS = [
    at.COLLATE(),
    at.SIMPLE(),
    at.ShapeBasedAverage(),
    at.STEPS(),
    at.NonLocalSTAPLE(),
    at.GraphCutSTAPLE(),
]


@pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning", "ignore:.*did not settle")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_estimator(estimator: FusionEstimator, check: Callable[[FusionEstimator], None]) -> None:
    check(estimator)


@pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning", "ignore:.*did not settle")
@pytest.mark.parametrize("check", [each for each in CHECKS if each is not check_cases_in_workers])
@pytest.mark.parametrize("estimator", MODELS_OF_ANSWERS + MODELS_OF_MASKS, ids=str)
def test_model_of_answers_or_masks(estimator: FusionEstimator, check: Callable[[FusionEstimator], None]) -> None:
    """All but the one with processes, which take seconds to start: that states travel is checked without them."""
    check(estimator)
