"""Fill a budget with the labels that are worth most, one after the other, each in view of those ordered before.

Labels of different raters are independent given the truth, so that a label ordered never makes another worth more
(information is submodular): what a pair was once worth is a bound of what it is worth now, only the pairs that lead by
their bounds are looked at again. Where all labels cost the same and nobody's capacity binds, the information of a batch
chosen so is at least about 1 - 1/e of the most that as many labels could tell; else, and of masks, which are chosen by
accuracy too, it is a rule of thumb.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from annotruth.choosing.queue.prices import Prices, flat_prices
from annotruth.choosing.queue.scoring import Scores

MIN_WORTH = 1e-9
"""What is worth less tells nothing."""
MIN_SHARE = 1e-3
"""Nor is anything ordered that is worth less than this share of the first order."""
_WAVE = 4  # one in so many of the labels left to order are chosen before pairs are looked at again
_NEARLY = 0.98  # what is worth this share of the next best pair's bound is taken as good as the best


@dataclass(frozen=True)
class Order:
    """A label to be asked for.

    Attributes
    ----------
    item, rater : positions
    gain : expected information in nats, given the orders before
    cost : of the label
    worth : what it was chosen by
    right, spread : by how much the number of items (or pixels) expected right, and its variance, change
    """

    item: int
    rater: int
    gain: float
    cost: float
    worth: float
    right: float
    spread: float


def fill_budget(scores: Scores, cost: Prices | np.ndarray, capacity: np.ndarray, budget: float) -> list[Order]:
    """Orders that cost no more than the budget, the most worthwhile first.

    Parameters
    ----------
    scores : what pairs of items and raters are worth
    cost : of one label, by rater and kind of item; or (raters,) where all items are of one kind
    capacity : (raters,) how many labels each can give; inf = any number
    budget : to be spent at most
    """
    left, orders = capacity.astype(np.float64).copy(), []
    least_cost = cost.least if isinstance(cost, Prices) else cost

    def available() -> np.ndarray:
        return (left >= 1) & (least_cost <= budget - spent + 1e-9)

    spent = 0.0
    scores.free(available())
    bound = scores.first()
    prices = flat_prices(cost, len(bound))
    least = max(MIN_WORTH, MIN_SHARE * bound.max(initial=0.0))
    while (free := available()).any():
        scores.free(free)
        to_come = min((budget - spent) / least_cost[free].min(), left[free].sum(), len(bound))
        wave, floor = _lead(bound, max(1, math.ceil(to_come / _WAVE)), least)
        if not len(wave):
            break
        raters, worth = scores.score(wave)
        best_first = np.argsort(-worth, axis=1, kind="stable")
        for place in np.argsort(-worth.max(axis=1, initial=-np.inf), kind="stable").tolist():
            item = int(wave[place])
            before, bound[item] = bound[item], -np.inf
            for candidate in best_first[place].tolist():
                value, rater = float(worth[place, candidate]), int(raters[place, candidate])
                if value < least:
                    break
                price = float(prices.table[prices.kind[item], rater])
                if left[rater] >= 1 and price <= budget - spent + 1e-9:
                    bound[item] = value
                    if value >= _NEARLY * floor:
                        orders.append(Order(item, rater, *_noted(scores, item, rater, price, value)))
                        left[rater] -= 1
                        spent += price
                    break
                if left[rater] < 1 or least_cost[rater] > budget - spent + 1e-9:
                    bound[item] = before  # all who were looked at may be busy by now: then others are looked at
    return sorted(orders, key=lambda order: -order.worth)


def _lead(bound: np.ndarray, count: int, least: float) -> tuple[np.ndarray, float]:
    """The items that lead by their bounds, so many at most and none below the least; and the bound of the next."""
    count = min(count, len(bound))
    if count < len(bound):
        order = np.argpartition(-bound, count)
        floor, wave = float(bound[order[count]]), order[:count]
    else:
        floor, wave = -np.inf, np.arange(len(bound))
    return wave[bound[wave] >= least], floor


def _noted(
    scores: Scores, item: int, rater: int, cost: float, worth: float
) -> tuple[float, float, float, float, float]:
    gain, right, spread = scores.order(item, rater)
    return gain, float(cost), worth, right, spread
