"""The same seed gives the same bits, cut off and resumed or not, and leaves the user's random numbers alone."""

from __future__ import annotations

import random
import signal
import warnings

import numpy as np
import pandas as pd
import pytest
import torch

from annotruth import Annotations
from annotruth.errors import InputError
from annotruth.parallel.signals import Stopped
from annotruth.training.checkpoints import read_checkpoint
from annotruth.training.module import MethodModule

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")

LAST = -1
EVERYTHING_RANDOM = {"patch_size": (8, 8), "augment": True, "max_epochs": 4}


@pytest.fixture(scope="module", params=["mean", "pixel-cm"])
def method(request):
    return request.param


@pytest.fixture(scope="module", params=[0.0, 0.25])
def validation(request):
    return request.param


@pytest.fixture(scope="module")
def uninterrupted(cases, tiny, method, validation):
    return tiny(method, validation=validation, **EVERYTHING_RANDOM).fit(cases)


def test_same_seed_same_bits(cases, tiny, weights, same, uninterrupted, method, validation):
    torch.manual_seed(99)  # what the user drew before must not matter
    again = tiny(method, validation=validation, **EVERYTHING_RANDOM).fit(cases)
    assert same(weights(again), weights(uninterrupted))
    np.testing.assert_array_equal(again.predict_proba(cases.images), uninterrupted.predict_proba(cases.images))
    pd.testing.assert_frame_equal(again.history_, uninterrupted.history_)
    np.testing.assert_array_equal(again.confusion_, uninterrupted.confusion_)


def test_fitting_again_starts_afresh(cases, tiny, weights, same):
    model = tiny("global-cm").fit(cases)
    first = weights(model)
    assert same(first, weights(model.fit(cases)))


def test_other_seed_other_weights(cases, tiny, weights, same):
    models = [tiny("global-cm", seed=seed, max_epochs=1).fit(cases) for seed in (0, 1)]
    assert not same(weights(models[0]), weights(models[1]))


@pytest.mark.parametrize("deterministic", [False, True])
def test_the_users_random_numbers_and_flags_stay(cases, tiny, tmp_path, deterministic):
    torch.use_deterministic_algorithms(deterministic, warn_only=deterministic)
    try:
        before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()  # noqa: NPY002
        model = tiny("pixel-cm", max_epochs=1).fit(cases)
        model.predict(cases.images[:1])
        model.load(model.save(tmp_path / "model.annotruth"))
        assert torch.equal(before[0], torch.get_rng_state())
        assert before[1] == random.getstate()
        np.testing.assert_array_equal(before[2], np.random.get_state()[1])  # noqa: NPY002
        assert torch.are_deterministic_algorithms_enabled() == deterministic
        assert torch.is_deterministic_algorithms_warn_only_enabled() == deterministic
    finally:
        torch.use_deterministic_algorithms(False)


def cut_off(monkeypatch: pytest.MonkeyPatch, epoch: int, batch: int) -> None:
    """Press Ctrl-C at a batch of an epoch."""
    step = MethodModule.training_step

    def interrupted(self: MethodModule, data: object, index: int) -> torch.Tensor:
        if (self.current_epoch, index) == (epoch, batch):
            raise KeyboardInterrupt
        return step(self, data, index)

    monkeypatch.setattr(MethodModule, "training_step", interrupted)


@pytest.mark.parametrize("at", [(1, 0), (2, 1)])
def test_resumed_training_ends_with_the_same_bits(
    cases, tiny, weights, same, uninterrupted, method, validation, tmp_path, at
):
    model = tiny(method, validation=validation, **EVERYTHING_RANDOM)
    with pytest.MonkeyPatch.context() as patch:
        cut_off(patch, *at)
        with pytest.raises(KeyboardInterrupt):
            model.fit(cases, run_folder=tmp_path)
    assert not torch.are_deterministic_algorithms_enabled()
    model = tiny(method, validation=validation, **EVERYTHING_RANDOM).fit(cases, run_folder=tmp_path, resume=True)
    assert same(weights(model), weights(uninterrupted))
    pd.testing.assert_frame_equal(model.history_, uninterrupted.history_)
    np.testing.assert_array_equal(model.confusion_, uninterrupted.confusion_)
    logged = pd.read_csv(tmp_path / "logs" / "metrics.csv")
    pd.testing.assert_frame_equal(logged, model.history_, check_dtype=False)


def ask_to_end(monkeypatch: pytest.MonkeyPatch, epoch: int, batch: int) -> list[int]:
    """Send SIGTERM during a batch of an epoch; give the steps that are taken."""
    step, taken = MethodModule.training_step, []

    def asked(self: MethodModule, data: object, index: int) -> torch.Tensor:
        taken.append(self.global_step)
        if self.current_epoch == epoch and (index == batch or (batch == LAST and self.trainer.is_last_batch)):
            signal.raise_signal(signal.SIGTERM)
        return step(self, data, index)

    monkeypatch.setattr(MethodModule, "training_step", asked)
    return taken


@pytest.mark.parametrize("at", [(0, 0), (2, 1), (3, LAST)])
def test_the_step_at_which_a_training_is_asked_to_end_is_not_lost(
    cases, tiny, weights, same, method, uninterrupted, validation, tmp_path, at
):
    model = tiny(method, validation=validation, **EVERYTHING_RANDOM)
    with pytest.MonkeyPatch.context() as patch:
        taken = ask_to_end(patch, *at)
        with pytest.raises(Stopped):
            model.fit(cases, run_folder=tmp_path)
    assert read_checkpoint(tmp_path / "checkpoints" / "last.ckpt").global_step == len(taken)
    model = tiny(method, validation=validation, **EVERYTHING_RANDOM).fit(cases, run_folder=tmp_path, resume=True)
    assert same(weights(model), weights(uninterrupted))
    pd.testing.assert_frame_equal(model.history_, uninterrupted.history_)


def test_a_training_stopped_twice_in_an_epoch_goes_on_with_the_same_chance(cases, tiny, weights, same, tmp_path):
    settings = {"method": "mrprism", "batch_size": 2, "validation": 0.0, "max_epochs": 2}
    whole = tiny(**settings).fit(cases)
    for at in ((1, 1), (1, 3)):
        with pytest.MonkeyPatch.context() as patch:
            ask_to_end(patch, *at)
            with pytest.raises(Stopped):
                tiny(**settings).fit(cases, run_folder=tmp_path, resume=at == (1, 3))
    again = tiny(**settings).fit(cases, run_folder=tmp_path, resume=True)
    assert same(weights(again), weights(whole))
    pd.testing.assert_frame_equal(again.history_, whole.history_)


def test_resuming_a_finished_training_gives_its_model(cases, tiny, weights, same, tmp_path):
    model = tiny("global-cm", validation=0.25).fit(cases, run_folder=tmp_path)
    again = tiny("global-cm", validation=0.25).fit(cases, run_folder=tmp_path, resume=True)
    assert same(weights(model), weights(again))
    pd.testing.assert_frame_equal(model.history_, again.history_)


def test_resuming_where_nothing_was_begun(cases, tiny, tmp_path):
    with pytest.raises(InputError, match="no checkpoint to resume from"):
        tiny().fit(cases, run_folder=tmp_path, resume=True)
    assert not any(tmp_path.iterdir())
    with pytest.raises(InputError, match="run_folder"):
        tiny().fit(cases, resume=True)


@pytest.fixture(scope="module")
def run(cases, tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    tiny("global-cm").fit(cases, run_folder=folder)
    return folder


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"max_epochs": 7}, r"another max_epochs \(then 2, now 7\)"),
        ({"seed": 5}, "seed"),
        ({"trace_weight": 0.5}, "trace_weight"),
        ({"learning_rate": 0.5}, "learning_rate"),
        ({"batch_size": 3}, "batch_size"),
        ({"validation": 0.5}, "training items"),
        ({"method": "pixel-cm"}, r"another method \(then global-cm, now pixel-cm\)"),
        ({"method": "mean"}, r"another method \(then global-cm, now mean\), another"),
    ],
)
def test_resuming_with_other_settings_is_refused(cases, tiny, run, params, words):
    before = (run / "checkpoints" / "last.ckpt").read_bytes()
    with pytest.raises(InputError, match=words):
        tiny(**{"method": "global-cm", **params}).fit(cases, run_folder=run, resume=True)
    assert (run / "checkpoints" / "last.ckpt").read_bytes() == before


def test_settings_in_numpys_numbers_can_be_resumed(cases, tiny, tmp_path):
    params = {
        "seed": np.int64(3), "max_epochs": np.int32(2), "batch_size": np.int64(4), "learning_rate": np.float64(1e-3),
        "trace_weight": np.float32(0.25),
    }  # fmt: skip
    tiny("global-cm", **params).fit(cases, run_folder=tmp_path)
    model = tiny("global-cm", **params).fit(cases, run_folder=tmp_path, resume=True)
    assert len(model.history_) == 2


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", "half"])
def test_a_damaged_checkpoint_is_refused(cases, tiny, run, tmp_path, content):
    whole = (run / "checkpoints" / "last.ckpt").read_bytes()
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "last.ckpt").write_bytes(whole[: len(whole) // 2] if content == "half" else content)
    with pytest.raises(InputError, match=r"last\.ckpt is damaged or no checkpoint of annotruth"):
        tiny("global-cm").fit(cases, run_folder=tmp_path, resume=True)


@pytest.fixture(scope="module")
def begun(cases, tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tiny("pixel-cm").fit(cases, run_folder=folder)
    return folder


@pytest.mark.parametrize(
    ("method", "names", "words"),
    [
        ("mean", {}, r"another method \(then pixel-cm, now mean\)"),
        ("pixel-cm", {"classes": ["a", "b"]}, r"another list of classes \(then \['0', '1'\], now \['a', 'b'\]"),
        ("pixel-cm", {"classes": 3}, "another list of classes"),
        ("pixel-cm", {"raters": ["a", "b", "c"]}, "another list of raters"),
    ],
)  # fmt: skip
def test_a_checkpoint_of_something_else_is_not_resumed(begun, cases, tiny, method, names, words):
    other = Annotations.from_masks(cases.masks, cases.images, **{"raters": cases.raters, **names})
    with pytest.raises(InputError, match=words):
        tiny(method).fit(other, run_folder=begun, resume=True)
