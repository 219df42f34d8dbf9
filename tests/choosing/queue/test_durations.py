"""Costs learnt from how long labels took."""

from __future__ import annotations

from pathlib import Path

import pytest

from annotruth.choosing.queue.durations import learn_costs
from annotruth.errors import InputError


def test_durations(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("item,rater,label,t\na,ann,x,5\nb,ann,x,7\nc,ann,x,900\na,bob,x,\nb,cy,x,1\n")
    assert learn_costs(path, "t") == {"ann": 7.0, "bob": 6.0, "cy": 1.0}
    with pytest.raises(InputError, match="no column 'seconds'"):
        learn_costs(path, "seconds")
    with pytest.raises(InputError, match="holds neither numbers"):
        learn_costs(path, "label")


def test_from_times_the_cost_is_the_time_since_the_raters_last_label(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    rows = [f"{n},ann,x,2026-01-05T09:{n:02}:00Z" for n in (3, 1, 2, 0)] + ["9,ann,x,2026-01-06T10:00:00Z"]
    rows += ["0,bob,x,2026-01-05T09:00:00Z", "1,bob,x,2026-01-05T09:00:20Z"]
    path.write_text("item,rater,label,time\n" + "\n".join(rows) + "\n")
    assert learn_costs(path, "time") == {"ann": 60.0, "bob": 20.0}  # the night between is no label's


def test_numbers_too_large_for_durations_are_times(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("item,rater,label,time\n" + "".join(f"{n},ann,x,{1_700_000_000 + 30 * n}\n" for n in range(5)))
    assert learn_costs(path, "time") == {"ann": 30.0}


def test_slow_kinds_cost_more_also_of_raters_who_have_not_labelled_them(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    rows = [f"ct{n},ann,x,100" for n in range(40)] + [f"mr{n},ann,x,10" for n in range(40)]
    rows += [f"mr{n},bob,x,20" for n in range(40)]
    path.write_text("item,rater,label,seconds\n" + "\n".join(rows) + "\n")
    kinds = {f"{kind}{n}": kind for kind in ("ct", "mr") for n in range(40)}
    costs = learn_costs(path, "seconds", kinds)
    ann, bob = costs["ann"], costs["bob"]
    assert isinstance(ann, dict)
    assert isinstance(bob, dict)
    assert 80 < ann["ct"] < 110
    assert 9 < ann["mr"] < 13
    assert bob["ct"] > 2 * bob["mr"]
    assert bob[""] == pytest.approx(20)
