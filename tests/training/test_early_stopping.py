"""When to stop is decided by held-out noisy labels, never by the truth."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from annotruth import Annotations
from annotruth.training.module import MethodModule

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")


def say(monkeypatch: pytest.MonkeyPatch, losses: list[float]) -> None:
    """Make validation find these losses, epoch by epoch."""

    def validation_step(self: MethodModule, batch: tuple[torch.Tensor, ...], index: int) -> None:
        self._log_held_out(torch.tensor(losses[self.current_epoch]), 1)

    monkeypatch.setattr(MethodModule, "validation_step", validation_step)


def test_training_stops_and_goes_back_to_the_best_epoch(cases, tiny, weights, same, tmp_path, monkeypatch):
    say(monkeypatch, [1.0, 0.5, 0.7, 0.6, 0.1, 0.1])
    model = tiny(max_epochs=6, patience=2, validation=0.25).fit(cases, run_folder=tmp_path)
    assert model.history_.val_loss.tolist() == pytest.approx([1.0, 0.5, 0.7, 0.6])
    best = torch.load(tmp_path / "checkpoints" / "best.ckpt", weights_only=True)
    assert best["epoch"] == 1
    assert same({name.removeprefix("model."): value for name, value in best["state_dict"].items()}, weights(model))


def test_warm_up_is_not_cut_short(cases, tiny, monkeypatch):
    """Before raters' errors are learnt, a plateau says nothing about how well they will be."""
    say(monkeypatch, [1.0 + epoch for epoch in range(10)])
    params = {"max_epochs": 10, "patience": 1, "validation": 0.25}
    assert len(tiny("mean", **params).fit(cases).history_) == 2
    # The loss of the epoch in which the warm-up ends is the first to count; the next is worse.
    model = tiny("global-cm", warmup=0.6, **params).fit(cases)
    assert model.module_.joint_from >= 0.6
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
