"""Costs and capacities: told, read, and learnt from how long labels took."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from annotruth.choosing.queue.prices import learn_costs, rater_capacity, rater_costs, read_prices
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


def test_durations(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("item,rater,label,t\na,ann,x,5\nb,ann,x,7\nc,ann,x,900\na,bob,x,\nb,cy,x,1\n")
    assert learn_costs(path, "t") == {"ann": 7.0, "bob": 6.0, "cy": 1.0}
    with pytest.raises(InputError, match="no column 'seconds'"):
        learn_costs(path, "seconds")
    with pytest.raises(InputError, match="holds more than numbers"):
        learn_costs(path, "label")
