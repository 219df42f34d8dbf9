"""``next_labels``: what it takes, what it refuses."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import annotruth as at
from annotruth.choosing.queue.fusing import SparseDawidSkene
from annotruth.errors import InputError

Fused = tuple[SparseDawidSkene, at.Annotations]


@pytest.fixture(scope="module")
def fused() -> Fused:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 50)
    answers = np.where(rng.random((50, 4)) < [0.9, 0.8, 0.7, 0.6], truth[:, None], rng.integers(0, 3, (50, 4)))
    answers[:, 1:][rng.random((50, 3)) < 0.5] = -1
    labels = at.Annotations.from_answers(answers, raters=["ann", "bob", "cy", "di"])
    return SparseDawidSkene().fit(labels), labels


def test_the_same_call_gives_the_same_queue(fused: Fused) -> None:
    for strategy in ("information", "random"):
        one, two = (at.next_labels(*fused, 10, strategy=strategy, seed=1).table for _ in range(2))
        assert one.equals(two)
    assert not at.next_labels(*fused, 10, strategy="random", seed=2).table.equals(two)


def test_labels_of_costly_raters_are_bought_if_they_are_worth_it(fused: Fused) -> None:
    cheap = at.next_labels(*fused, 20, costs={"ann": 1, "bob": 20, "cy": 1, "di": 1}).table
    assert "bob" not in set(cheap["rater"])
    dear = at.next_labels(*fused, 20, costs={"ann": 20, "bob": 1, "cy": 20, "di": 20})
    assert (dear.table[dear.table["action"] == "label"]["rater"] == "bob").mean() > 0.9
    assert dear.curve["cost"].iloc[-1] <= 20


def test_a_rater_is_not_asked_twice_nor_beyond_capacity(fused: Fused) -> None:
    labels = fused[1]
    table = at.next_labels(*fused, 40, capacity={"bob": 4}).table
    table = table[table["action"] == "label"]
    assert (table["rater"] == "bob").sum() <= 4
    assert "ann" not in set(table["rater"])  # labelled everything
    there = labels.labelled()
    for row in table.itertuples():
        assert not there[labels.items.index(row.item), labels.raters.index(row.rater)]


@pytest.mark.parametrize("budget", [0, -3, float("nan"), float("inf"), "many"])
def test_a_budget_that_buys_nothing_is_refused(fused: Fused, budget: object) -> None:
    with pytest.raises(InputError, match="The budget is what may be spent"):
        at.next_labels(*fused, budget)


def test_what_cannot_be_is_refused(fused: Fused) -> None:
    estimator, labels = fused
    with pytest.raises(InputError, match=r"budget of 2 buys no label: the cheapest costs 5"):
        at.next_labels(*fused, 2, costs=5)
    with pytest.raises(InputError, match="The capacities leave nobody to ask"):
        at.next_labels(*fused, 2, capacity=0)
    with pytest.raises(InputError, match="Unknown strategy 'magic'"):
        at.next_labels(*fused, 2, strategy="magic")
    with pytest.raises(InputError, match="has not learnt anything yet"):
        at.next_labels(at.DawidSkene(), labels, 2)
    with pytest.raises(InputError, match="items are not those that the estimator was fitted to: item_49"):
        at.next_labels(estimator, labels.take(np.arange(49)), 2)
    everything = at.Annotations.from_answers(np.array([[0, 1], [1, 1]]))
    with pytest.raises(InputError, match="Every one of the 2 raters has labelled every one of the 2 items"):
        at.next_labels(SparseDawidSkene().fit(everything), everything, 2)
    alone = at.Annotations.from_answers(np.array([[0], [1]]), raters=["ann"])
    with pytest.raises(InputError, match="The only rater, ann, has labelled every one of the 2 items"):
        at.next_labels(at.MajorityVote().fit(alone), alone, 2)
    nothing = at.Annotations.from_answers(np.full((2, 2), -1), classes=2)
    with pytest.raises(InputError, match="nobody labelled any"):
        at.next_labels(SparseDawidSkene().fit(nothing), nothing, 2)


@pytest.mark.filterwarnings("ignore::annotruth.errors.AnnotruthWarning")
def test_masks_that_nobody_labelled_are_refused() -> None:
    nothing = at.Annotations.from_masks(np.full((2, 2, 4, 4), 255, dtype=np.uint8), classes=2)
    with pytest.raises(InputError, match="Nobody has labelled anything of the 2 items"):
        at.next_labels(at.STAPLE().fit(nothing), nothing, 2)


def test_where_all_is_certain_nothing_is_bought() -> None:
    labels = at.Annotations.from_answers(np.array([[0, 0, -1], [1, 1, -1], [0, 0, 0]]))
    fused = SparseDawidSkene().fit(labels, gold=np.array([0, 1, 0]))
    queue = at.next_labels(fused, labels, 2)
    assert len(queue) == 0
    assert queue.summary[0].startswith("No label that could be asked for would tell anything")


def test_after_new_labels_the_next_queue_follows(fused: Fused) -> None:
    estimator, labels = fused
    row = at.next_labels(estimator, labels, 1).table.iloc[0]
    answers = labels.answer_matrix()
    answers[labels.items.index(row["item"]), labels.raters.index(row["rater"])] = 0
    more = at.Annotations.from_answers(answers, raters=labels.raters)
    again = SparseDawidSkene().fit(labels).partial_fit(more)
    then = at.next_labels(again, more, 40).table
    assert (row["item"], row["rater"]) not in set(zip(then["item"], then["rater"]))


def test_fusion_needs_no_deep_learning() -> None:
    code = (
        "import sys, numpy as np, annotruth as at; "
        "labels = at.Annotations.from_answers(np.array([[0, 0, 1], [1, -1, 1], [0, 1, -1]])); "
        "at.next_labels(at.MajorityVote().fit(labels), labels, 1); "
        "assert not {'torch', 'lightning', 'monai'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_costs_by_kind_send_raters_to_the_items_that_are_cheap_with_them(fused: Fused) -> None:
    kinds = {item: "easy" if number % 2 else "hard" for number, item in enumerate(fused[1].items)}
    costs = {"ann": 1, "bob": {"easy": 1, "hard": 50}, "cy": {"easy": 50, "hard": 1}, "di": 50}
    queue = at.next_labels(*fused, 20, costs=costs, kinds=kinds)
    rows = queue.table[queue.table["action"] == "label"]
    assert {(rater, kinds[item]) for item, rater in zip(rows["item"], rows["rater"])} <= {
        ("bob", "easy"),
        ("cy", "hard"),
    }
    assert queue.curve["cost"].iloc[-1] == rows["cost"].sum() <= 20


def test_a_budget_below_the_cost_of_some_kinds_ends(fused: Fused) -> None:
    kinds = dict.fromkeys(fused[1].items, "hard") | {fused[1].items[0]: "easy"}
    queue = at.next_labels(*fused, 3, costs={name: {"easy": 1, "hard": 7} for name in fused[1].raters}, kinds=kinds)
    assert set(queue.table[queue.table["action"] == "label"]["item"]) <= {fused[1].items[0]}


def test_a_mask_of_which_nothing_is_in_doubt_can_be_asked_for() -> None:
    masks = np.zeros((4, 4, 8, 8), dtype=np.uint8)
    masks[:, :, 2:6, 2:6] = 1
    masks[0, 1, 1:7, 1:7] = 1
    masks[:, 3] = 255
    labels = at.Annotations.from_masks(masks)
    queue = at.next_labels(at.STAPLE().fit(labels), labels, 4, strategy="random")
    assert len(queue) == 4
