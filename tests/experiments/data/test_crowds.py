"""Random crowds: whom they hold, and that the seed decides."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth.experiments.data.crowds import FAITHFUL, crowd_task, random_crowd


@pytest.mark.parametrize("faithful", [True, False])
def test_a_faithful_rater_is_there_or_not(faithful):
    for seed in range(30):
        raters = random_crowd(np.random.default_rng(seed), faithful)
        assert 3 <= len(raters) <= 7
        assert len({rater.name for rater in raters}) == len(raters)
        assert any(rater.name.rsplit(" ", 1)[0] in FAITHFUL for rater in raters) == faithful


def test_the_seed_decides_on_crowd_pictures_and_labels():
    one, same, other = (crowd_task(faithful=True, seed=seed, train=70, test=5) for seed in (1, 1, 2))
    assert one.about == same.about != other.about
    np.testing.assert_array_equal(one.train.item_masks(0), same.train.item_masks(0))
    assert len(one.train) == 70
    assert len(one.held_out) == 5
    assert one.held_out.has_truth


def test_all_kinds_of_pictures_and_numbers_of_labels_come_up():
    told = [crowd_task(faithful=False, seed=seed, train=70, test=2).about for seed in range(16)]
    for word in ("digits", "shapes", "hippocampus", " 1 label each", " 2 labels each"):
        assert any(word in about for about in told), word
