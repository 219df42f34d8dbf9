"""How much each (item, rater) is worth ordering, given what has been ordered already.

With few raters, every pair is looked at. With thousands, items with about the same posterior form a group, raters are
ranked once for each group, and only the best of them who are still free are looked at for an item.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Protocol

import numpy as np

from annotruth.choosing.queue.information import (
    MAX_BRANCHES,
    accuracy_gain,
    branch,
    branch_information,
    expected_accuracy,
    information,
)
from annotruth.choosing.queue.posteriors import ItemPosteriors, slots, sum_rows
from annotruth.choosing.queue.prices import Prices, flat_prices

MAX_RATERS_EACH = 64
"""Up to so many raters are all looked at for every item; of more, as many as CANDIDATES."""
CANDIDATES = 32
MIN_EVIDENCE = 12.0
"""Labels that can be held against others', which anybody is taken to have given."""
HOPE = 8.0
"""Labels below which a rater is looked at as if nearly all the next ones would be right."""
INFORMATION = 0.1
"""Of masks, what a nat of information is worth beside a pixel more that is right."""
PRICE = 0.5
"""Of masks, the power of the price that their worth is divided by: 0 = regardless of the price, 1 = per cost."""
STALE = 0.5
"""Of many raters, those whose labels have fallen to this share of their information are looked at after the others."""
_MAX_GROUPS, _MIN_GROUPS, _MAX_RANKING_WORK = 1024, 16, 2e9
_GRIDS = (20, 10, 5, 3, 2, 1)  # steps of a probability that are told apart when items are grouped
_MAX_ENTRIES = 2**22  # of arrays that are made at a time


class Scores(Protocol):
    """What the choice of a batch asks."""

    def first(self) -> np.ndarray:
        """What the best pair of each item is worth, (items,), or more: orders never make other pairs worth more."""

    def score(self, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Raters to choose from (some items, candidates) and what each is worth; -inf for whoever labelled the item."""

    def free(self, available: np.ndarray) -> None:
        """From now on only these raters may be asked, bool (raters,)."""

    def order(self, item: int, rater: int) -> tuple[float, float, float]:
        """Note that a label is ordered; give its gain, and by how much the items expected right, and the variance of
        their number, change."""


class InformationScores:
    """Expected information per cost, less for items that labels are ordered for already.

    Raters err together on a hard item, which no matrix knows: a label beside m others that are ordered for the same
    item is worth 1 / (1 + m) of its information, until those are there. Matrices that rest on few labels are drawn to
    those of all raters (``posteriors.shrink``): nobody is asked for everything because of a few lucky answers.

    With two classes that is not enough. Many raters favour one of two, a label of theirs tells little, and who tells
    more comes out late. So who is hardly known is hoped to be good, which only labels can tell: see :func:`hope`. And
    all labels of a rater share one matrix, which may be wrong for all of them: a label of a rater of whom n can be held
    against others' and m are ordered is worth n / (n + m) of its information. The last holds for masks, too; a single
    one shows how somebody draws. What is told of an order, its gain, is that of the matrix as it is.

    Masks cost very different prices, and information alone, per cost, buys many poor ones that change nobody's mind:
    pairs are chosen mostly by how many pixels more are expected right, and by information where that is none. Per cost,
    experts are still hardly asked, and cases stay as cheap raters left them; regardless of cost, few cases are asked
    about. So the worth of a mask is divided by the square root of its price, half way between the two.

    Parameters
    ----------
    known : what is known of the items
    cost : of a label, by rater and kind of item; or (raters,) where all items are of one kind
    """

    def __init__(self, known: ItemPosteriors, cost: Prices | np.ndarray) -> None:
        self.known, self.cost = known, flat_prices(cost, len(known.items))
        if known.votes is None:
            self.cost = replace(self.cost, table=self.cost.table**PRICE)
        of_two = known.votes is not None and len(known.classes) == 2
        self._hoped = hope(known.confusion, known.evidence) if of_two else known.confusion
        self._available = np.ones(len(known.raters), dtype=bool)
        self._branches: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        self.asked: dict[int, list[int]] = {}
        self._group, self._ranking = self._rank_by_group()
        self._lists: dict[int, np.ndarray] = {}
        self._evidence = known.evidence + (MIN_EVIDENCE if of_two or known.votes is None else np.inf)
        self._ordered = np.zeros(len(known.raters))
        self._trust = np.ones(len(known.raters))
        self._best: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def free(self, available: np.ndarray) -> None:
        fresh = self._trust >= STALE
        self._trust = 1 / (1 + self._ordered / self._evidence)
        if not np.array_equal(available, self._available) or (fresh != (self._trust >= STALE)).any():
            self._available, self._lists = available.copy(), {}

    def first(self) -> np.ndarray:
        return self.best()[0]

    def best(self) -> tuple[np.ndarray, np.ndarray]:
        """Largest gain per cost, and largest gain, that a label of each item has before any is ordered: (items,) each.

        -inf where nobody is left to ask.
        """
        if self._best is not None and np.array_equal(self._best[0], self._available):
            return self._best[1].copy(), self._best[2]
        known = self.known
        worth, most = np.full(len(known.items), -np.inf), np.full(len(known.items), -np.inf)
        order = np.argsort(self._group, kind="stable")
        edges = np.searchsorted(self._group[order], np.arange(len(self._ranking) + 1))
        for group, (start, stop) in enumerate(pairwise(edges)):
            raters = self._candidates(group)
            if not len(raters):
                continue
            for items in self._parts(order[start:stop], len(raters) * len(known.classes)):
                place, row = slots(known.first_row, items)
                outcomes, confusion = (np.ones((len(row), 1)), known.posterior[row, None]), self._hoped[raters]
                told = branch_information(*outcomes, confusion)
                taken, edges_of = known.labelled(items)[:, raters], _edges(place, len(items))
                for each, found, cost in (
                    (told, most, np.ones(1)),
                    (self._value(told, *outcomes, confusion), worth, self.cost.of(items, raters[None])),
                ):
                    gain = sum_rows(each * known.weight[row, None], edges_of)
                    found[items] = np.where(taken, -np.inf, gain / cost).max(axis=1)
        stuck = np.flatnonzero(~np.isfinite(worth))
        if len(self._candidates(0)) < self._available.sum():
            for item in stuck.tolist():
                _, gain = self._all_gains(item)
                cost = self.cost.table[self.cost.kind[item], self._available]
                most[item], worth[item] = gain.max(), (gain / cost).max()
        self._best = self._available.copy(), worth, most
        return worth.copy(), most

    def score(self, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        raters = np.stack([self._candidates(group) for group in self._group[items]])
        worth = np.full(raters.shape, -np.inf)
        if not raters.shape[1]:
            return raters, worth
        ordered = np.array([item in self._branches for item in items.tolist()])
        entries = raters.shape[1] * len(self.known.classes) * max(len(self.known.classes), MAX_BRANCHES)
        for chosen in (np.flatnonzero(~ordered), np.flatnonzero(ordered)):
            for part in self._parts(chosen, entries):
                trust = self._trust[raters[part]] / self.cost.of(items[part], raters[part])
                worth[part] = self._gains(items[part], raters[part]) * trust / (1 + self.waiting(items[part])[:, None])
        stuck = np.flatnonzero(~np.isfinite(worth).any(axis=1))
        if raters.shape[1] < self._available.sum():
            for place in stuck:
                free, gain = self._all_gains(items[place])
                value = gain * self._trust[free] / self.cost.of(items[place : place + 1], free[None])[0]
                value /= 1 + self.waiting(items[place : place + 1])
                best = np.argsort(-value, kind="stable")[: raters.shape[1]]
                raters[place], worth[place] = free[best], value[best]
        return raters, worth

    def order(self, item: int, rater: int) -> tuple[float, float, float]:
        known = self.known
        rows = slice(known.first_row[item], known.first_row[item + 1])
        count = rows.stop - rows.start
        fresh = np.ones((count, 1)), known.posterior[rows, None], np.zeros(count)
        weight, posterior, given_up = self._branches.get(item, fresh)
        before = expected_accuracy(weight, posterior) + given_up
        gain = branch_information(weight, posterior, known.confusion[rater : rater + 1])[:, 0] @ known.weight[rows]
        weight, posterior, lost = branch(weight, posterior, known.confusion[rater])
        given_up = given_up + lost
        after = expected_accuracy(weight, posterior) + given_up
        self._branches[item] = weight, posterior, given_up
        self.asked.setdefault(item, []).append(rater)
        self._ordered[rater] += 1
        size, pieces = known.size[rows], known.pieces[rows]
        spread = (after * (1 - after) - before * (1 - before)) * size**2 / pieces
        return float(gain), float((after - before) @ size), float(spread.sum())

    def _gains(self, items: np.ndarray, raters: np.ndarray) -> np.ndarray:
        """What labels tell, or are worth, (some items, candidates), -inf for whoever labelled the item or was asked."""
        known = self.known
        place, row = slots(known.first_row, items)
        weight, posterior = self._outcomes(items, row)
        same = raters.shape[1] == len(known.raters) or (raters == raters[0]).all()
        confusion = self._hoped[raters[0]] if same else self._hoped[raters][place]
        gain = self._value(branch_information(weight, posterior, confusion), weight, posterior, confusion)
        gain = sum_rows(gain * known.weight[row, None], _edges(place, len(items)))
        gain[np.take_along_axis(self.taken(items), raters, axis=1)] = -np.inf
        return gain

    def _value(self, told: np.ndarray, weight: np.ndarray, posterior: np.ndarray, confusion: np.ndarray) -> np.ndarray:
        """What labels are chosen by (rows, raters), given the information in them; arrays as of branch_information."""
        if self.known.votes is not None:
            return told
        return INFORMATION * told + accuracy_gain(weight, posterior, confusion)

    def _outcomes(self, items: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Outcomes of labels ordered for the rows of items: for all of them, or for none, labels are ordered."""
        found = [self._branches[item] for item in items.tolist() if item in self._branches]
        if not found:
            return np.ones((len(row), 1)), self.known.posterior[row, None]
        most = max(weight.shape[1] for weight, _, _ in found)
        n_classes = len(self.known.classes)
        weights, posteriors = np.zeros((len(row), most)), np.full((len(row), most, n_classes), 1 / n_classes)
        start = 0
        for weight, posterior, _ in found:
            stop, count = start + len(weight), weight.shape[1]
            weights[start:stop, :count], posteriors[start:stop, :count] = weight, posterior
            start = stop
        return weights, posteriors

    def _all_gains(self, item: int) -> tuple[np.ndarray, np.ndarray]:
        """Every free rater, and the gain of each for one item."""
        free = np.flatnonzero(self._available)
        return free, self._gains(np.array([item]), free[None])[0]

    def waiting(self, items: np.ndarray) -> np.ndarray:
        """How many labels are ordered for each of the items, (some items,)."""
        return np.array([len(self.asked.get(item, ())) for item in items.tolist()])

    def taken(self, items: np.ndarray) -> np.ndarray:
        """Who labelled each of the items or was asked to, bool (some items, raters)."""
        taken = self.known.labelled(items)
        for place, item in enumerate(items.tolist()):
            taken[place, self.asked.get(item, [])] = True
        return taken

    def _candidates(self, group: int) -> np.ndarray:
        """Free raters to choose from for the items of a group, the best first; as many for each group."""
        if group not in self._lists:
            ranked = self._ranking[group]
            most = len(ranked) if len(ranked) <= MAX_RATERS_EACH else CANDIDATES
            free = ranked[self._available[ranked]]
            fresh = self._trust[free] >= STALE  # who is asked for little so far comes first, but not alone
            self._lists[group] = np.concatenate([free[fresh], free[~fresh]])[:most]
        return self._lists[group]

    def _rank_by_group(self) -> tuple[np.ndarray, np.ndarray]:
        """The group of each item, (items,), and raters in the order of their worth for each group (groups, raters)."""
        known, n_raters = self.known, len(self.known.raters)
        if n_raters <= MAX_RATERS_EACH:
            return np.zeros(len(known.items), dtype=np.int64), np.arange(n_raters)[None]
        mean = known.sums(known.posterior * known.weight[:, None])
        mean /= np.maximum(mean.sum(axis=1, keepdims=True), 1e-300)
        most = np.clip(_MAX_RANKING_WORK / (n_raters * mean.shape[1] ** 2), _MIN_GROUPS, _MAX_GROUPS)
        group = group_alike(mean, int(most))
        n_kinds = len(self.cost.table)
        _, first, group = np.unique(group * n_kinds + self.cost.kind, return_index=True, return_inverse=True)
        sizes, kind = np.bincount(group), self.cost.kind[first]
        centre = np.stack([np.bincount(group, column) for column in mean.T], axis=1) / sizes[:, None]
        ranking = np.empty((len(centre), n_raters), dtype=np.int32)
        step = max(1, _MAX_ENTRIES // (n_raters * mean.shape[1]))
        for start in range(0, len(centre), step):
            cost = self.cost.table[kind[start : start + step]]
            worth = information(centre[start : start + step], self._hoped) / cost
            ranking[start : start + step] = np.argsort(-worth, axis=1, kind="stable")
        return group, ranking

    def _parts(self, items: np.ndarray, entries: int) -> list[np.ndarray]:
        """Cut items into parts that take little memory, with arrays of so many entries for each row."""
        rows = max(1.0, len(self.known.posterior) / max(len(self.known.items), 1))
        count = math.ceil(len(items) * max(len(self.known.raters), rows * entries) / _MAX_ENTRIES)
        return [part for part in np.array_split(items, max(count, 1)) if len(part)]


class ItemScores:
    """Items by a score of their own, and raters at random, or by information.

    Parameters
    ----------
    told : what information says, which also keeps account of what is ordered
    worth : (items,) the score; an item that labels are ordered for is worth half, a third … of it
    by_information : whether the rater whose label tells most is asked
    """

    def __init__(
        self, told: InformationScores, worth: np.ndarray, by_information: bool, rng: np.random.Generator
    ) -> None:
        self._told, self._worth, self._by_information, self._rng = told, worth, by_information, rng
        self._available = np.arange(len(told.known.raters))

    def free(self, available: np.ndarray) -> None:
        self._told.free(available)
        self._available = np.flatnonzero(available)

    def first(self) -> np.ndarray:
        return self._worth.copy()

    def score(self, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self._by_information:
            raters, worth = self._told.score(items)
        else:
            raters = self._draw(len(items))
            worth = np.zeros(raters.shape)
            worth[np.take_along_axis(self._told.taken(items), raters, axis=1)] = -np.inf
        # Of an item's raters, the first in order of worth is taken; differences among them must not outweigh items.
        place = np.argsort(np.argsort(-worth, axis=1, kind="stable"), axis=1)
        value = (self._worth[items] / (1 + self._told.waiting(items)))[:, None] * (1 - 1e-9 * place)
        return raters, np.where(np.isfinite(worth), value, -np.inf)

    def order(self, item: int, rater: int) -> tuple[float, float, float]:
        return self._told.order(item, rater)

    def _draw(self, count: int) -> np.ndarray:
        """Free raters in an order at random for each of so many items; all of them where they are few."""
        free = self._available
        if len(free) <= 4 * MAX_RATERS_EACH:
            return free[np.argsort(self._rng.random((count, len(free))), axis=1)]
        return free[self._rng.integers(0, len(free), (count, 4 * MAX_RATERS_EACH))]


def hope(confusion: np.ndarray, evidence: np.ndarray) -> np.ndarray:
    """Matrices (raters, classes, classes) of raters as good as they may turn out to be.

    Parameters
    ----------
    confusion : as they are estimated
    evidence : (raters,) labels of each that can be held against others'

    Examples
    --------
    >>> guesses = np.full((2, 2, 2), 0.5)
    >>> hope(guesses, np.array([0, 99]))[:, 0].round(2)
    array([[0.95, 0.05],
           [0.54, 0.46]])
    """
    share = np.minimum(HOPE / (1 + evidence), 0.9)[:, None, None]
    return np.asarray((1 - share) * confusion + share * np.eye(confusion.shape[-1]))


def group_alike(posterior: np.ndarray, most: int) -> np.ndarray:
    """Number (rows,) of the group of each row (rows, classes): rows with about the same probabilities, few groups.

    Examples
    --------
    >>> group_alike(np.array([[0.5, 0.5], [0.98, 0.02], [0.49, 0.51], [0.99, 0.01]]), most=2).tolist()
    [0, 1, 0, 1]
    """
    mix = np.random.default_rng(0).integers(1, 2**40, posterior.shape[1])
    for grid in _GRIDS:
        _, group = np.unique(np.rint(posterior * grid).astype(np.int64) @ mix, return_inverse=True)
        if group.max(initial=0) < most:
            break
    return group


def _edges(place: np.ndarray, count: int) -> np.ndarray:
    return np.searchsorted(place, np.arange(count + 1))
