"""A budget is filled with what is worth most."""

from __future__ import annotations

import numpy as np
import pytest

import annotruth as at
from annotruth.choosing.queue import scoring
from annotruth.choosing.queue.fusing import SparseDawidSkene
from annotruth.choosing.queue.greedy import fill_budget
from annotruth.choosing.queue.information import branch, branch_information
from annotruth.choosing.queue.posteriors import ItemPosteriors, table_posteriors
from annotruth.choosing.queue.scoring import InformationScores


def crowd(n_items: int = 30, n_raters: int = 5, seed: int = 0) -> ItemPosteriors:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n_items)
    skill = np.linspace(0.55, 0.95, n_raters)
    answers = np.where(rng.random((n_items, n_raters)) < skill, truth[:, None], 1 - truth[:, None])
    answers[rng.random(answers.shape) < 0.6] = -1
    answers[0, :2] = 0, 1
    return table_posteriors(SparseDawidSkene().fit(at.Annotations.from_answers(answers)))


class Trusting(InformationScores):
    """Information alone: raters are taken to be as they are estimated, however much they are asked."""

    def free(self, available: np.ndarray) -> None:
        self._ordered[:] = 0
        super().free(available)


def step_by_step(known: ItemPosteriors, cost: np.ndarray, budget: float) -> list[tuple[int, int]]:
    """The same by trying all pairs at each step."""
    outcomes = [(np.ones((1, 1)), known.posterior[item][None, None]) for item in range(len(known.items))]
    taken = known.labelled(np.arange(len(known.items)))
    orders = []
    while budget >= cost.min():
        worth = np.stack([branch_information(*each, known.confusion)[0] for each in outcomes]) / cost
        worth[taken | (cost > budget)] = -1
        item, rater = np.unravel_index(worth.argmax(), worth.shape)
        orders.append((int(item), int(rater)))
        taken[item, rater] = True
        outcomes[item] = branch(*outcomes[item], known.confusion[rater])[:2]
        budget -= cost[rater]
    return orders


@pytest.mark.filterwarnings("ignore::annotruth.fusion.UnlabelledWarning")
@pytest.mark.parametrize("cost", [np.ones(5), np.array([1.0, 1.5, 2.0, 4.0, 3.0])])
def test_orders_are_those_of_trying_all_pairs_one_after_the_other(
    cost: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "HOPE", 0.0)
    known = crowd()
    orders = fill_budget(Trusting(known, cost), cost, np.full(5, np.inf), 24)
    expected = step_by_step(known, cost, 24)
    assert sum(order.cost for order in orders) <= 24
    assert len({(order.item, order.rater) for order in orders} & set(expected)) >= 0.8 * len(expected)
    outcomes = {item: (np.ones((1, 1)), known.posterior[item][None, None]) for item in range(30)}
    total = 0.0
    for item, rater in expected:
        total += branch_information(*outcomes[item], known.confusion[rater : rater + 1])[0, 0]
        outcomes[item] = branch(*outcomes[item], known.confusion[rater])[:2]
    assert sum(order.gain for order in orders) >= 0.97 * total


@pytest.mark.filterwarnings("ignore::annotruth.fusion.UnlabelledWarning")
def test_capacities_earlier_labels_and_the_budget_are_kept() -> None:
    known, cost = crowd(), np.array([1.0, 1.0, 1.0, 1.0, 2.0])
    capacity = np.array([np.inf, 3, 0, 2, 4])
    orders = fill_budget(InformationScores(known, cost), cost, capacity, 20)
    asked = np.bincount([order.rater for order in orders], minlength=5)
    assert (asked <= capacity).all()
    assert asked[4] > 0
    assert sum(order.cost for order in orders) <= 20
    pairs = [(order.item, order.rater) for order in orders]
    assert len(set(pairs)) == len(pairs)
    labelled = known.labelled(np.arange(30))
    assert not any(labelled[pair] for pair in pairs)
    worth = [order.worth for order in orders]
    assert worth == sorted(worth, reverse=True)


@pytest.mark.filterwarnings("ignore::annotruth.fusion.UnlabelledWarning")
def test_the_same_doubt_is_not_bought_time_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "HOPE", 0.0)
    known, cost = crowd(), np.ones(5)
    orders = fill_budget(InformationScores(known, cost), cost, np.full(5, np.inf), 25)
    assert np.bincount([order.item for order in orders]).max() <= 3
    for item in {order.item for order in orders}:
        gains = [order.gain for order in orders if order.item == item]
        assert gains == sorted(gains, reverse=True)


@pytest.mark.filterwarnings("ignore::annotruth.fusion.UnlabelledWarning")
def test_a_budget_beyond_all_that_can_be_asked_ends() -> None:
    known, cost = crowd(8), np.ones(5)
    orders = fill_budget(InformationScores(known, cost), cost, np.full(5, np.inf), 1000)
    assert 0 < len(orders) <= 8 * 5 - len(known.rater_of)
