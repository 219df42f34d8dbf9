"""Votes weighted by skills that follow the vote."""

from __future__ import annotations

import numpy as np
import pytest
from crowdkit.aggregation import ZeroBasedSkill as CrowdKit

from annotruth import ZeroBasedSkill
from annotruth.errors import InputError

from .crowd_kit import crowd, weighted_vote


@pytest.mark.parametrize("max_iter", [1, 45])
def test_weights_and_posterior_are_crowd_kits(max_iter: int) -> None:
    annotations, frame, _ = crowd(150, [0.9, 0.85, 0.8, 0.7, 0.6, 0.55, 0.3], n_classes=3, keep=0.7)
    fused, peer = ZeroBasedSkill(max_iter=max_iter).fit(annotations), CrowdKit(n_iter=max_iter).fit(frame)
    np.testing.assert_allclose(fused.state_.weight, peer.skills_.sort_index(), atol=1e-12)
    np.testing.assert_allclose(fused.predict_proba(), weighted_vote(frame, peer.skills_), atol=1e-12)


def test_no_step_at_all_is_refused() -> None:
    with pytest.raises(InputError, match="max_iter must be at least 1"):
        ZeroBasedSkill(max_iter=0).fit(crowd(5, [0.9, 0.8])[0])
