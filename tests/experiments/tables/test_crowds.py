"""What the grid of crowds says, from figures made by hand."""

from __future__ import annotations

import pytest

from annotruth.experiments.data.digits import digits_task
from annotruth.experiments.tables.crowds import Choosing, near_clean, not_behind, regret, warns_of_failure


def table(**each):
    """Four crowds in one setting."""
    rows = [
        {
            "setting": "all", "method": name, "seeds": [1, 2, 3, 4], "dice": {"each": scores},
            "warned_seeds": [3, 4] if name == "ours" else [],
        }
        for name, scores in each.items()
    ]  # fmt: skip
    return {"rows": rows}


SCORES = {
    "clean": [0.90, 0.90, 0.90, 0.90],
    "majority": [0.80, 0.85, 0.70, 0.88],
    "staple": [0.85, 0.80, 0.72, 0.60],
    "ours": [0.895, 0.885, 0.70, 0.87],
}


def test_how_far_below_clean():
    (sentence,) = near_clean("ours", [(0.01, 0.7), (0.04, 0.7)])(table(**SCORES))
    assert "6.3 points below clean on average, 20.0 at worst" in sentence
    assert "within 1 of it in 25% (target: 70%, missed)" in sentence
    assert "within 4 of it in 75% (target: 70%, reached)" in sentence


def test_how_often_behind_the_better_of_two():
    (sentence,) = not_behind("ours", ("majority", "staple"), most=0.015, share=0.3, worst=0.01)(table(**SCORES))
    assert "by more than 1.5 points in 25% of all crowds (target: at most 30%, reached)" in sentence
    assert "by 2.0 at worst (target: at most 1, missed)" in sentence


def test_how_often_a_warning_is_right_and_a_failure_warned_of():
    (sentence,) = warns_of_failure("ours")(table(**SCORES))
    assert "more than 5 points below clean in 1 crowds and warns of 1 of them" in sentence
    assert "1 of its 2 warnings are of other crowds" in sentence
    assert "missed" in sentence


def test_how_far_a_choice_is_below_the_best_it_could_make():
    (sentence,) = regret("ours", ("majority", "staple"), target=0.02)(table(**SCORES))
    assert "ours is -1.25 points below the best of majority, staple on average" in sentence
    assert "(target: at most 2, reached), 2.0 at worst" in sentence


@pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")
def test_a_choice_is_made_by_short_trainings_and_learnt_whole():
    data = digits_task(keep="all", seed=0, train=16, test=2)
    model = Choosing()(method="pixel-cm", among=["majority", "mean"], seed=0, progress=False, max_epochs=1).fit(
        data.train
    )
    assert model.method in ("majority", "mean")
    assert len(model.history_) == 1
    named = Choosing()(method="staple", seed=0, progress=False, max_epochs=1).fit(data.train)
    assert named.method == "staple"
