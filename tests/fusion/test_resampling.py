"""Intervals from items drawn anew hold what they promise; those that take pixels as independent do not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t

import annotruth as at
from annotruth.fusion import raters
from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.checks import noisy_masks
from annotruth.fusion.resampling import Drawing, _student_quantile, widened
from annotruth.fusion.state import FusionState

MEANS = np.array([0.95, 0.9, 0.85, 0.8])


def varied_masks(seed: int, n_items: int = 25) -> at.Annotations:
    """Masks of raters who have better and worse days."""
    rng = np.random.default_rng(seed)
    truth = (rng.random((n_items, 1, 12, 12)) < 0.4).astype(np.uint8)
    right = rng.random((n_items, len(MEANS), 12, 12)) < day_skills(rng, n_items)[:, :, None, None]
    return at.Annotations.from_masks(np.where(right, truth, 1 - truth))


def day_skills(rng: np.random.Generator, n_items: int) -> np.ndarray:
    return 1 / (1 + np.exp(-(np.log(MEANS / (1 - MEANS)) + rng.normal(0, 0.7, (n_items, len(MEANS))))))


def test_bounds_cover_the_skills_of_raters_who_vary_from_image_to_image() -> None:
    true = day_skills(np.random.default_rng(1), 100_000).mean(axis=0)
    inside, apart = [], []
    for seed in range(40):
        fused = at.STAPLE().fit(varied_masks(seed))
        for found, (low, high) in (
            (inside, fused.skill_interval()),
            (apart, raters.skill_interval(fused.expected_counts_)),
        ):
            found.append((low <= true) & (true <= high))
    assert 0.88 < np.mean(inside) <= 0.99  # 95 % are promised; of 160, a standard error is 2 %
    assert np.mean(apart) < 0.6


@pytest.mark.parametrize("n_items", [150, 2000])  # drawn with replacement; left out group by group
def test_bounds_cover_the_skills_of_raters_of_a_label_table(n_items: int) -> None:
    skills, inside = np.array([0.9, 0.85, 0.8, 0.75, 0.7]), []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, n_items)[:, None]
        answers = np.where(rng.random((n_items, 5)) < skills, truth, 1 - truth)
        low, high = at.DawidSkene().fit(at.Annotations.from_answers(answers)).skill_interval()
        inside.append((low <= skills) & (skills <= high))
    assert np.mean(inside) > 0.87


@pytest.mark.parametrize(
    "estimator",
    [
        at.DawidSkene(), at.DawidSkene(one_coin=True, prior="votes"), at.STAPLE(), at.STAPLE(exclude_consensus=True),
        at.DawidSkene(confusion_prior=np.eye(3)), at.STAPLE(prior=np.array([0.5, 0.3, 0.2])),
    ],
    ids=str,
)  # fmt: skip
def test_many_estimates_together_are_the_single_ones(estimator: FusionEstimator) -> None:
    masks, truth = noisy_masks((20, 20))
    gold = np.where(np.arange(20) < 3, truth, 255).astype(np.uint8)
    fused = estimator.fit(at.Annotations.from_masks(masks, classes=3), gold=gold)
    votes = fused._store.votes()
    weights = list(votes.weight * np.random.default_rng(0).uniform(0.8, 1.2, (4, votes.n_rows)))
    together = fused.estimate_drawn(votes, weights, fused.state_)
    for weight, (counts, confusion) in zip(weights, together):
        alone: FusionState = fused.set_params(tol=1e-10).estimate(votes.reweighted(weight), fused.state_)
        np.testing.assert_allclose(confusion, alone.confusion, atol=5e-3)
        np.testing.assert_allclose(counts.sum(axis=(1, 2)), alone.counts.sum(axis=(1, 2)))


@pytest.mark.parametrize(
    "estimator", [at.STAPLE(scope="case"), at.STAPLE(smoothing=0.3), at.GLAD(), at.Wawa()], ids=str
)
def test_every_estimator_has_wider_bounds_than_independent_pixels_give(estimator: FusionEstimator) -> None:
    fused = estimator.fit(varied_masks(0, n_items=8))
    low, high = fused.skill_interval()
    apart = raters.skill_interval(fused.expected_counts_, one_coin=fused.one_coin)
    assert ((low <= fused.skill_) & (fused.skill_ <= high)).all()
    assert (high - low).mean() > 1.3 * (apart[1] - apart[0]).mean()


def test_two_items_and_errors_that_nobody_made_leave_the_other_bounds() -> None:
    masks, _ = noisy_masks()
    fused = at.STAPLE().fit(at.Annotations.from_masks(masks, classes=3))
    for found, expected in zip(fused.skill_interval(), raters.skill_interval(fused.expected_counts_)):
        np.testing.assert_array_equal(found, expected)
    low, high = widened(np.array([1.0]), np.ones((200, 1)), 2.0, lambda: (np.array([0.9]), np.array([0.99])))
    assert (low, high) == (0.9, 0.99)


def test_bounds_hold_the_skill_of_a_rater_who_never_erred() -> None:
    fused = at.MajorityVote().fit(at.Annotations.from_answers(np.array([[0, 0], [1, 1], [0, 0], [1, 1]])))
    for estimate, bounds in ((fused.skill_, fused.skill_interval()), (fused.confusion_, fused.confusion_interval())):
        assert (bounds[0] <= estimate).all()
        assert (estimate <= bounds[1]).all()
    assert (fused.skill_interval()[0] < 0.8).all()


def test_how_items_are_drawn_depends_on_how_much_there_is() -> None:
    assert Drawing.of(2, 10) is None
    assert Drawing.of(100, 1000) == Drawing(100, 200, by_group=False)
    assert Drawing.of(10_000, 50_000) == Drawing(10_000, 20, by_group=True)
    assert Drawing.of(10, 50_000) == Drawing(10, 200, by_group=False)
    assert Drawing.of(10**6, 10**6) is None
    left_out = np.stack(list(Drawing(100, 20, by_group=True).times()))
    np.testing.assert_array_equal((left_out == 0).sum(axis=0), 1)
    np.testing.assert_array_equal(left_out.sum(axis=1), 95)


@pytest.mark.parametrize("freedom", [2, 5, 19, 200])
def test_quantiles_are_students(freedom: int) -> None:
    assert _student_quantile(0.95, freedom) == pytest.approx(t.ppf(0.975, freedom), rel=0.06 if freedom == 2 else 0.003)


def test_more_cases_are_drawn_too_after_partial_fit() -> None:
    annotations = varied_masks(0)
    fused = at.STAPLE().fit(annotations.take(range(10)))
    before = np.subtract(*fused.skill_interval()[::-1])
    after = np.subtract(*fused.partial_fit(annotations.take(range(10, 25))).skill_interval()[::-1])
    assert (after < before).mean() > 0.5
