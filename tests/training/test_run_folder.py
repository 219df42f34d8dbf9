"""What a training leaves on disk, when it ends well and when it does not."""

from __future__ import annotations

import json

import pandas as pd
import pytest
import torch
from torch import nn

from annotruth.errors import AnnotruthError, InputError
from annotruth.training import load_model
from annotruth.training.runs import open_run, start_run, train_run

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")


@pytest.fixture(scope="module")
def trained(cases, tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "deep" / "run"
    return folder, tiny("pixel-cm", validation=0.25, max_epochs=3).fit(cases, run_folder=folder)


def test_checkpoints_and_logs(trained):
    folder, model = trained
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == ["best.ckpt", "last.ckpt"]
    logged = pd.read_csv(folder / "logs" / "metrics.csv")
    pd.testing.assert_frame_equal(logged, model.history_, check_dtype=False)
    assert model.history_.columns.tolist() == ["epoch", "train_loss", "val_loss"]
    assert model.history_.epoch.tolist() == [0, 1, 2]


def test_tensorboard_reads_the_losses(trained):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder, model = trained
    assert len(list((folder / "logs").glob("events.out.tfevents.*"))) == 1
    events = EventAccumulator(str(folder / "logs")).Reload()
    for name in ("train_loss", "val_loss"):
        assert [e.value for e in events.Scalars(name)] == pytest.approx(model.history_[name].tolist())


@pytest.mark.parametrize("name", ["best", "last"])
def test_checkpoints_hold_no_pickled_code(trained, name):
    checkpoint = torch.load(trained[0] / "checkpoints" / f"{name}.ckpt", weights_only=True)
    assert checkpoint["annotruth"]["method"] == "pixel-cm"


def test_the_model_has_the_best_weights(trained, weights, same):
    folder, model = trained
    state = torch.load(folder / "checkpoints" / "best.ckpt", weights_only=True)["state_dict"]
    assert same({name.removeprefix("model."): value for name, value in state.items()}, weights(model))


def test_without_a_folder_nothing_is_written(cases, tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    tiny().fit(cases)
    assert list(tmp_path.rglob("*")) == [tmp_path / "scratch"]


# -- trainings that break -----------------------------------------------------------------------------------------


class Breaking(nn.Module):
    """A network that fails at its n-th training step: its scores, or only its gradients, become NaN."""

    def __init__(self, step: int, how: str) -> None:
        super().__init__()
        self.scores = nn.Conv2d(1, 2, kernel_size=1)
        self.step, self.how = step, how
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        scores = self.scores(images)
        if not self.training:
            return scores
        self.steps += 1
        if self.steps < self.step:
            return scores
        if self.how == "loss":
            return scores * float("nan")
        return scores + (scores * 0).abs().sqrt()  # 0, with a gradient of 0 · ∞


@pytest.mark.parametrize("how", ["loss", "gradient"])
@pytest.mark.parametrize("validation", [0.0, 0.25])
def test_numbers_that_are_not_finite_stop_the_training(make_cases, tiny, tmp_path, how, validation):
    annotations = make_cases(12)
    # An epoch has three steps, 12 or 9 items in batches of 4: this is the second one of the second epoch.
    model = tiny(network=Breaking(5, how), validation=validation, max_epochs=4)
    with pytest.raises(AnnotruthError, match=f"The {how} became nan in epoch 1 on the cases item_") as stopped:
        model.fit(annotations, run_folder=tmp_path)
    assert not isinstance(stopped.value, InputError)
    named = [item for item in annotations.items if f"{item}," in str(stopped.value) or f"{item}." in str(stopped.value)]
    assert len(named) == 4
    last = tmp_path / "checkpoints" / "last.ckpt"
    assert f"The last good checkpoint is {last}" in str(stopped.value)
    state = torch.load(last, weights_only=True)
    assert state["epoch"] == 0
    assert all(torch.isfinite(value).all() for value in state["state_dict"].values())
    assert len(pd.read_csv(tmp_path / "logs" / "metrics.csv")) == 1


@pytest.mark.parametrize("folder", [False, True])
def test_no_checkpoint_is_promised_where_there_is_none(cases, tiny, tmp_path, folder):
    with pytest.raises(AnnotruthError, match="became nan in epoch 0") as stopped:
        tiny(network=Breaking(1, "loss")).fit(cases, run_folder=tmp_path if folder else None)
    assert "checkpoint" not in str(stopped.value)


# -- runs, as the command line makes them ---------------------------------------------------------------------------


def test_a_run_from_start_to_end(cases, tmp_path):
    params = {"method": "mean", "max_epochs": 1, "validation": 0.25}
    run = start_run(tmp_path / "run", tmp_path / "cases", params)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["params"] == params
    model = train_run(run, cases, progress=False)
    assert (load_model(run.model).predict(cases.images) == model.predict(cases.images)).all()
    opened = open_run(tmp_path / "run")
    assert opened == run
    train_run(opened, cases, resume=True, progress=False)
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
