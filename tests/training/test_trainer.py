"""The course of a training: who trains together, when it stops, and what it leaves on disk however it ends."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from annotruth import Annotations
from annotruth.errors import AnnotruthError, InputError
from annotruth.training.module import MethodModule
from annotruth.training.trainer import Processes

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")


def test_who_is_first(monkeypatch):
    assert Processes(2).is_first
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert not Processes(2).is_first
    assert not Processes(nodes=2).is_first
    assert Processes().is_first  # trains by itself, whatever else runs


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"devices": 0}, "devices must be a whole number from 1, not 0"),
        ({"nodes": 1.5}, "nodes must be a whole number from 1, not 1.5"),
        ({"strategy": "teamwork"}, "strategy"),
        ({"devices": 3, "batch_size": 2}, "at least 3, not 2"),
        ({"devices": 2, "accelerator": "gpu"}, "accelerator 'gpu' cannot be used"),
    ],
)
def test_impossible_processes_are_refused(cases, tiny, params, words):
    with pytest.raises(InputError, match=words):
        tiny(**params).fit(cases)


@pytest.fixture(scope="module")
def trained(cases, tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "deep" / "run"
    return folder, tiny("pixel-cm", validation=0.25, max_epochs=3).fit(cases, run_folder=folder)


def test_checkpoints_and_logs(trained):
    folder, model = trained
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == [
        "best.ckpt",
        "last.ckpt",
        "previous.ckpt",
    ]
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
    annotations = make_cases(13)
    # An epoch has three steps, 13 or 10 items in batches of 4: this is the second one of the second epoch.
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


def say(monkeypatch: pytest.MonkeyPatch, losses: list[float]) -> None:
    """Make validation find these losses, epoch by epoch."""

    def validation_step(self: MethodModule, batch: tuple[torch.Tensor, ...], index: int) -> None:
        self._log_held_out(torch.tensor(losses[self.current_epoch]), 1)

    monkeypatch.setattr(MethodModule, "validation_step", validation_step)


def test_training_stops_and_goes_back_to_the_best_epoch(cases, tiny, weights, same, tmp_path, monkeypatch):
    """It does not stop before the learning rate falls, in the seventh of ten epochs, whatever losses there were."""
    losses = [1.0, 0.5, 0.7, 0.7, 0.7, 0.7, 0.7, 0.8, 0.8, 0.1]
    say(monkeypatch, losses)
    model = tiny(max_epochs=10, patience=2, validation=0.25).fit(cases, run_folder=tmp_path)
    assert model.history_.val_loss.tolist() == pytest.approx(losses[:9])
    best = torch.load(tmp_path / "checkpoints" / "best.ckpt", weights_only=True)
    assert best["epoch"] == 1
    assert same({name.removeprefix("model."): value for name, value in best["state_dict"].items()}, weights(model))


@pytest.mark.parametrize("method", ["majority", "staple"])
def test_plain_networks_keep_their_last_weights(method, cases, tiny, tmp_path):
    """Too few held-out masks are there to choose by; training goes on whatever they say."""
    model = tiny(method, max_epochs=5, patience=1, validation=0.25, learning_rate=0.5).fit(cases, run_folder=tmp_path)
    assert len(model.history_) == 5
    assert torch.load(tmp_path / "checkpoints" / "best.ckpt", weights_only=True)["epoch"] == 4


def test_warm_up_is_not_cut_short(cases, tiny, monkeypatch):
    """Before raters' errors are learnt, a plateau says nothing about how well they will be."""
    say(monkeypatch, [1.0 + epoch for epoch in range(10)])
    params = {"max_epochs": 10, "patience": 1, "validation": 0.25}
    assert len(tiny("mean", **params).fit(cases).history_) == 8
    # The loss of the epoch in which the warm-up ends is the first to count; the next is worse.
    model = tiny("global-cm", warmup=0.7, **params).fit(cases)
    assert model.module_.joint_from >= 0.7
    assert len(model.history_) == min(int(10 * model.module_.joint_from) + 2, 10)


def test_validation_loss_is_the_mean_over_noisy_labels(make_cases, tiny):
    """However labels are spread over batches of the held-out items."""
    annotations = make_cases(21, keep=2)
    masks = annotations.masks.copy()
    masks[::3, :, :9] = 255  # some items have few labels
    thinned = Annotations.from_masks(masks, annotations.images)
    model = tiny("mean", validation=1 / 3, batch_size=4, max_epochs=1).fit(thinned)
    held_out = thinned.split([2 / 3, 1 / 3], seed=model.seed)[1]
    assert len(held_out) == 7
    posterior = model.predict_proba(held_out.images)
    observed = held_out.masks
    given = observed != 255
    said = np.take_along_axis(posterior, np.where(given, observed, 0), axis=1)
    assert model.history_.val_loss.iloc[0] == pytest.approx(-np.log(said[given]).mean(), rel=1e-4)


def test_the_last_epoch_counts_where_nothing_is_held_out(cases, tiny, weights, same, tmp_path, monkeypatch):
    """The training loss is no judge: it falls as labels are learnt by heart, and is not comparable across warm-up."""
    log = MethodModule.log

    def ever_worse(self: MethodModule, name: str, value: torch.Tensor, **how: object) -> None:
        log(self, name, value.detach() + 10.0 * self.current_epoch, **how)

    model = tiny(validation=0, max_epochs=3).fit(cases, run_folder=tmp_path)
    last = torch.load(tmp_path / "checkpoints" / "last.ckpt", weights_only=True)
    assert last["epoch"] == 2
    assert same({name.removeprefix("model."): value for name, value in last["state_dict"].items()}, weights(model))
    assert model.history_.val_loss.isna().all()
    monkeypatch.setattr(MethodModule, "log", ever_worse)
    again = tiny(validation=0, max_epochs=3).fit(cases)
    assert again.history_.train_loss.is_monotonic_increasing
    assert same(weights(again), weights(model))
