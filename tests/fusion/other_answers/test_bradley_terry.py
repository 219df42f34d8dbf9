"""Scores from comparisons, against crowd-kit's, and raters who do not look."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from crowdkit.aggregation import BradleyTerry as CrowdKit
from crowdkit.aggregation import NoisyBradleyTerry as NoisyCrowdKit
from scipy.special import logit, softmax

from annotruth import BradleyTerry, Comparisons, NoisyBradleyTerry
from annotruth.errors import IdentifiabilityWarning, InputError


def _compared(
    n_items: int, n_answers: int, looks: list[float], leans: float = 0.5, seed: int = 0
) -> tuple[pd.DataFrame, np.ndarray]:
    """Crowd-kit's table of raters who look with these chances, and else take the left item; and the items' scores."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 1.5, n_items)
    left = rng.integers(0, n_items, n_answers)
    right = (left + rng.integers(1, n_items, n_answers)) % n_items
    rater = rng.integers(0, len(looks), n_answers)
    chance = 1 / (1 + np.exp(scores[right] - scores[left]))
    chance = np.where(rng.random(n_answers) < np.array(looks)[rater], chance, leans)
    better = np.where(rng.random(n_answers) < chance, left, right)
    names = np.array([f"item {number:03}" for number in range(n_items)])
    frame = pd.DataFrame({"worker": rater, "left": names[left], "right": names[right], "label": names[better]})
    return frame, scores


def test_scores_are_those_of_crowd_kit() -> None:
    frame, _ = _compared(15, 1000, [1.0, 1.0])
    fused = BradleyTerry(prior=0).fit(Comparisons.from_table(frame))
    theirs = CrowdKit(n_iter=3000, tol=0).fit(frame).scores_
    ours = pd.Series(softmax(fused.scores_), index=fused.items_)[theirs.index]
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    assert fused.converged_


def test_no_scores_of_crowd_kit_explain_the_answers_of_noisy_raters_better() -> None:
    frame, _ = _compared(6, 120, [1.0, 0.8, 0.2], leans=0.7)
    fused = NoisyBradleyTerry(prior=0, rater_prior=0).fit(Comparisons.from_table(frame))
    peer = NoisyCrowdKit(n_iter=30, regularization_ratio=0).fit(frame)
    items, left = pd.factorize(frame[["left", "right", "label"]].to_numpy().ravel())[::-1]
    data = left.reshape(-1, 3) + 1

    def loss(scores: pd.Series, leans: np.ndarray, looks: np.ndarray) -> float:
        at = np.concatenate([[0.0], scores[list(items)], leans, looks])
        return float(NoisyCrowdKit._compute_log_likelihood(at, data, frame["worker"].to_numpy(), 6, 3, 0.0))

    bounds = 1e-9, 1 - 1e-9
    ours = loss(
        pd.Series(fused.scores_, fused.items_),
        *(logit(np.clip(each[np.argsort(fused.raters_)], *bounds)) for each in (fused.left_bias_, fused.skill_)),
    )
    order = np.sort(frame["worker"].unique())
    theirs = loss(
        pd.Series(logit(peer.scores_), peer.scores_.index), logit(peer.biases_[order]), logit(peer.skills_[order])
    )
    assert ours == pytest.approx(-fused.log_likelihood_, rel=1e-6), "the likelihood is crowd-kit's own"
    assert ours <= theirs


def test_raters_who_do_not_look_are_told_and_do_less_harm() -> None:
    frame, truth = _compared(30, 3000, [0.95, 0.95, 0.95, 0.05, 0.0, 0.0], leans=0.9, seed=1)
    answers = Comparisons.from_table(frame)
    noisy, plain = NoisyBradleyTerry().fit(answers), BradleyTerry().fit(answers)
    looks = dict(zip(noisy.raters_, noisy.skill_))
    assert min(looks["0"], looks["1"], looks["2"]) > 0.75
    assert max(looks["3"], looks["4"], looks["5"]) < 0.3
    assert noisy.left_bias_[noisy.raters_.index("5")] == pytest.approx(0.9, abs=0.05)
    order = np.argsort(answers.items)
    errors = [np.abs(model.scores_[order] - (truth - truth.mean())).mean() for model in (noisy, plain)]
    assert errors[0] < 0.6 * errors[1]


def test_an_item_that_always_won_has_a_finite_score_with_the_prior_and_is_refused_without() -> None:
    frame = pd.DataFrame({"left": ["a", "a"], "right": ["b", "c"], "worker": 0, "label": "a"})
    assert np.isfinite(BradleyTerry().fit(Comparisons.from_table(frame)).scores_).all()
    with pytest.raises(InputError, match=r"has not. Give prior=0.1"):
        BradleyTerry(prior=0).fit(Comparisons.from_table(frame))


def test_items_that_nobody_compared_with_the_others_are_warned_of() -> None:
    left, right, rater = np.array([[0, 1, 3], [1, 2, 4], [0, 0, 0]])
    pairs = Comparisons(tuple("abcde"), ("ann",), left, right, rater, np.ones(3, dtype=bool))
    with pytest.warns(IdentifiabilityWarning, match=r"into 2 groups between which nobody compared any; .*: d, e"):
        BradleyTerry().fit(pairs)


@pytest.mark.parametrize("model", [BradleyTerry(prior=-1), NoisyBradleyTerry(rater_prior=-1), BradleyTerry(max_iter=0)])
def test_settings_that_are_no_counts_are_refused(model: BradleyTerry) -> None:
    with pytest.raises(InputError, match="at least"):
        model.fit(Comparisons.from_table(_compared(3, 20, [1.0])[0]))
