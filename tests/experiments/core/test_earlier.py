"""Trainings that a finished table tells of are not run again."""

import json
from dataclasses import replace

import pytest

from annotruth.errors import InputError
from annotruth.experiments import run_experiment
from annotruth.experiments.core.experiment import Row


@pytest.fixture
def table(tiny, tmp_path):
    """A finished table alone, as it is committed, without the trainings that it was made of."""

    def make(experiment=tiny, **arguments):
        run_experiment(experiment, tmp_path, **arguments)
        for path in (tmp_path / ".tiny").iterdir():
            path.unlink()
        return json.loads((tmp_path / "tiny.json").read_text())

    return make


def edit(path, **changes):
    stored = json.loads(path.read_text())
    stored["environment"] = {**stored["environment"], **changes}
    for row in stored["rows"]:
        del row["dates"]  # as in tables of before
    path.write_text(json.dumps(stored))


def test_a_further_seed_is_all_that_is_trained(tiny, tmp_path, table, trained):
    table(replace(tiny, metrics=tiny.metrics[:2]), seeds=[0])
    edit(tmp_path / "tiny.json", date="2026-01-02")
    del trained[:]
    two = run_experiment(replace(tiny, metrics=tiny.metrics[:2]), tmp_path, extend=True)
    assert trained == [("clean", 1), ("without trace", 1)] * 2
    again = run_experiment(replace(tiny, metrics=tiny.metrics[:2]), tmp_path / "whole")
    for row, whole in zip(two["rows"], again["rows"]):
        assert row["seeds"] == whole["seeds"]
        assert row["settings"] == whole["settings"]
        assert row["dice"]["each"] == whole["dice"]["each"]
        assert row["cm_rmse"]["mean"] == pytest.approx(whole["cm_rmse"]["mean"], abs=1e-5)
        assert row["dates"] == ["2026-01-02", two["environment"]["date"]]
    assert two["data"] == again["data"]
    assert two["findings"] == again["findings"]
    assert "- Trained on 2026-01-02: clean, without trace.\n" in (tmp_path / "tiny.md").read_text()


def test_a_row_is_renewed_and_a_new_one_added_without_training_the_others(tiny, tmp_path, table, trained):
    table()
    del trained[:]
    more = replace(tiny, rows=(*tiny.rows, Row("majority")), seeds=(0,))
    made = run_experiment(more, tmp_path, renew=["without trace"])
    assert trained == [("without trace", 0), ("majority", 0)] * 2
    assert [row["method"] for row in made["rows"][:3]] == ["clean", "without trace", "majority"]


def test_what_was_asked_for_otherwise_is_trained_anew(tiny, tmp_path, table, trained):
    table()
    del trained[:]
    run_experiment(replace(tiny, rows=(tiny.rows[0], Row("pixel-cm", name="without trace"))), tmp_path, extend=True)
    assert {label for label, _ in trained} == {"without trace"}


def test_a_count_tells_of_each_seed_only_where_all_were_alike(tiny, tmp_path, table, trained):
    stored = table()
    alike = [(row["setting"], row["method"]) for row in stored["rows"] if row["swapped"] in (0, 2)]
    del trained[:]
    run_experiment(tiny, tmp_path, extend=True)
    assert len(trained) == 2 * (4 - len(alike))


def test_tables_that_new_rows_cannot_stand_beside_are_refused(tiny, tmp_path, table, trained):
    with pytest.raises(InputError, match=r"tiny\.json: there is no such table"):
        run_experiment(tiny, tmp_path, extend=True)
    table()
    del trained[:]
    with pytest.raises(InputError, match=r"no row pixel-c\. Its rows: clean, without trace"):
        run_experiment(tiny, tmp_path, renew=["pixel-c"])
    edit(tmp_path / "tiny.json", python="3.10.1")
    with pytest.raises(InputError, match=r"other python \(3\.10\.1, here"):
        run_experiment(tiny, tmp_path, extend=True)
    assert not trained
