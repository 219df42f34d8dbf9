"""The queue as a table, a curve, words and files."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import annotruth as at
from annotruth.choosing.queue import Queue, next_labels
from annotruth.choosing.queue.advice import Unsettled
from annotruth.choosing.queue.fusing import SparseDawidSkene
from annotruth.choosing.queue.greedy import fill_budget
from annotruth.choosing.queue.posteriors import posteriors_of_votes
from annotruth.choosing.queue.result import COLUMNS, make_queue, pays_until
from annotruth.choosing.queue.scoring import InformationScores
from annotruth.errors import InputError
from annotruth.fusion.votes import Votes
from annotruth.io.names import from_cell

NAMES = ("=cmd()", "+1+1", "ann")


@pytest.fixture(scope="module")
def queue() -> Queue:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 60)
    answers = np.where(rng.random((60, 3)) < [0.9, 0.8, 0.6], truth[:, None], 1 - truth[:, None])
    answers[rng.random(answers.shape) < 0.5] = -1
    answers[0] = 0, 1, -1
    items = ["@home", *(f"item_{number}" for number in range(1, 60))]
    labels = at.Annotations.from_answers(answers, raters=NAMES, items=items, classes=["-a", "b"])
    labels = labels.take(np.flatnonzero((answers >= 0).any(axis=1)))
    return next_labels(SparseDawidSkene().fit(labels), labels, 20)


def test_ranks_gains_and_reasons(queue: Queue) -> None:
    table = queue.table[queue.table["action"] == "label"]
    assert tuple(queue.table.columns) == COLUMNS
    assert len(queue) == len(table) == 20
    assert table["rank"].tolist() == list(range(1, 21))
    assert (table["gain"] > 0).all()
    assert table["gain per cost"].tolist() == (table["gain"] / table["cost"]).tolist()
    for row in table.itertuples():
        assert f"{row.rater} recognises " in row.reason
    twice = table[table["item"].duplicated()]
    assert twice["reason"].str.contains("in addition to").all()


def test_the_curve_rises_and_its_band_holds_it(queue: Queue) -> None:
    curve = queue.curve
    assert curve["labels"].tolist() == list(range(21))
    assert (np.diff(curve["accuracy"]) >= -1e-9).all()
    assert ((curve["low"] <= curve["accuracy"]) & (curve["accuracy"] <= curve["high"])).all()
    assert f"{curve['accuracy'].iloc[-1]:.4f} then" in queue.summary[0]
    assert 0 < queue.pays_until <= 20


def test_files_that_no_spreadsheet_runs(queue: Queue, tmp_path: Path) -> None:
    files = queue.write(tmp_path / "queue.csv")
    assert [file.name for file in files] == ["queue.csv", "queue.curve.csv", "queue.curve.png"]
    assert files[2].read_bytes()[:4] == b"\x89PNG"
    with files[0].open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert tuple(head) == COLUMNS
    assert len(rows) == len(queue.table)
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row)
    assert [from_cell(row[3]) for row in rows] == queue.table["rater"].tolist()
    assert [from_cell(row[2]) for row in rows] == queue.table["item"].tolist()
    with pytest.raises(InputError, match=r"ends in \.csv"):
        queue.write(tmp_path / "queue.xlsx")


def test_when_labels_cease_to_pay() -> None:
    assert pays_until(np.array([]), np.array([])) == 0
    assert pays_until(np.zeros(30), np.ones(30)) == 0
    assert pays_until(np.full(30, 0.2), np.ones(30)) == 30
    assert pays_until(np.repeat([0.3, 0.0], [40, 60]), np.ones(100)) == 40
    dear = np.repeat([1.0, 100.0], 50)
    assert 40 <= pays_until(np.full(100, 0.2), dear) <= 50


def test_the_band_holds_what_happens_when_the_raters_are_known() -> None:
    held, good = 0, np.array([[0.8, 0.2], [0.25, 0.75]])
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, 150)
        answers = (rng.random((150, 6)) < good[truth, 1][:, None]).astype(int)
        seen = np.where(rng.random(answers.shape) < 0.4, answers, -1)
        votes = Votes.from_answers(
            at.Annotations.from_answers(seen, classes=2).answers, 150, 6, 2, raters=tuple("abcdef")
        )
        items = tuple(f"item_{number}" for number in range(150))
        known = posteriors_of_votes(votes, np.array([0.5, 0.5]), np.stack([good] * 6), items, ("no", "yes"))
        orders = fill_budget(InformationScores(known, np.ones(6)), np.ones(6), np.full(6, np.inf), 40)
        none = Unsettled(np.array([], dtype=int), np.array([], dtype=int), np.zeros(150))
        last = make_queue(known, orders, none, 40.0, np.ones(6)).curve.iloc[-1]
        for order in orders:
            seen[order.item, order.rater] = answers[order.item, order.rater]
        given = at.Annotations.from_answers(seen, classes=2).answers
        bought = Votes.from_answers(given, 150, 6, 2, raters=votes.raters)
        then = posteriors_of_votes(bought, known.prior, known.confusion, items, known.classes)
        held += last["low"] <= (then.posterior.argmax(axis=1) == truth).mean() <= last["high"]
    assert held >= 17
