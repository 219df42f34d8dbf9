"""Checkpoints outlast kills, full disks and moves, and nothing in a bad one is believed."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from annotruth import Annotations, Segmenter
from annotruth.errors import AnnotruthError, InputError
from annotruth.training import checkpoints
from annotruth.training.checkpoints import CheckpointWarning, WholeCheckpoints

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")
Make = Callable[..., Segmenter]
SETTINGS: dict[str, Any] = {"method": "mean", "validation": 0.25, "max_epochs": 3}


class Killed(BaseException):
    """As if the process ended here."""


@pytest.fixture(scope="module")
def whole(cases: Annotations, tiny: Make, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Segmenter]:
    folder = tmp_path_factory.mktemp("whole")
    return folder, tiny(**SETTINGS).fit(cases, run_folder=folder)


def cut_off(cases: Annotations, model: Segmenter, folder: Path, monkeypatch: pytest.MonkeyPatch, epochs: int) -> None:
    """Train until the last state of an epoch is to be written, and end there with the file half-written."""
    real, saved = checkpoints.sync, []

    def sync(path: Path) -> None:
        saved.append(path)
        if len(saved) > 2 * epochs:
            path.write_bytes(path.read_bytes()[:100])
            raise Killed
        real(path)

    with monkeypatch.context() as patched:
        patched.setattr(checkpoints, "sync", sync)
        with pytest.raises(Killed):
            model.fit(cases, run_folder=folder)


def test_a_checkpoint_is_written_beside_its_final_name_and_not_in_the_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "no such folder"))
    WholeCheckpoints().save_checkpoint({"a": 1}, tmp_path / "run" / "last.ckpt")
    assert torch.load(tmp_path / "run" / "last.ckpt", weights_only=True) == {"a": 1}


def test_a_kill_while_a_checkpoint_is_written_leaves_the_one_before(cases, tiny, whole, tmp_path, monkeypatch, same):
    cut_off(cases, tiny(**SETTINGS), tmp_path / "run", monkeypatch, epochs=2)
    kept = torch.load(tmp_path / "run" / "checkpoints" / "last.ckpt", weights_only=True)
    assert kept["epoch"] == 1
    again = tiny(**SETTINGS).fit(cases, run_folder=tmp_path / "run", resume=True)
    assert same(again.module_.state_dict(), whole[1].module_.state_dict())


def test_a_full_disk_is_one_sentence_and_leaves_the_checkpoint_before(cases, tiny, tmp_path, monkeypatch):
    real, saved = checkpoints.sync, []

    def sync(path: Path) -> None:
        saved.append(path)
        if len(saved) > 2:
            raise OSError(28, "No space left on device")
        real(path)

    monkeypatch.setattr(checkpoints, "sync", sync)
    with pytest.raises(AnnotruthError, match=r"could not be written: No space left.*last good checkpoint is"):
        tiny(**SETTINGS).fit(cases, run_folder=tmp_path)
    assert torch.load(tmp_path / "checkpoints" / "last.ckpt", weights_only=True)["epoch"] == 0
    assert not list((tmp_path / "checkpoints").glob(".*"))


@pytest.mark.parametrize("damage", [b"", b"PK", None])
def test_resuming_falls_back_to_the_checkpoint_before_a_damaged_one(cases, tiny, whole, tmp_path, same, damage):
    shutil.copytree(whole[0], tmp_path / "run")
    last = tmp_path / "run" / "checkpoints" / "last.ckpt"
    last.unlink() if damage is None else last.write_bytes(damage)
    model = tiny(**SETTINGS)
    if damage is None:  # killed between two renames
        model.fit(cases, run_folder=tmp_path / "run", resume=True)
    else:
        with pytest.warns(CheckpointWarning, match=r"last.ckpt is damaged.*goes on from .*previous.ckpt"):
            model.fit(cases, run_folder=tmp_path / "run", resume=True)
    assert same(model.module_.state_dict(), whole[1].module_.state_dict())


def test_a_moved_run_goes_on_with_its_own_weights(cases, tiny, whole, tmp_path, monkeypatch, same):
    cut_off(cases, tiny(**SETTINGS), tmp_path / "one", monkeypatch, epochs=2)
    (tmp_path / "one").rename(tmp_path / "two")
    tiny(**{**SETTINGS, "seed": 5}).fit(cases, run_folder=tmp_path / "one")
    again = tiny(**SETTINGS).fit(cases, run_folder=tmp_path / "two", resume=True)
    assert same(again.module_.state_dict(), whole[1].module_.state_dict())


def test_checkpoints_name_no_folder(whole):
    content = torch.load(whole[0] / "checkpoints" / "last.ckpt", weights_only=True)
    assert str(whole[0]) not in repr({name: part for name, part in content.items() if name != "state_dict"})


def test_the_best_weights_of_another_run_are_refused(cases, tiny, whole, tmp_path):
    shutil.copytree(whole[0], tmp_path / "run")
    tiny(**{**SETTINGS, "seed": 5}).fit(cases, run_folder=tmp_path / "other")
    shutil.copy(tmp_path / "other" / "checkpoints" / "best.ckpt", tmp_path / "run" / "checkpoints" / "best.ckpt")
    with pytest.raises(AnnotruthError, match=r"best.ckpt belongs to another run"):
        tiny(**SETTINGS).fit(cases, run_folder=tmp_path / "run", resume=True)


def test_a_checkpoint_of_another_run_than_run_json_is_refused(cases, tiny, whole, tmp_path):
    shutil.copytree(whole[0], tmp_path / "run")
    (tmp_path / "run" / "run.json").write_text('{"id": "somebody else"}')
    with pytest.raises(InputError, match=r"belongs to another run than .*run.json"):
        tiny(**SETTINGS).fit(cases, run_folder=tmp_path / "run", resume=True)


def _nan(content: dict[str, Any]) -> None:
    next(iter(content["state_dict"].values())).fill_(float("nan"))


def _giant(content: dict[str, Any]) -> None:
    content["huge"] = torch.zeros(1).expand(10**6, 10**6)


def _infinite(content: dict[str, Any]) -> None:
    content["state_dict"]["model.truth.network.decoder.heads.0.conv.conv.bias"].fill_(float("inf"))


TAMPERED: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "weights missing": (lambda c: c.pop("state_dict"), "look at state_dict"),
    "a weight missing": (lambda c: c["state_dict"].popitem(), "of another network"),
    "another shape": (lambda c: c["state_dict"].update({next(iter(c["state_dict"])): torch.zeros(7)}), "of another"),
    "NaN": (_nan, "are NaN or infinite"),
    "infinity": (_infinite, "are NaN or infinite"),
    "more than the file": (_giant, "more numbers than it holds"),
    "epoch as a word": (lambda c: c.update(epoch="two"), "look at epoch"),
    "no loops": (lambda c: c.update(loops={}), "cannot go on from it|damaged"),
    "callbacks empty": (lambda c: c.update(callbacks={n: {} for n in c["callbacks"]}), "look at callbacks"),
    "optimiser of another kind": (
        lambda c: c.update(optimizer_states=[{"state": 3, "param_groups": 3}]),
        "cannot go on from it",
    ),
    "no schedule": (lambda c: c.update(lr_schedulers=[{}]), "look at lr_schedulers"),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_tampered_checkpoint_is_one_clear_error(cases, tiny, whole, tmp_path, what):
    change, words = TAMPERED[what]
    shutil.copytree(whole[0], tmp_path / "run")
    path = tmp_path / "run" / "checkpoints" / "last.ckpt"
    (path.parent / "previous.ckpt").unlink()
    content = torch.load(path, weights_only=True)
    change(content)
    torch.save(content, path)
    with pytest.raises(InputError, match=words):
        tiny(**SETTINGS).fit(cases, run_folder=tmp_path / "run", resume=True)


def test_an_archive_that_swells_is_refused_unread(cases, tiny, whole, tmp_path):
    shutil.copytree(whole[0], tmp_path / "run")
    for name in ("last.ckpt", "previous.ckpt"):
        with zipfile.ZipFile(tmp_path / "run" / "checkpoints" / name, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("archive/data/0", b"\0" * 10**7)
    with pytest.raises(InputError, match="unpacks to more than it is"):
        tiny(**SETTINGS).fit(cases, run_folder=tmp_path / "run", resume=True)


def test_what_a_killed_training_left_half_written_is_removed(cases, tiny, tmp_path):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / ".annotruth-0.ckpt").write_bytes(b"half")
    tiny(max_epochs=1).fit(cases, run_folder=tmp_path)
    assert not list((tmp_path / "checkpoints").glob(".*"))


def test_the_last_state_is_kept_even_after_epochs_that_were_not_the_best(cases, tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("annotruth.training.module.MethodModule._log_held_out", _log_worse_and_worse)
    tiny(**SETTINGS).fit(cases, run_folder=tmp_path)
    epochs = {
        name: torch.load(tmp_path / "checkpoints" / f"{name}.ckpt", weights_only=True)["epoch"]
        for name in ("best", "last")
    }
    assert epochs == {"best": 0, "last": 2}


def _log_worse_and_worse(self: Any, likelihood: Any, n_labels: int, later_is_better: bool = False) -> None:
    self.log("val_loss", likelihood, batch_size=n_labels)
    self.log("judged", float(self.current_epoch), batch_size=n_labels)


def test_permissions_follow_the_umask(cases, tiny, tmp_path):
    before = os.umask(0o027)
    try:
        model = tiny(max_epochs=1).fit(cases, run_folder=tmp_path)
        model.save(tmp_path / "model.annotruth")
    finally:
        os.umask(before)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in files} == {path.name: "0o640" for path in files}
