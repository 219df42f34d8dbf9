"""Votes weighted by agreement with the majority."""

from __future__ import annotations

import numpy as np
from crowdkit.aggregation import Wawa as CrowdKit

from annotruth import Wawa

from .crowd_kit import crowd, weighted_vote

SKILLS = [0.9, 0.85, 0.8, 0.7, 0.6, 0.55, 0.3]


def test_weights_and_posterior_are_crowd_kits() -> None:
    annotations, frame, _ = crowd(200, SKILLS, n_classes=4, keep=0.7)
    fused, peer = Wawa().fit(annotations), CrowdKit().fit(frame)
    np.testing.assert_allclose(fused.state_.weight, peer.skills_.sort_index(), atol=1e-12)
    np.testing.assert_allclose(fused.predict_proba(), weighted_vote(frame, peer.skills_), atol=1e-12)


def test_gold_labels_count_in_place_of_the_majority() -> None:
    annotations, _, truth = crowd(300, [0.6, 0.2, 0.2, 0.9], seed=1)
    gold = np.where(np.arange(300) < 200, truth, -1)
    weight = Wawa().fit(annotations, gold=gold).state_.weight
    assert weight.argmax() == 3
    assert weight[1] < 0.5
