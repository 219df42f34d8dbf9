"""Two processes that share each batch learn what one process learns from the whole of it."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import distributed, nn

from annotruth import Annotations, Segmenter, load_model
from annotruth.errors import InputError
from annotruth.io import write_case_folder
from annotruth.training.batch_norm import shared_batch_norm
from annotruth.training.datasets import SharedBatches
from annotruth.training.trainer import Processes

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")

METHODS = {"mean": {}, "pixel-cm": {"warmup": 0.0}, "global-cm": {"warmup": 0.1}, "coarse-cm": {}}
EXACT = ["mean", "pixel-cm"]  # the loss is a mean over labels from the beginning; in a warm-up it is one over pixels
SCRIPT = f"""
import json
import sys
import warnings

import numpy as np

from annotruth import Annotations, Segmenter
from annotruth.errors import AnnotruthError


def fit(data, folder, devices, method, **params):
    annotations = Annotations.from_masks(data["masks"], images=data["images"], classes=2)
    return Segmenter(
        method, max_epochs=2, batch_size=5, validation=0.2, augment=True, accelerator="cpu", devices=devices,
        progress=False, **params,
    ).fit(annotations, run_folder=folder / method)


if __name__ == "__main__":
    from pathlib import Path

    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1])
    data = np.load(folder / "data.npz")
    for method, params in {METHODS}.items():
        model = fit(data, folder, 2, method, **params)
        model.save(folder / f"{{method}}-{{model._processes().is_first}}.annotruth")
    try:
        fit(data, folder / "diverged", 2, "mean", learning_rate=1e30)
    except AnnotruthError as error:
        (folder / f"error-{{model._processes().is_first}}.txt").write_text(str(error))
"""


@pytest.fixture(scope="module")
def sparse_cases(make_cases) -> Annotations:
    """14 items are trained on, in batches of 5, 5 and 4; of the processes' shares no two hold as many labels."""
    cases = make_cases(17, keep=2)
    masks = cases.masks.copy()
    masks[::3, :, :5] = 255
    return Annotations.from_masks(masks, images=cases.images)


def in_two_processes(*command: str) -> subprocess.CompletedProcess[str]:
    ours = {name: value for name, value in os.environ.items() if "RANK" not in name}
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=300, env={**ours, "OMP_NUM_THREADS": "1"}
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(sparse_cases, tmp_path_factory) -> Path:
    """What a script leaves behind that trains in two processes."""
    folder = tmp_path_factory.mktemp("ddp")
    (folder / "script.py").write_text(SCRIPT)
    np.savez(folder / "data.npz", masks=sparse_cases.masks, images=sparse_cases.images)
    done = in_two_processes(str(folder / "script.py"), str(folder))
    assert done.returncode == 0, done.stderr
    return folder


def in_one_process(folder: Path, run_folder: Path, method: str) -> Segmenter:
    fit = runpy.run_path(str(folder / "script.py"))["fit"]
    return fit(np.load(folder / "data.npz"), run_folder, 1, method, **METHODS[method])


def weights_that_matter(model: Segmenter) -> dict[str, torch.Tensor]:
    """All but the biases that a batch norm takes away again: nothing but rounding errors move them.

    They show in running means, and so in the best validation loss.
    """
    state = model.module_.state_dict()
    return {name: state[name] for name in state if not name.endswith(("conv.bias", "running_mean", "best"))}


@pytest.mark.parametrize("method", EXACT)
def test_two_processes_learn_what_one_does(folder, tmp_path, method):
    alone = in_one_process(folder, tmp_path, method)
    together = load_model(folder / f"{method}-True.annotruth")
    weights = weights_that_matter(together)
    for name, value in weights_that_matter(alone).items():
        torch.testing.assert_close(weights[name], value, rtol=0, atol=1e-4, msg=name)
    np.testing.assert_allclose(together.history_.train_loss, alone.history_.train_loss, rtol=1e-5)
    np.testing.assert_allclose(together.history_.val_loss, alone.history_.val_loss, rtol=1e-2)


def test_a_warm_up_goes_through_its_stages_in_step(folder, tmp_path):
    alone = in_one_process(folder, tmp_path, "global-cm")
    together = load_model(folder / "global-cm-True.annotruth")
    for stage in ("weighed_from", "joint_from"):
        assert getattr(together.module_, stage) == getattr(alone.module_, stage) < 1
    torch.testing.assert_close(together.module_.consensus.counts, alone.module_.consensus.counts, rtol=0.05, atol=5)
    np.testing.assert_allclose(together.history_.train_loss, alone.history_.train_loss, rtol=0.02)


def test_marks_are_counted_over_all_processes(folder, tmp_path):
    alone = in_one_process(folder, tmp_path, "coarse-cm")
    together = load_model(folder / "coarse-cm-True.annotruth")
    torch.testing.assert_close(together.module_.marking.marks, alone.module_.marking.marks, rtol=0.02, atol=2)


@pytest.mark.parametrize("method", METHODS)
def test_all_processes_end_with_the_same_model(folder, method):
    first, second = (load_model(folder / f"{method}-{first}.annotruth") for first in (True, False))
    others = second.module_.state_dict()
    assert all(torch.equal(value, others[name]) for name, value in first.module_.state_dict().items())
    np.testing.assert_array_equal(first.confusion_, second.confusion_)


@pytest.mark.parametrize("method", METHODS)
def test_files_are_written_once(folder, method):
    logs = pd.read_csv(folder / method / "logs" / "metrics.csv")
    assert logs.epoch.tolist() == [0, 1]
    assert len(list((folder / method / "logs").glob("events*"))) == 1
    assert {path.name for path in (folder / method / "checkpoints").iterdir()} == {"best.ckpt", "last.ckpt"}


def test_all_processes_stop_together_and_name_the_cases(folder):
    first, second = (folder / f"error-{which}.txt" for which in (True, False))
    assert first.read_text() == second.read_text()
    assert "The loss became nan in epoch 0 on the cases item_" in first.read_text()
    assert first.read_text().count("item_") > 3  # more than one process's share


def test_the_command_line_speaks_and_writes_once(sparse_cases, tmp_path):
    write_case_folder(tmp_path / "cases", sparse_cases)
    command = [str(Path(sys.executable).parent / "annotruth"), "train", str(tmp_path / "cases"), "--method", "mean"]
    command += ["-o", str(tmp_path / "run"), "--epochs", "1", "--batch-size", "6", "--accelerator", "cpu"]
    done = in_two_processes(*command, "--devices", "2", "--strategy", "ddp")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Model:") == 1
    assert load_model(tmp_path / "run" / "model.annotruth").devices == 2
    assert json.loads((tmp_path / "run" / "run.json").read_text())["params"]["strategy"] == "ddp"


@settings(max_examples=30, deadline=None)
@given(items=st.integers(1, 30), batch_size=st.integers(1, 9), processes=st.integers(1, 5))
def test_processes_share_every_batch(items, batch_size, processes):
    shares = [list(SharedBatches(range(items), batch_size, process, processes)) for process in range(processes)]
    whole = [list(range(items))[start : start + batch_size] for start in range(0, items, batch_size)]
    assert all(len(share) == len(whole) for share in shares)
    for step, batch in enumerate(whole):
        taken = [item for share in shares for item in share[step]]
        assert set(taken) == set(batch)
        assert all(share[step] for share in shares)
        if len(batch) >= processes:
            assert sorted(taken) == batch


@pytest.fixture
def one_process(tmp_path) -> Iterator[None]:
    store = distributed.FileStore(str(tmp_path / "store"), 1)
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.BatchNorm1d(3), (5, 3)),
        (nn.BatchNorm2d(3), (4, 3, 5, 6)),
        (nn.BatchNorm3d(3, momentum=None), (2, 3, 4, 5, 3)),
        (nn.BatchNorm2d(3, affine=False, track_running_stats=False), (4, 3, 5, 6)),
    ],
)
def test_shared_batch_norm_against_pytorchs(one_process, layer, shape):
    """One process's share is all there is, so it must be plain batch norm."""
    generator = torch.Generator().manual_seed(0)
    plain, network = nn.Sequential(layer), nn.Sequential(type(layer)(3, momentum=layer.momentum, affine=layer.affine))
    network[0].track_running_stats = layer.track_running_stats
    if not layer.track_running_stats:
        network[0].running_mean = network[0].running_var = network[0].num_batches_tracked = None
    before = network[0]
    with shared_batch_norm(network):
        for _ in range(2):
            one = (7 + 2 * torch.randn(shape, generator=generator)).requires_grad_()
            other = one.detach().clone().requires_grad_()
            outputs = plain(one), network(other)
            torch.testing.assert_close(*outputs, rtol=1e-5, atol=1e-5)
            weight = torch.randn(shape, generator=generator)
            for output in outputs:
                (output * weight).sum().backward()
            torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-5)
    assert network[0] is before
    for name, value in plain.state_dict().items():
        torch.testing.assert_close(network.state_dict()[name], value, msg=name)
    torch.testing.assert_close(plain.eval()(one), network.eval()(one))


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
def test_refusals(cases, tiny, params, words):
    with pytest.raises(InputError, match=words):
        tiny(**params).fit(cases)
