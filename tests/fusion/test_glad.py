"""Abilities of raters and difficulties of items."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from crowdkit.aggregation import GLAD as CrowdKit

from annotruth import GLAD, Annotations, DawidSkene
from annotruth.errors import InputError

from .crowd_kit import as_array, crowd


@pytest.mark.parametrize("n_classes", [2, 4])
def test_posterior_is_crowd_kits_and_its_gradient_vanishes(n_classes: int) -> None:
    annotations, frame, _ = crowd(40, [0.9, 0.8, 0.7, 0.6, 0.3], n_classes, keep=0.8)
    fused = GLAD(max_iter=3000, tol=1e-13).fit(annotations)
    peer = CrowdKit(silent=True)
    peer._init(frame)  # at our abilities and easiness, which its own search would take minutes to find
    peer.alphas_, peer.betas_ = pd.Series(fused.state_.ability), pd.Series(fused.state_.items["log_easiness"])
    data = peer._e_step(peer._join_all(frame, peer.alphas_, peer.betas_, peer.priors_))
    np.testing.assert_allclose(fused.predict_proba(), as_array(peer.probas_), atol=1e-4)
    for gradient in peer._gradient_Q(data):
        np.testing.assert_allclose(gradient, 0, atol=1e-4)


def test_items_on_which_good_raters_differ_are_hard() -> None:
    rng = np.random.default_rng(0)
    truth, hard = rng.integers(0, 2, 300), np.arange(300) < 150
    chance = np.where(hard, 0.6, 0.97)[:, None]
    answers = np.where(rng.random((300, 8)) < chance, truth[:, None], 1 - truth[:, None])
    easiness = GLAD().fit(Annotations.from_answers(answers)).state_.items["log_easiness"]
    assert easiness[hard].mean() < easiness[~hard].mean() - 0.3


def test_raters_with_easy_items_are_taken_for_better_ones_less_than_without_difficulty() -> None:
    """Two groups of the same ability, one of which was mostly given what is hard."""
    rng = np.random.default_rng(1)
    truth, easiness = rng.integers(0, 2, 600), np.repeat([3.0, 0.5], 300)
    given = rng.random((600, 12)) < np.where((easiness > 1)[:, None] == (np.arange(12) < 6), 0.9, 0.4)
    right = rng.random((600, 12)) < 1 / (1 + np.exp(-1.2 * easiness[:, None]))
    answers = np.where(given, np.where(right, truth[:, None], 1 - truth[:, None]), -1)
    annotations = Annotations.from_answers(answers)
    ability, skill = GLAD().fit(annotations).state_.ability, DawidSkene(one_coin=True).fit(annotations).skill_
    odds = np.log(skill / (1 - skill))
    assert ability[6:].mean() / ability[:6].mean() > odds[6:].mean() / odds[:6].mean() + 0.15


def test_one_answer_per_item_is_refused_with_advice() -> None:
    with pytest.raises(InputError, match=r"no item has two answers. Take dawid-skene"):
        GLAD().fit(Annotations.from_answers(np.array([[0, -1], [-1, 1], [1, -1]])))
