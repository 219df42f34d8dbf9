"""Rows that depend on features: what is shared, what is one's own, and how they are told apart."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

from annotruth.nn import FeatureAnnotators, FeaturePixelAnnotators, FeatureTable, GlobalAnnotators, PixelAnnotators
from annotruth.nn.annotators.rater_features import RIDGE_PENALTIES


def made(rows: np.ndarray, features: np.ndarray, weights: np.ndarray | None = None) -> FeatureTable:
    """A table with given rows (raters, numbers), all of which is the raters' own."""
    table = FeatureTable(torch.zeros(rows.shape[1]), *features.shape)
    table.know(torch.tensor(features), torch.ones(len(rows)) if weights is None else torch.tensor(weights))
    with torch.no_grad():
        table.own.copy_(torch.tensor(rows))
    return table


def test_a_row_is_a_sum():
    table = FeatureTable(torch.tensor([1.0, 2.0]), raters=2, features=1)
    table.know(torch.tensor([[-1.0], [3.0]]), torch.ones(2))
    with torch.no_grad():
        table.effects.copy_(torch.tensor([[10.0, 20.0]]))
        table.own[1] = torch.tensor([0.5, 0.25])
    torch.testing.assert_close(table(), torch.tensor([[-9.0, -18.0], [31.5, 62.25]]))
    torch.testing.assert_close(table(torch.tensor([1])), torch.tensor([[31.5, 62.25]]))
    torch.testing.assert_close(table.expected(torch.tensor([0.1])), torch.tensor([2.0, 4.0]))


@pytest.mark.parametrize("seed", range(4))
def test_settling_against_scikit_learn(seed):
    """Ridge regression, its penalty chosen by leaving each rater out in turn; one without labels is no witness."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(9, 2))
    noise = (0.05, 0.5, 2.0, 20.0)[seed]
    rows = 0.7 + features @ rng.normal(size=(2, 5)) + noise * rng.normal(size=(9, 5))
    weights = rng.integers(1, 5, 9) / 4
    weights[4], rows[4] = 0, 50  # this rater labelled nothing
    table = made(rows, features, weights)
    table.settle()
    torch.testing.assert_close(table(), torch.tensor(rows).float(), atol=1e-4, rtol=1e-4)

    share = weights / weights.sum()

    def fit(penalty: float, without: int | None = None) -> Ridge:
        kept = np.arange(9) != without
        return Ridge(alpha=penalty / 9).fit(features[kept], rows[kept], sample_weight=share[kept])

    errors = []
    for penalty in RIDGE_PENALTIES:
        missed = [rows[r] - fit(penalty, r).predict(features[[r]])[0] for r in range(9)]
        errors.append(float((share[:, None] * np.square(missed)).sum()))
    best = fit(RIDGE_PENALTIES[int(np.argmin(errors))])
    new = rng.normal(size=(3, 2))
    expected = table.expected(torch.tensor(new).float()).detach().numpy()
    np.testing.assert_allclose(expected, best.predict(new), atol=0.02 * max(1, noise))


def test_features_that_tell_nothing_get_no_effect():
    rng = np.random.default_rng(0)
    table = made(rng.normal(size=(12, 4)), rng.normal(size=(12, 6)))
    table.settle()
    assert table.effects.abs().max() < 0.01
    torch.testing.assert_close(table.common, table().mean(dim=0), atol=0.05, rtol=0)


def test_too_few_raters_leave_things_as_they_are():
    table = made(np.ones((2, 3)), np.array([[1.0], [-1.0]]))
    table.settle()
    torch.testing.assert_close(table.own.detach(), torch.ones(2, 3))


def test_without_effects_they_are_the_plain_models():
    images = torch.randn(2, 1, 9, 10)
    plain = GlobalAnnotators(3, 2)(images).dense()
    torch.testing.assert_close(FeatureAnnotators(3, 2, features=2)(images).dense(), plain)
    torch.manual_seed(0)
    dense = FeaturePixelAnnotators(1, 3, 2, features=2)(images).dense()
    assert dense.shape == PixelAnnotators(1, 3, 2)(images).dense().shape
    torch.testing.assert_close(dense.sum(dim=3), torch.ones_like(dense.sum(dim=3)))
    assert dense[:, :, [0, 1], [0, 1]].min() > 0.97  # everybody starts as faithful


@pytest.mark.parametrize("pixel_wise", [False, True])
def test_expected_is_the_row_of_a_rater_with_nothing_of_their_own(pixel_wise):
    torch.manual_seed(0)
    images = torch.randn(2, 1, 9, 10)
    model = FeaturePixelAnnotators(1, 3, 2, features=2) if pixel_wise else FeatureAnnotators(3, 2, features=2)
    model.eval()
    model.table.know(torch.randn(3, 2), torch.ones(3))
    with torch.no_grad():
        model.table.effects.normal_()
    for rater in range(3):
        expected = model.expected(images, model.table.known[rater]).dense()
        torch.testing.assert_close(expected[:, 0], model(images).dense()[:, rater])


def test_gradients_reach_all_three():
    model = FeaturePixelAnnotators(1, 3, 2, features=2)
    model.table.know(torch.randn(3, 2), torch.ones(3))
    model(torch.randn(2, 1, 9, 10)).dense()[:, :, 0, 1].sum().backward()
    for part in (model.table.common, model.table.effects, model.table.own):
        assert part.grad is not None
        assert (part.grad != 0).any()
