"""Runs as the command line makes them: begun, gone on with, refused."""

from __future__ import annotations

import json

import pytest

from annotruth.errors import InputError
from annotruth.training import load_model
from annotruth.training.runs import make_model, open_run, read_cases, start_run, train_run

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")


def test_a_run_from_start_to_end(cases, tmp_path):
    params = {"method": "mean", "max_epochs": 1, "validation": 0.25}
    run = start_run(tmp_path / "run", tmp_path / "cases", params)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["params"] == params
    model = make_model(cases, params, progress=False)
    train_run(run, model, read_cases(model, cases))
    assert (load_model(run.model).predict(cases.images) == model.predict(cases.images)).all()
    opened = open_run(tmp_path / "run")
    assert opened == run
    again = make_model(cases, opened.params, progress=False)
    train_run(opened, again, read_cases(again, cases), resume=True)
    assert (again.predict(cases.images) == model.predict(cases.images)).all()
    with pytest.raises(InputError, match="already holds a run; go on with --resume"):
        start_run(tmp_path / "run", tmp_path / "cases", params)
    assert run.model.is_file()
    start_run(tmp_path / "run", tmp_path / "cases", params, overwrite=True)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["run.json"]


def test_a_folder_of_other_files_is_no_run(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="already holds files"):
        start_run(tmp_path, tmp_path, {})
    start_run(tmp_path, tmp_path, {}, overwrite=True)
    assert (tmp_path / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize("content", [None, "{", "{}"])
def test_no_run_or_a_damaged_one(tmp_path, content):
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(InputError, match="no run" if content is None else "damaged"):
        open_run(tmp_path)
