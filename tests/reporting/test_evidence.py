from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from annotruth.reporting.evidence import disagreement, gather


def brute_force(masks: np.ndarray) -> float:
    """Go pixel by pixel and pair by pair."""
    chances = []
    for votes in masks.reshape(len(masks), -1).T:
        votes = votes[votes != 255]
        if len(votes) > 1 and (votes > 0).any():
            chances.append(np.mean([a != b for a, b in combinations(votes, 2)]))
    return float(np.mean(chances)) if chances else 0.0


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 5), st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_disagreement_is_the_chance_that_two_raters_differ(n_raters: int, n_classes: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    masks = generator.integers(0, n_classes, (n_raters, 4, 5)).astype(np.uint8)
    masks[generator.random(masks.shape) < 0.2] = 255
    masks[:2, 0, 0] = 0  # at least one pixel with two raters
    assert disagreement(masks, masks[0], n_classes) == pytest.approx(brute_force(masks))


def test_a_lone_rater_is_compared_with_the_estimate() -> None:
    estimate = np.array([[0, 1, 1, 0]], dtype=np.uint8)
    alone = np.stack([np.array([[0, 1, 0, 0]]), np.full((1, 4), 255)]).astype(np.uint8)
    assert disagreement(alone, estimate, 2) == 0.5


def test_nobody_marking_anything_is_agreement() -> None:
    empty = np.zeros((3, 2, 2), dtype=np.uint8)
    assert disagreement(empty, empty[0], 2) == 0


def test_gathered_numbers(make_study) -> None:
    study = make_study(n_items=4)
    masks = study.ann._masks
    masks[0, 1] = 255  # a mask not given
    masks[1, 2, :4] = 255  # part of a mask not given
    evidence = gather(study.model, study.ann)
    assert evidence.missing_masks == pytest.approx(1 / 12)
    assert evidence.missing_pixels == pytest.approx((4 * 20) / (11 * 16 * 20))
    assert evidence.dice == 1
    assert np.isnan(evidence.agreement[0, 1])
    assert evidence.agreement[2, 1] == pytest.approx(f1_score(study.truth[2].ravel(), masks[2, 1].ravel()))
    foreground = study.truth.mean()
    assert evidence.shares == pytest.approx([0.9 - 0.8 * foreground, 0.1 + 0.8 * foreground], abs=1e-6)
    worst = evidence.most_disputed(4)
    assert [case.disagreement for case in worst] == sorted((case.disagreement for case in worst), reverse=True)
