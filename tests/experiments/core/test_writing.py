"""Pages of results."""

from __future__ import annotations

import json
from statistics import mean

from annotruth.experiments.core.writing import MANY_SEEDS, environment, write_results


def _table(seeds):
    dice = {"clean": [0.9 + seed / 1000 for seed in seeds], "majority": [0.8 + seed / 1000 for seed in seeds]}
    rows = [
        {
            "setting": "dense",
            "method": method,
            "seeds": list(seeds),
            "paper": {},
            "settings": {"folder": None},
            "dice": {"mean": mean(each), "sd": 0.01, "each": each},
            "wall_time": {"mean": 3.0, "sd": 0.0, "each": [3.0] * len(each)},
        }
        for method, each in dice.items()
    ]
    metric = {
        "name": "dice",
        "title": "foreground Dice",
        "form": ".4f",
        "counted": False,
        "better": "higher",
        "series": "",
    }
    return {
        "title": "A table",
        "rows": rows,
        "metrics": [metric],
        "findings": ["dense: it works."],
        "notes": ["A note."],
        "data": ["ten digits"],
        "sizes": {"train": 10},
        "training": {},
        "curves": None,
        "environment": environment(),
    }


def test_what_was_found_comes_before_how_it_was_made(tmp_path):
    write_results(tmp_path, "name", _table(range(3)))
    page = (tmp_path / "name.md").read_text()
    parts = ["- dense: it works.", "| clean | 0.9010 ± 0.0100 | 3 | 3 |", "![A table](name.png)", "- By `annotruth"]
    parts += ["- A note.", "- Settings of all rows: train 10.", "- Data: ten digits."]
    places = [page.index(part) for part in parts]
    assert places == sorted(places)
    assert json.loads((tmp_path / "name.json").read_text())["title"] == "A table"


def test_many_seeds_are_shown_one_by_one(tmp_path):
    for count in (MANY_SEEDS - 1, MANY_SEEDS):
        write_results(tmp_path, "name", _table(range(count)))
        shown = "| 2 | 0.9020 | 0.8020 |" in (tmp_path / "name.md").read_text()
        assert shown == (count == MANY_SEEDS)
