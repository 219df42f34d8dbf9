"""Costs and capacities: told, and read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from annotruth.choosing.queue.prices import Costs, item_prices, rater_capacity, rater_costs, read_kinds, read_prices
from annotruth.errors import InputError

RATERS = ("ann", "bob")


def test_one_number_for_all_or_one_for_each() -> None:
    assert rater_costs(None, RATERS).tolist() == [1, 1]
    assert rater_costs(2.5, RATERS).tolist() == [2.5, 2.5]
    assert rater_costs({"bob": 3, "ann": 1}, RATERS).tolist() == [1, 3]
    assert rater_capacity(None, RATERS).tolist() == [np.inf, np.inf]
    assert rater_capacity({"bob": 3.7}, RATERS).tolist() == [np.inf, 3]


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        ({"ann": 1}, "Costs are missing for 1 of 2 raters: bob"),
        ({"ann": 1, "bob": -2}, r"more than 0, and a finite number: bob \(-2\)"),
        ({"ann": 0, "bob": 2}, r"ann \(0\)"),
        ({"ann": 1, "bob": np.inf}, r"bob \(inf\)"),
        ({"ann": 1, "bob": 1, "cy": 1}, "name raters who labelled nothing: cy. The raters are ann, bob"),
        ({"ann": "much", "bob": 1}, r"are numbers, not 'much' \(ann\)"),
        (float("nan"), "not nan"),
        (-1, "more than 0"),
    ],
)
def test_costs_that_cannot_be_are_refused(costs: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        rater_costs(costs, RATERS)  # type: ignore[arg-type]


def test_capacities_that_cannot_be_are_refused() -> None:
    with pytest.raises(InputError, match=r"0 at least: ann \(-1\)"):
        rater_capacity({"ann": -1}, RATERS)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rater,price\nann,1\n", "no column 'cost'"),
        ("rater,cost\nann,1\nann,2\n", "ann stands in two rows"),
        ("rater,cost\nann,\n", "no cost is given for ann"),
        ("rater,cost\nann,cheap\n", "the cost of ann is a number, not 'cheap'"),
        ("rater,cost\n,3\n", "row 1 names no rater"),
        ("rater,cost,capacity\nann,3,many\n", "the capacity of ann is a number"),
    ],
)
def test_files_that_tell_no_costs_are_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "costs.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        read_prices(path)
    assert "costs.csv" in str(caught.value)


def test_costs_without_capacities(tmp_path: Path) -> None:
    path = tmp_path / "costs.csv"
    path.write_text("rater,cost\n'=ann,1\nbob,2\n")
    assert read_prices(path) == ({"=ann": 1.0, "bob": 2.0}, None)


def test_costs_by_kind_of_item(tmp_path: Path) -> None:
    path = tmp_path / "costs.csv"
    path.write_text("rater,kind,cost\nann,CT,5\nann,,2\nbob,,1\n")
    costs, capacity = read_prices(path)
    assert capacity is None
    prices = item_prices(costs, RATERS, ["a", "b", "c"], {"a": "MR", "b": "CT", "c": "MR"})
    assert prices.of(np.arange(3), np.array([[0, 1]])).tolist() == [[2, 1], [5, 1], [2, 1]]
    assert prices.least.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("costs", "kinds", "words"),
    [
        ({"ann": {"CT": 1}, "bob": 1}, None, "of no item is it told what kind"),
        ({"ann": {"CT": 1}, "bob": 1}, {"a": "CT"}, "No kind is told of 1 of 2 items: b"),
        ({"ann": {"CT": 1}, "bob": 1}, {"a": "CT", "b": "MR"}, "missing for items of the kind 'MR' by ann"),
        ({"ann": {"CT": -1}, "bob": 1}, {"a": "CT", "b": "CT"}, "more than 0"),
    ],
)
def test_costs_by_kind_that_cannot_be_are_refused(costs: Costs, kinds: dict[str, str] | None, words: str) -> None:
    with pytest.raises(InputError, match=words):
        item_prices(costs, RATERS, ["a", "b"], kinds)


def test_an_item_of_two_kinds_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kinds.csv"
    path.write_text("item,kind\na,CT\na,MR\n")
    with pytest.raises(InputError, match="a is of two kinds, CT and MR"):
        read_kinds(path)
