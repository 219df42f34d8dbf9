"""The demo in miniature."""

import json

import pytest

from annotruth.experiments import demo as demo_module
from annotruth.experiments.core.experiment import Scale
from annotruth.experiments.demo import run_demo


@pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")  # one epoch of few digits is no training
def test_the_demo_writes_scores_model_and_report(tmp_path, monkeypatch):
    monkeypatch.setattr(demo_module, "SCALE", Scale({"train": 16, "test": 6}, {"max_epochs": 1}))
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
