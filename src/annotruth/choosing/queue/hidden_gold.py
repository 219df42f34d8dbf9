"""Items whose truth is known, mixed among the labels to ask for: raters are judged by them without knowing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from annotruth.choosing.queue.greedy import Order
from annotruth.choosing.queue.posteriors import ItemPosteriors
from annotruth.choosing.queue.prices import Prices
from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.validation import MISSING_LABEL, MISSING_PIXEL

SURE = 0.99
"""Where no truth is known: how probable the class of an item must be that serves as gold."""
MIN_VOTES = 3
"""… and how many raters must have labelled it."""
MASK = "known mask"


def gold_share(gold: float | None) -> float:
    """Refuse a share of gold that cannot be; 0 = none.

    Examples
    --------
    >>> gold_share(0.05), gold_share(None)
    (0.05, 0.0)
    """
    if gold is None:
        return 0.0
    if not (isinstance(gold, (int, float, np.floating)) and 0 < gold <= 0.5):
        raise InputError(f"The share of hidden gold is more than 0 and at most a half (0.05, 5%), not {gold!r}.")
    return float(gold)


def gold_items(known: ItemPosteriors, annotations: Annotations) -> dict[int, str]:
    """Items that can serve as gold, by position: their class, or for masks that there is a known mask.

    Of a label table, those of known truth; where there are none, those that three raters or more labelled and whose
    class is surer than 99 %. Of cases with masks, those of known truth.
    """
    if known.votes is None:
        found = _known_cases(annotations)
        if not found:
            raise InputError("There is no case whose true mask is known, to serve as hidden gold. Settle some first.")
        return found
    truth = annotations.truth if annotations.has_truth else np.full(len(known.items), MISSING_LABEL)
    places = np.flatnonzero(truth != MISSING_LABEL)
    if len(places):
        return {int(item): known.classes[truth[item]] for item in places}
    sure = (known.posterior.max(axis=1) >= SURE) & (known.n_labels >= MIN_VOTES)
    if not sure.any():
        raise InputError(
            f"There is no item to serve as hidden gold: of none is the truth known, and none has {MIN_VOTES} labels "
            f"that make it surer than {SURE:.0%}. Settle some items first."
        )
    return {int(item): known.classes[int(known.posterior[item].argmax())] for item in np.flatnonzero(sure)}


def _known_cases(annotations: Annotations) -> dict[int, str]:
    if not annotations.has_truth:
        return {}
    return {
        index: MASK for index in range(len(annotations)) if (annotations.item_truth(index) != MISSING_PIXEL).any()
    }  # fmt: skip


def mix_gold(
    known: ItemPosteriors,
    orders: Sequence[Order],
    gold: dict[int, str],
    share: float,
    prices: Prices,
    capacity: np.ndarray,
    budget: float,
    rng: np.random.Generator,
) -> tuple[list[Order], list[int]]:
    """Mix labels of gold items among the orders, for each rater as many as their orders ask for.

    Nobody gets an item that they have labelled, nor the same one twice. Each of a rater's gold items is of the class
    that they had least of, and of those the one that fewest others get, so that word of it does not go round.

    Parameters
    ----------
    gold : as :func:`gold_items` gives it
    share : of all labels that is to be gold
    capacity : (raters,) labels that each can give, those ordered too
    budget : for the gold items alone

    Returns
    -------
    The orders with gold in places at random, and the places of gold.
    """
    ordered = np.bincount([order.rater for order in orders], minlength=len(known.raters))
    wanted = _shares(ordered, math.ceil(len(orders) * share / (1 - share) - 1e-9))
    wanted = np.minimum(wanted, np.maximum(capacity - ordered, 0)).astype(int)
    items = rng.permutation(np.array(sorted(gold)))
    classes = {name: [int(item) for item in items if gold[int(item)] == name] for name in dict.fromkeys(gold.values())}
    used = dict.fromkeys(gold, 0)
    made: list[Order] = []
    for rater in np.flatnonzero(wanted):
        done = known.labelled(items)[:, rater]
        refused = {int(item) for item in items[done]} | {order.item for order in orders if order.rater == rater}
        had = dict.fromkeys(classes, 0)
        for _ in range(wanted[rater]):
            free = {name: [i for i in places if i not in refused] for name, places in classes.items()}
            names = [name for name, places in free.items() if places]
            if not names:
                break
            name = min(names, key=lambda one: (had[one], rng.random()))
            item = min(free[name], key=lambda one: used[one])
            price = float(prices.table[prices.kind[item], rater])
            if price > budget + 1e-9:
                break
            budget -= price
            had[name] += 1
            used[item] += 1
            refused.add(item)
            made.append(Order(item, int(rater), 0.0, price, 0.0, 0.0, 0.0))
    total = len(orders) + len(made)
    places = np.sort(rng.choice(total, len(made), replace=False)) if made else np.zeros(0, dtype=int)
    mixed, rest, extra = [], iter(orders), iter([made[one] for one in rng.permutation(len(made))])
    at = set(places.tolist())
    for place in range(total):
        mixed.append(next(extra) if place in at else next(rest))
    return mixed, sorted(at)


def _shares(ordered: np.ndarray, count: int) -> np.ndarray:
    """How many of ``count`` go to each, in proportion to what is ordered of them, by largest remainder."""
    exact = count * ordered / max(ordered.sum(), 1)
    made = np.floor(exact).astype(int)
    made[np.argsort(made - exact, kind="stable")[: count - made.sum()]] += 1
    return made
