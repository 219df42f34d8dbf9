"""Items of known truth among the labels to ask for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import annotruth as at
from annotruth.choosing.queue.fusing import SparseDawidSkene
from annotruth.errors import InputError


def table(known: int, seed: int = 0) -> at.Annotations:
    """Sixty items, each labelled by two of five raters, the truth of the first ones known."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, 60)
    answers = np.where(rng.random((60, 5)) < 0.8, truth[:, None], rng.integers(0, 3, (60, 5)))
    answers[np.argsort(rng.random((60, 5)), axis=1) >= 2] = -1
    return at.Annotations.from_answers(answers, truth=np.where(np.arange(60) < known, truth, -1), classes=3)


def test_a_share_of_the_labels_is_gold_that_its_rater_has_not_seen() -> None:
    labels = table(known=20)
    queue = at.next_labels(SparseDawidSkene().fit(labels, "truth"), labels, 60, gold=0.1)
    assert len(queue.gold) == 6
    assert len(queue) <= 60
    assert "is among them: 6 labels." in queue.summary[-1]
    there = labels.labelled()
    for row in queue.gold.itertuples():
        item, rater = labels.items.index(row.item), labels.raters.index(row.rater)
        assert item < 20
        assert not there[item, rater]
        assert labels.classes[labels.truth[item]] == row.truth
        shown = queue.table.iloc[row.rank - 1]
        assert (shown["action"], shown["item"], shown["rater"]) == ("label", row.item, row.rater)
    pairs = queue.table[queue.table["action"] == "label"][["item", "rater"]]
    assert not pairs.duplicated().any()
    assert queue.gold["item"].is_unique  # word of an item does not go round while there are others
    assert queue.gold["truth"].nunique() == 3


def test_gold_stays_within_budget_and_capacity(tmp_path: Path) -> None:
    labels = table(known=20)
    costs = dict.fromkeys(labels.raters, 1.5)
    queue = at.next_labels(SparseDawidSkene().fit(labels), labels, 30, gold=0.2, costs=costs, capacity=5)
    assert queue.curve["cost"].iloc[-1] <= 30
    assert queue.table["rater"].value_counts().drop("", errors="ignore").max() <= 5
    assert len(queue.gold) >= 3
    files = queue.write(tmp_path / "queue.csv")
    assert files[-1].name == "queue.gold.csv"
    assert pd.read_csv(files[-1])["item"].tolist() == queue.gold["item"].tolist()


def test_without_truth_items_that_are_as_good_as_sure_serve() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 80)
    answers = np.where(rng.random((80, 6)) < 0.93, truth[:, None], 1 - truth[:, None])
    answers[40:, 2:] = -1
    answers[:40, 5] = -1
    labels = at.Annotations.from_answers(answers)
    few = dict.fromkeys(labels.raters[:5], 6)  # so that the last one, who has not labelled those items, is asked, too
    queue = at.next_labels(SparseDawidSkene().fit(labels), labels, 40, gold=0.25, capacity=few)
    assert len(queue.gold) > 0
    items = [labels.items.index(item) for item in queue.gold["item"]]
    assert max(items) < 40
    assert np.mean([str(truth[item]) == told for item, told in zip(items, queue.gold["truth"])]) > 0.9


@pytest.mark.parametrize("gold", [0, -0.1, 0.9, "5%", float("nan")])
def test_shares_that_cannot_be_are_refused(gold: float) -> None:
    labels = table(known=20)
    with pytest.raises(InputError, match="share of hidden gold"):
        at.next_labels(SparseDawidSkene().fit(labels), labels, 10, gold=gold)


@pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")
def test_where_nothing_is_sure_there_is_no_gold() -> None:
    labels = at.Annotations.from_answers(np.array([[0, 1, -1], [1, 0, -1]]))
    with pytest.raises(InputError, match="no item to serve as hidden gold"):
        at.next_labels(SparseDawidSkene().fit(labels), labels, 2, gold=0.5)


@pytest.mark.filterwarnings("ignore:The estimated truth may be wrong")
def test_gold_of_masks_is_cases_of_known_truth() -> None:
    masks = np.zeros((6, 3, 12, 12), dtype=np.uint8)
    masks[:, :, 3:9, 3:9] = 1
    masks[:3, 1, 2:10, 2:10] = 1
    masks[:3, 2] = 255
    masks[4:, 2] = 255
    masks[3, 0] = 255
    truth = np.full((6, 12, 12), 255, dtype=np.uint8)
    truth[4:] = masks[4:, 0]
    labels = at.Annotations.from_masks(masks, truth=truth)
    queue = at.next_labels(at.STAPLE().fit(labels), labels, 4, gold=0.25)
    assert set(queue.gold["item"]) <= {"item_4", "item_5"}
    assert set(queue.gold["truth"]) == {"known mask"}
    without = at.Annotations.from_masks(masks)
    with pytest.raises(InputError, match="no case whose true mask is known"):
        at.next_labels(at.STAPLE().fit(without), without, 4, gold=0.25)
