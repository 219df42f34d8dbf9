"""What to label next, and by whom: a ranked queue of (item, rater) with the expected gain and a reason in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from annotruth.choosing.queue.advice import find_unsettled
from annotruth.choosing.queue.greedy import fill_budget
from annotruth.choosing.queue.hidden_gold import gold_items, gold_share, mix_gold
from annotruth.choosing.queue.posteriors import ItemPosteriors, table_posteriors
from annotruth.choosing.queue.prices import Costs, PerRater, Prices, item_prices, rater_capacity
from annotruth.choosing.queue.regions import mask_posteriors
from annotruth.choosing.queue.result import Queue, make_queue
from annotruth.choosing.queue.scoring import InformationScores
from annotruth.choosing.queue.strategies import STRATEGIES, make_scores
from annotruth.data.annotations import Annotations
from annotruth.errors import InputError, shorten
from annotruth.fusion.base import FusionEstimator
from annotruth.validation import one_of

__all__ = ["STRATEGIES", "Queue", "next_labels"]

Progress = Callable[[str, int, int], None]


def next_labels(
    fused_or_model: Any,
    annotations: Annotations,
    budget: float,
    *,
    strategy: str = "information",
    costs: Costs = None,
    kinds: Mapping[str, str] | None = None,
    capacity: PerRater = None,
    gold: float | None = None,
    seed: int = 0,
    progress: Progress = lambda work, done, total: None,
) -> Queue:
    """Choose which items should be labelled next, and by whom.

    Parameters
    ----------
    fused_or_model : a fusion estimator that was fitted to the annotations; or a trained model, which knows something of
        items that nobody has labelled yet
    annotations : what was labelled so far
    budget : what may be spent: labels, unless ``costs`` say otherwise
    strategy : "information", or for comparison another of ``annotruth.choosing.queue.STRATEGIES``
    costs : of one label, by rater, or one number for all, 1 by default; or by rater and kind of item:
        ``{"ann": {"CT": 5, "MR": 2}, "bob": 1}``, with "" for all kinds that are not named
    kinds : of items, by name; for costs that differ by kind
    capacity : how many labels a rater can give, by rater, or one number for all; any number by default
    gold : share of the labels, as 0.05, that are of items whose truth is known (of a label table without truth, as good
        as sure), hidden among the others: ``Queue.gold`` tells which
    seed : for strategies with chance in them, and for gold

    Returns
    -------
    The queue: ``table`` has a row for each label to ask for, ``summary`` says in words what it is expected to bring.

    Examples
    --------
    >>> import annotruth as at
    >>> answers = np.array([[0, 0, 0], [1, 1, 1], [0, 1, -1], [1, 1, -1], [0, 0, -1], [0, 0, 0], [1, 1, 1]])
    >>> labels = at.Annotations.from_answers(answers, raters=["ann", "bob", "cy"], classes=["cat", "dog"])
    >>> queue = at.next_labels(at.DawidSkene().fit(labels), labels, budget=1)
    >>> print(queue.table[["item", "rater", "reason"]].to_string(index=False, header=False))
    item_2 cy 1 of 2 says cat, 1 says dog; cy recognises 9... of ... and 9... of ...
    """
    one_of(strategy, tuple(STRATEGIES), "strategy")
    if not (isinstance(budget, (int, float, np.integer, np.floating)) and math.isfinite(budget) and budget > 0):
        raise InputError(f"The budget is what may be spent on labels, a number above 0, not {budget!r}.")
    share = gold_share(gold)
    if isinstance(fused_or_model, FusionEstimator):
        known, labelled = _from_fusion(fused_or_model, annotations, progress)
    else:
        from annotruth.choosing.queue.model import model_posteriors

        known, labelled = model_posteriors(fused_or_model, annotations, progress, apart=strategy == "bald")
    cost, limits = item_prices(costs, known.raters, known.items, kinds), rater_capacity(capacity, known.raters)
    _refuse_unbuyable(known, cost, limits, budget)
    hidden = gold_items(known, annotations) if share else {}
    rng = np.random.default_rng(seed)
    told = InformationScores(known, cost)
    free = limits >= 1
    told.free(free)
    most = told.best()[1]
    to_learn = float(budget) * (1 - share)
    orders = fill_budget(make_scores(strategy, told, rng), cost, np.floor(limits * (1 - share)), to_learn)
    unsettled = find_unsettled(known, most, free, {order.item for order in orders})
    if not share:
        return make_queue(known, orders, unsettled, float(budget), labelled)
    left = float(budget) - sum(order.cost for order in orders)
    mixed, places = mix_gold(known, orders, hidden, share, cost, limits, left, rng)
    truth = {place: hidden[mixed[place].item] for place in places}
    return make_queue(known, mixed, unsettled, float(budget), labelled, truth)


def _from_fusion(
    fused: FusionEstimator, annotations: Annotations, progress: Progress
) -> tuple[ItemPosteriors, np.ndarray]:
    """What a fusion knows of the items, and how much each rater labelled (raters,)."""
    if not hasattr(fused, "state_"):
        raise InputError(f"This {type(fused).__name__} has not learnt anything yet: call fit(annotations) first.")
    for what, before, now in (
        ("items", fused.items_, annotations.items),
        ("raters", fused.raters_, annotations.raters),
    ):
        differ = sorted(set(before) ^ set(now))
        if differ:
            raise InputError(
                f"The {what} are not those that the estimator was fitted to: {shorten(differ)}. Fit it to these "
                "annotations."
            )
    if not fused.labelled_counts_.any():
        raise InputError(
            f"Nobody has labelled anything of the {len(fused.items_)} items ({shorten(fused.items_, 3)}): there is "
            "nothing to choose by. Have some items labelled by several raters first."
        )
    if annotations.kind == "labels":
        return table_posteriors(fused), fused.labelled_counts_
    return mask_posteriors(fused, lambda done, total: progress("Looking", done, total)), fused.labelled_counts_


def _refuse_unbuyable(known: ItemPosteriors, cost: Prices, capacity: np.ndarray, budget: float) -> None:
    """Refuse a budget, or limits, with which no label can be asked for at all."""
    if budget < cost.least.min():
        raise InputError(f"The budget of {budget:g} buys no label: the cheapest costs {cost.least.min():g}.")
    free = capacity >= 1
    if not (free & (cost.least <= budget)).any():
        raise InputError("The capacities leave nobody to ask whom the budget could pay: raise either.")
    if len(known.rater_of) == len(known.items) * len(known.raters):
        n_raters, n_items = len(known.raters), len(known.items)
        who = f"Every one of the {n_raters} raters" if n_raters > 1 else f"The only rater, {known.raters[0]},"
        what = f"every one of the {n_items} items" if n_items > 1 else f"the only item, {known.items[0]}"
        raise InputError(
            f"{who} has labelled {what}: nobody is left to ask. Bring in another rater, or settle what is disputed by "
            "an expert."
        )
