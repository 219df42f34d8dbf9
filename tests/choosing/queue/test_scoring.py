"""What pairs are worth: all of them where raters are few, the best where they are many."""

from __future__ import annotations

import numpy as np
import pytest

import annotruth as at
from annotruth.choosing.queue import scoring
from annotruth.choosing.queue.fusing import SparseDawidSkene
from annotruth.choosing.queue.greedy import fill_budget
from annotruth.choosing.queue.information import information
from annotruth.choosing.queue.posteriors import ItemPosteriors, table_posteriors
from annotruth.choosing.queue.scoring import InformationScores, ItemScores, group_alike


def crowd(n_classes: int) -> ItemPosteriors:
    """300 items, 100 raters, 3 labels each."""
    rng = np.random.default_rng(0)
    truth, skill = rng.integers(0, n_classes, 300), rng.uniform(0.4, 0.95, 100)
    answers = np.full((300, 100), -1)
    for item in range(300):
        asked = rng.choice(100, 3, replace=False)
        right = rng.random(3) < skill[asked]
        answers[item, asked] = np.where(right, truth[item], (truth[item] + 1) % n_classes)
    return table_posteriors(SparseDawidSkene().fit(at.Annotations.from_answers(answers)))


@pytest.fixture(scope="module")
def many() -> ItemPosteriors:
    return crowd(3)


def test_of_many_raters_the_best_are_looked_at(many: ItemPosteriors, monkeypatch: pytest.MonkeyPatch) -> None:
    cost = np.random.default_rng(1).uniform(1, 2, 100)
    exact = information(many.posterior, many.confusion) / cost
    exact[many.labelled(np.arange(300))] = -np.inf
    scores = InformationScores(many, cost)
    worth, most = scores.best()
    assert worth == pytest.approx(exact.max(axis=1), rel=0.02)
    assert (worth <= exact.max(axis=1) + 1e-12).all()
    assert (most >= worth).all()
    raters, found = scores.score(np.arange(300))
    assert raters.shape == (300, scoring.CANDIDATES)
    assert found == pytest.approx(np.take_along_axis(exact, raters, axis=1))
    few = fill_budget(InformationScores(many, cost), cost, np.full(100, 2.0), 60)
    monkeypatch.setattr(scoring, "MAX_RATERS_EACH", 100)
    all_of_them = fill_budget(InformationScores(many, cost), cost, np.full(100, 2.0), 60)
    assert sum(order.gain for order in few) >= 0.97 * sum(order.gain for order in all_of_them)


def test_an_item_that_all_the_best_have_labelled_goes_to_others(
    many: ItemPosteriors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "CANDIDATES", 1)
    cost = np.ones(100)
    scores = InformationScores(many, cost)
    leader = int(scores.score(np.array([0]))[0][0, 0])
    labelled = ItemPosteriors(
        **{**vars(many), "first_label": np.array([0, *range(1, 301)]), "rater_of": np.full(300, leader)}
    )
    scores = InformationScores(labelled, cost)
    assert np.isfinite(scores.first()).all()
    raters, worth = scores.score(np.arange(5))
    assert (raters != leader).all()
    assert np.isfinite(worth).all()


def test_symmetric_raters_are_worth_the_same(many: ItemPosteriors) -> None:
    alike = {"confusion": np.repeat(many.confusion[:1], 100, axis=0), "evidence": np.full(100, 9)}
    same = ItemPosteriors(**{**vars(many), **alike})
    _, worth = InformationScores(same, np.ones(100)).score(np.arange(10))
    for row in worth:
        assert np.ptp(row[np.isfinite(row)]) < 1e-12


def as_masks(many: ItemPosteriors) -> ItemPosteriors:
    """Five raters, and masks in place of answers."""
    fields = {**vars(many), "votes": None, "raters": many.raters[:5], "confusion": many.confusion[:5]}
    nobody = {"first_label": np.zeros(301, dtype=int), "rater_of": np.zeros(0, dtype=int)}
    return ItemPosteriors(**fields | {"evidence": many.evidence[:5]} | nobody)


@pytest.mark.parametrize(("n_classes", "asked"), [(2, 5), (3, 0)])
def test_of_two_classes_who_is_hardly_known_is_tried_before_who_is_known_to_be_middling(n_classes, asked):
    known = crowd(n_classes)
    alike = {"confusion": np.repeat(known.confusion[:1], 100, axis=0)}
    alike["evidence"] = np.where(np.arange(100) == 7, 2, 90)
    scores = InformationScores(ItemPosteriors(**{**vars(known), **alike}), np.ones(100))
    orders = fill_budget(scores, np.ones(100), np.full(100, 5.0), 20)
    assert sum(order.rater == 7 for order in orders) == asked


def test_who_is_asked_for_more_than_is_known_of_them_is_worth_less(
    many: ItemPosteriors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of masks, and of two classes."""
    monkeypatch.setattr(scoring, "HOPE", 0.0)
    for known, counts in ((as_masks(many), True), (crowd(2), True), (many, False)):
        everybody, item = np.ones(len(known.raters), dtype=bool), np.array([0])
        scores = InformationScores(known, np.ones(len(known.raters)))
        raters, before = scores.score(item)
        asked = int(raters[0, np.argmax(before[0])])
        for other in range(100, 115):
            scores.order(other, asked)
        scores.free(everybody)
        again, after = scores.score(item)
        assert (again == raters).all()
        evidence = known.evidence[asked] + scoring.MIN_EVIDENCE
        share = np.where(raters == asked, evidence / (evidence + 15), 1.0) if counts else np.ones(raters.shape)
        there = np.isfinite(before)
        np.testing.assert_allclose(after[there], (before * share)[there])


def test_a_label_beside_others_that_are_ordered_for_the_item_is_worth_a_share(many: ItemPosteriors) -> None:
    scores, items = InformationScores(many, np.ones(100)), np.array([0, 1])
    raters, before = scores.score(items)
    gain, _, _ = scores.order(0, int(raters[0, 0]))
    after = scores.score(items)[1]
    assert scores.waiting(items).tolist() == [1, 0]
    assert after[1] == pytest.approx(before[1])
    left = np.isfinite(after[0])
    assert (after[0, left] <= before[0, left] / 2 + 1e-12).all(), "half, and less as the item will be clearer"
    assert gain > 0


def test_masks_are_worth_pixels_and_information_for_the_square_root_of_their_price(many: ItemPosteriors) -> None:
    masks, price = as_masks(many), np.array([1.0, 4.0, 9.0, 2.0, 1.5])
    wanted = np.zeros((300, 5))
    for item, posterior in enumerate(masks.posterior):
        for rater, confusion in enumerate(masks.confusion):
            joint = posterior[:, None] * confusion  # of what is true, and what is drawn
            alone = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
            told = sum(p * np.log(p / q) for p, q in zip(joint.ravel(), alone.ravel()) if p > 0)
            right = joint.max(axis=0).sum() - posterior.max()
            wanted[item, rater] = (scoring.INFORMATION * told + right) / price[rater] ** 0.5
    scores = InformationScores(masks, price)
    raters, worth = scores.score(np.arange(300))
    assert worth == pytest.approx(np.take_along_axis(wanted, raters, axis=1))
    assert scores.first() == pytest.approx(wanted.max(axis=1))
    orders = fill_budget(scores, price, np.full(5, np.inf), 20)
    assert sum(order.cost for order in orders) <= 20, "what is spent is the price itself"
    assert all(order.cost == price[order.rater] for order in orders)


def test_items_by_a_score_of_their_own(many: ItemPosteriors) -> None:
    rng, worth = np.random.default_rng(0), np.linspace(0.1, 1, 300)
    orders = fill_budget(
        ItemScores(InformationScores(many, np.ones(100)), worth, False, rng), np.ones(100), np.full(100, np.inf), 10
    )
    assert [order.item for order in orders] == list(range(299, 289, -1))
    assert len({order.rater for order in orders}) > 5
    told = ItemScores(InformationScores(many, np.ones(100)), worth, True, rng)
    best = fill_budget(told, np.ones(100), np.full(100, np.inf), 10)
    assert sum(order.gain for order in best) > sum(order.gain for order in orders)


def test_groups_are_few_and_alike() -> None:
    posterior = np.random.default_rng(0).dirichlet(np.ones(4), 500)
    group = group_alike(posterior, 40)
    assert group.max() < 40
    spread = [np.ptp(posterior[group == one], axis=0).max() for one in range(group.max() + 1)]
    assert max(spread) < 0.55
