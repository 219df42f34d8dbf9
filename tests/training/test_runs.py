"""Runs as the command line makes them: begun, gone on with, refused."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from annotruth import Annotations
from annotruth.errors import InputError
from annotruth.training import load_model
from annotruth.training.folds import hold_out
from annotruth.training.runs import make_model, open_run, open_runs, read_cases, start_folds, start_run, train_run

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


def test_runs_of_all_folds_lie_side_by_side(tmp_path):
    params = {"method": "mean", "fold": 0, "folds": 3}
    runs = start_folds(tmp_path, tmp_path / "cases", params)
    assert [run.folder.name for run in runs] == ["fold_0", "fold_1", "fold_2"]
    assert [run.params["fold"] for run in runs] == [0, 1, 2]
    assert open_runs(tmp_path) == runs
    assert open_runs(tmp_path / "fold_2") == runs[2:]
    with pytest.raises(InputError, match=r"holds 3 folds, each a run of its own; name one, as .*fold_0"):
        open_run(tmp_path)
    for start in (start_run, start_folds):
        with pytest.raises(InputError, match="already holds a run; go on with --resume"):
            start(tmp_path, tmp_path / "cases", params)
    (tmp_path / "fold_1" / "run.json").unlink()
    with pytest.raises(InputError, match=r"holds 2 of 3 folds \(fold_0, fold_2\)"):
        open_runs(tmp_path)


def test_overwriting_leaves_no_fold_of_an_earlier_run(tmp_path):
    start_folds(tmp_path, tmp_path / "cases", {"folds": 4})
    (tmp_path / "fold_3" / "thesis.txt").write_text("mine")
    start_folds(tmp_path, tmp_path / "cases", {"folds": 2}, overwrite=True)
    assert len(open_runs(tmp_path)) == 2
    assert [path.name for path in (tmp_path / "fold_3").iterdir()] == ["thesis.txt"]
    start_run(tmp_path, tmp_path / "cases", {}, overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fold_3", "run.json"]
    start_folds(tmp_path, tmp_path / "cases", {"folds": 2}, overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fold_0", "fold_1", "fold_3"]


def test_a_fold_tells_what_it_held_out(cases, tmp_path):
    rng = np.random.default_rng(0)
    table = Annotations.from_answers(rng.integers(0, 2, (9, 3)), images=rng.normal(size=(9, 2)))
    for data in (cases, table):
        params = {"method": "mean", "max_epochs": 1, "folds": 3, "fold": 1}
        run = start_run(tmp_path / data.kind, tmp_path / "cases", params)
        model = make_model(data, params, progress=False)
        train_run(run, model, read_cases(model, data))
        told = pd.read_csv(run.folder / "held_out.csv")
        held_out = hold_out(data, 1, 3)[1]
        assert tuple(told.item) == held_out.items
        if data.kind == "labels":
            np.testing.assert_allclose(told.filter(like="probability"), model.predict_proba(held_out), rtol=1e-6)
