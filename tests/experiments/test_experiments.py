"""The runner of experiments, and the demo in miniature."""

import json

import pytest

from annotruth.experiments import EXPERIMENTS, digits, run_experiment, table
from annotruth.experiments import demo as demo_module
from annotruth.experiments.demo import run_demo
from annotruth.experiments.table import Experiment, Row


def tiny_task(setting, seed, train=16, test=6):
    return digits.digits_task(setting, seed, train, test)


@pytest.fixture
def tiny():
    return Experiment(
        name="tiny",
        title="A tiny table",
        task=lambda setting, seed, quick: tiny_task(setting, seed),
        settings=("dense", "one-label"),
        rows=(Row("clean"), Row("pixel-cm", {"trace_weight": 0.0}, name="without trace")),
        seeds=(0, 1),
        training={"max_epochs": 1},
        quick={"batch_size": 8},
        paper={("dense", "clean"): {"dice": 0.9}},
        notes=("Digits are few.",),
    )


def test_a_table_names_rows_seeds_settings_and_where_it_was_made(tiny, tmp_path):
    made = run_experiment(tiny, tmp_path)
    stored = json.loads((tmp_path / "tiny.json").read_text())
    assert stored == json.loads(json.dumps(made))
    assert [(row["setting"], row["method"]) for row in stored["rows"]] == [
        ("dense", "clean"), ("dense", "without trace"), ("one-label", "clean"), ("one-label", "without trace"),
    ]  # fmt: skip
    first = stored["rows"][0]
    assert first["seeds"] == [0, 1]
    assert first["paper"] == {"dice": 0.9}
    assert first["dice"]["mean"] == pytest.approx(sum(first["dice"]["each"]) / 2, abs=1e-4)
    assert {"mean", "sd", "each"} == set(first["cm_rmse"])
    assert first["wall_time"]["mean"] > 0
    assert stored["training"] == {"max_epochs": 1}
    assert stored["environment"]["date"]
    text = (tmp_path / "tiny.md").read_text()
    assert "annotruth reproduce tiny" in text
    assert "Digits are few." in text
    assert (tmp_path / "tiny.png").stat().st_size > 1000


def test_a_run_that_was_cut_off_goes_on_without_training_anew(tiny, tmp_path, monkeypatch):
    run_experiment(tiny, tmp_path, seeds=[0])
    trained = []
    score = table._score
    monkeypatch.setattr(
        table, "_score", lambda task, row, seed, training: trained.append(seed) or score(task, row, seed, training)
    )
    run_experiment(tiny, tmp_path)
    assert set(trained) == {1}
    run_experiment(tiny, tmp_path)
    assert len(trained) == 4


def test_quick_takes_one_seed_and_a_name_of_its_own(tiny, tmp_path):
    made = run_experiment(tiny, tmp_path, quick=True)
    assert made["experiment"] == "tiny-quick"
    assert made["rows"][0]["seeds"] == [0]
    assert made["training"] == {"max_epochs": 1, "batch_size": 8}


def test_the_demo_writes_scores_model_and_report(tmp_path, monkeypatch):
    monkeypatch.setattr(demo_module, "digits_task", tiny_task)
    monkeypatch.setattr(demo_module, "TRAINING", {"max_epochs": 1})
    told = []
    scores = run_demo(tmp_path, progress=False, tell=told.append)
    assert json.loads((tmp_path / "scores.json").read_text()) == scores
    assert set(scores) == {"dense", "one-label"}
    for methods in scores.values():
        assert set(methods) == {"clean", "pixel-cm", "majority", "mean"}
        assert all(set(row) == {"dice", "cm_rmse"} for row in methods.values())
    assert "pixel-cm" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "model.annotruth").is_file()
    assert len(told) == 7


def test_every_experiment_is_known_by_its_name_and_repeats_over_seeds():
    assert "demo-seeds" in EXPERIMENTS
    for name, experiment in EXPERIMENTS.items():
        assert experiment.name == name
        assert len(experiment.seeds) >= 3
