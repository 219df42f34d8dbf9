"""A comparison on disk can be read by programs and by people."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from annotruth.choosing import Comparison
from annotruth.reporting.comparison import write_comparison


@pytest.fixture
def found() -> Comparison:
    lengths = np.array([[30.0, 32.0, 31.0], [20.0, 22.0, 24.0]])
    known = np.array([[0.8, np.nan, 0.9], [0.9, np.nan, 0.9]])
    return Comparison(
        "masks", ("a", "b", "c"), None, ("majority", "pixel-cm"), 3, 2, np.ones(3, dtype=bool), lengths,
        np.full(3, 50.0), np.zeros(2, dtype=bool), np.array([0.9, 0.95]),
        known, np.array([1.0, 2.0]), {"majority": ("<b>careful</b>",)},
        settings={"max_epochs": 3},
    )  # fmt: skip


def test_table_and_record_hold_the_same_scores(found: Comparison, tmp_path: Path) -> None:
    write_comparison(found, tmp_path)
    table = pd.read_csv(tmp_path / "compare.csv")
    record = json.loads((tmp_path / "compare.json").read_text(), parse_constant=pytest.fail)
    assert table["method"].tolist() == [row["method"] for row in record["methods"]] == ["pixel-cm", "majority"]
    assert record["verdict"]["recommended"] == "pixel-cm"
    assert record["advice"] == found.advice
    assert record["items"]["nats"]["majority"] == [30, 32, 31]
    assert record["items"]["dice"]["majority"] == [0.8, None, 0.9]
    assert record["pairwise"]["nats_per_item"][0][1] == 9
    assert record["settings"] == {"max_epochs": 3}


def test_the_page_shows_the_advice_and_escapes_what_others_wrote(found: Comparison, tmp_path: Path) -> None:
    page = write_comparison(found, tmp_path).read_text(encoding="utf-8")
    assert "pixel-cm · annotruth comparison" in page
    assert "&lt;b&gt;careful&lt;/b&gt;" in page
    assert "Agreement of seeds" in page
    assert "Dice, known truth" in page
    assert "http" not in page.split("</style>")[1].replace("http-equiv", "")


def test_a_single_seed_without_truth_makes_a_page_without_these_columns(found: Comparison, tmp_path: Path) -> None:
    from dataclasses import replace

    page = write_comparison(replace(found, agreement=None, known=None, warned={}), tmp_path)
    assert "Agreement of seeds" not in page.read_text(encoding="utf-8")
    assert (tmp_path / "compare.png").read_bytes().startswith(b"\x89PNG")
