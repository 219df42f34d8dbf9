"""True values, biases and noises of raters' numbers, against a likelihood that is written out in full."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from annotruth import ContinuousSTAPLE, Marks
from annotruth.errors import IdentifiabilityWarning, InputError

BIAS, NOISE = np.array([2.0, -1.0, 0.0, -1.0]), np.array([0.5, 1.0, 2.0, 3.0])


def _marks(n_items: int, keep: float = 1.0, seed: int = 0, n_raters: int = 4) -> tuple[Marks, np.ndarray, np.ndarray]:
    """Marks, the table of them (items, raters), NaN = missing, and the truth (items,)."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(20, 3, n_items)
    table = truth[:, None] + BIAS[:n_raters] + rng.normal(0, 1, (n_items, n_raters)) * NOISE[:n_raters]
    given = rng.random(table.shape) < keep
    given[:, :2] = True
    item, rater = np.nonzero(given)
    names = tuple(map(str, range(n_items))), tuple("abcd"[:n_raters])
    return Marks(*names, item, rater, table[item, rater]), np.where(given, table, np.nan), truth


@pytest.mark.filterwarnings("ignore:.*did not settle")
def test_no_other_biases_and_noises_make_the_marks_more_probable() -> None:
    answers, table, _ = _marks(40, keep=0.7, n_raters=3)
    fused = ContinuousSTAPLE(rater_prior=0, max_iter=20_000, tol=0).fit(answers)

    def loss(at: np.ndarray) -> float:
        mean, bias, noise, spread = at[0], np.append(0, at[1:3]), np.exp(at[3:6]), np.exp(at[6])
        total = 0.0
        for row in table:
            known = np.isfinite(row)
            cover = np.diag(noise[known] ** 2) + spread**2
            total -= multivariate_normal.logpdf(row[known], mean + bias[known], cover)
        return total

    logs = np.log([*fused.noise_, fused.spread_])
    ours = np.concatenate([[fused.mean_ + fused.bias_[0]], fused.bias_[1:] - fused.bias_[0], logs])
    assert loss(ours) == pytest.approx(-fused.log_likelihood_[-1], rel=1e-9)
    for step in 0.01 * np.eye(7):
        ahead, back = loss(ours + step) - loss(ours), loss(ours - step) - loss(ours)
        assert min(ahead, back) > 0
        assert ahead == pytest.approx(back, rel=0.1), "it rises alike on both sides"


@pytest.mark.filterwarnings("ignore:.*did not settle")
def test_with_every_mark_given_biases_are_differences_of_the_raters_means() -> None:
    answers, table, _ = _marks(60)
    fused = ContinuousSTAPLE(rater_prior=0, max_iter=5000, tol=0).fit(answers)
    np.testing.assert_allclose(fused.mean_ + fused.bias_, table.mean(axis=0), atol=1e-6)
    assert fused.bias_ @ fused.noise_**-2 == pytest.approx(0, abs=1e-9)
    weight = fused.noise_**-2
    expected = (fused.mean_ * fused.spread_**-2 + (table - fused.bias_) @ weight) / (fused.spread_**-2 + weight.sum())
    np.testing.assert_allclose(fused.predict(), expected, atol=1e-6)


def test_the_truth_is_found_better_than_by_the_mean_and_its_intervals_hold() -> None:
    answers, table, truth = _marks(400, keep=0.6, seed=3)
    fused = ContinuousSTAPLE().fit(answers)
    shift = truth.mean() - fused.predict().mean()  # nobody knows the raters' common bias
    error = np.abs(fused.predict() + shift - truth).mean()
    plain = np.nanmean(table, axis=1)
    assert error < 0.6 * np.abs(plain - plain.mean() + truth.mean() - truth).mean()
    np.testing.assert_allclose(fused.noise_, NOISE, rtol=0.4)
    np.testing.assert_allclose(fused.bias_ - fused.bias_[0], BIAS - BIAS[0], atol=0.4)
    low, high = fused.predict_interval()
    assert 0.9 < ((low + shift <= truth) & (truth <= high + shift)).mean() < 0.99
    assert (np.diff(fused.log_likelihood_) >= -1e-9).all()


def test_one_mark_makes_nobody_perfect() -> None:
    answers, _, _ = _marks(50)
    arrays = np.append(answers.item, 0), np.append(answers.rater, 4), np.append(answers.value, 20.0)
    fused = ContinuousSTAPLE().fit(Marks(answers.items, (*answers.raters, "new"), *arrays))
    assert fused.noise_[4] > fused.noise_[0]


def test_a_rater_may_measure_an_item_again() -> None:
    fused = ContinuousSTAPLE().fit(
        Marks(("x", "y"), ("a", "b"), np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 0, 1]), np.arange(5.0))
    )
    assert fused.marked_.tolist() == [3, 2]


def test_marks_that_nobody_else_gave_are_refused_or_warned_of() -> None:
    with pytest.raises(InputError, match="No item was marked by two raters"):
        ContinuousSTAPLE().fit(Marks(("x", "y"), ("a", "b"), np.array([0, 1]), np.array([0, 1]), np.ones(2)))
    answers, _, _ = _marks(20, n_raters=2)
    arrays = np.append(answers.item, 20), np.append(answers.rater, 2), np.append(answers.value, 20.0)
    with pytest.warns(IdentifiabilityWarning, match=r"1 raters \(alone\) marked no item in common"):
        ContinuousSTAPLE().fit(Marks((*answers.items, "z"), (*answers.raters, "alone"), *arrays))


def _of_two(values: list[float]) -> Marks:
    """Marks of two items by two raters."""
    return Marks(("a", "b"), ("ann", "bob"), np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array(values))


@pytest.mark.parametrize("value", [0.0, 3.0, -2e8])
def test_raters_who_always_agree_have_no_noise(value: float) -> None:
    fused = ContinuousSTAPLE().fit(_of_two([value] * 4))
    np.testing.assert_allclose(fused.predict(), value, rtol=1e-5)
    np.testing.assert_allclose(fused.noise_, 0, atol=1e-5 * max(abs(value), 1.0))
    assert fused.converged_


def test_marks_of_one_item_and_marks_too_large_to_square_are_refused() -> None:
    one = np.ones(2, dtype=int)
    with pytest.raises(InputError, match=r"All marks are of one item, b: .* Add items, or take the mean"):
        ContinuousSTAPLE().fit(Marks(("a", "b"), ("ann", "bob"), one, np.arange(2), np.array([1.0, 2.0])))
    with pytest.raises(InputError, match=r"Marks up to 1e\+300 are too large"):
        ContinuousSTAPLE().fit(_of_two([1e300, -1e300, 3, 4]))


def test_a_prior_that_is_no_count_is_refused() -> None:
    with pytest.raises(InputError, match="rater_prior must be a count"):
        ContinuousSTAPLE(rater_prior=-1).fit(_marks(5)[0])
