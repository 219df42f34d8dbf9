"""Two processes that share each batch learn what one process learns from the whole of it, masks and label tables.

One script trains all of it: most of the time such processes take is for starting.
"""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from annotruth import Annotations, Classifier, Segmenter, load_model
from annotruth.io import write_case_folder

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.AnnotruthWarning")

METHODS = {"mean": {}, "pixel-cm": {"warmup": 0.0}, "global-cm": {"warmup": 0.1}, "coarse-cm": {}}

EXACT = ["mean", "pixel-cm"]  # the loss is a mean over labels from the beginning; in a warm-up it is one over pixels

OF_TABLES = {"mean": {}, "global-cm": {"warmup": 0.1}, "global-cm-lowrank": {"warmup": 0.0}, "crowd-layer": {}}

SCRIPT = f"""
import os
import sys
import warnings

import numpy as np

from annotruth import Annotations, Classifier, Segmenter
from annotruth.cli import main
from annotruth.errors import AnnotruthError


def fit(data, folder, devices, method, **params):
    annotations = Annotations.from_masks(data["masks"], images=data["images"], classes=2)
    return Segmenter(
        method, max_epochs=2, batch_size=5, validation=0.2, augment=True, accelerator="cpu", devices=devices,
        precision="full", progress=False, **params,
    ).fit(annotations, run_folder=folder / method)


def fit_table(data, devices, method, **params):
    return Classifier(
        method, network="linear", max_epochs=3, batch_size=7, validation=0.2, accelerator="cpu", devices=devices,
        strategy="ddp" if devices > 1 else "auto", precision="full", progress=False, **params,
    ).fit(data["features"], data["answers"])


if __name__ == "__main__":
    from pathlib import Path

    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1])
    data = np.load(folder / "data.npz")
    for method, params in {METHODS}.items():
        model = fit(data, folder, 2, method, **params)
        model.save(folder / f"{{method}}-{{os.environ.get('LOCAL_RANK', '0')}}.annotruth")
    for method, params in {OF_TABLES}.items():
        model = fit_table(data, 2, method, **params)
        model.save(folder / f"table-{{method}}-{{os.environ.get('LOCAL_RANK', '0')}}.annotruth")
    sys.argv = ["annotruth", "train", str(folder / "cases"), "-o", str(folder / "run"), "--method", "mean",
                "--epochs", "1", "--batch-size", "6", "--accelerator", "cpu", "--devices", "2", "--strategy", "ddp"]
    try:
        main()
    except SystemExit as end:
        assert not end.code
    try:
        fit(data, folder / "diverged", 2, "mean", learning_rate=1e30)
    except AnnotruthError as error:
        (folder / f"error-{{os.environ.get('LOCAL_RANK', '0')}}.txt").write_text(str(error))
"""


@pytest.fixture(scope="module")
def sparse_cases(make_cases) -> Annotations:
    """14 items are trained on, in batches of 5, 5 and 4; of the processes' shares no two hold as many labels."""
    cases = make_cases(17, keep=2)
    masks = cases.masks.copy()
    masks[::3, :, :5] = 255
    return Annotations.from_masks(masks, images=cases.images)


@pytest.fixture(scope="module")
def table() -> dict[str, np.ndarray]:
    """30 raters, of whom any two answer an item."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 41)
    answers = np.full((41, 30), -1)
    for item, true in enumerate(truth):
        answers[item, rng.choice(30, 2, replace=False)] = rng.choice([true, true, true, 0], 2)
    return {"features": np.eye(3)[truth] + rng.normal(0, 0.3, (41, 3)), "answers": answers}


@pytest.fixture(scope="module")
def folder(in_two_processes, sparse_cases, table, tmp_path_factory) -> Path:
    """What a script leaves behind that trains in two processes."""
    folder = tmp_path_factory.mktemp("ddp")
    (folder / "script.py").write_text(SCRIPT)
    np.savez(folder / "data.npz", masks=sparse_cases.masks, images=sparse_cases.images, **table)
    write_case_folder(folder / "cases", sparse_cases)
    done = in_two_processes(str(folder / "script.py"), str(folder))
    assert done.returncode == 0, done.stderr
    (folder / "said.txt").write_text(done.stdout)
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
    together = load_model(folder / f"{method}-0.annotruth")
    weights = weights_that_matter(together)
    for name, value in weights_that_matter(alone).items():
        torch.testing.assert_close(weights[name], value, rtol=0, atol=1e-4, msg=name)
    np.testing.assert_allclose(together.history_.train_loss, alone.history_.train_loss, rtol=1e-5)
    np.testing.assert_allclose(together.history_.val_loss, alone.history_.val_loss, rtol=1e-2)


def test_a_warm_up_goes_through_its_stages_in_step(folder, tmp_path):
    alone = in_one_process(folder, tmp_path, "global-cm")
    together = load_model(folder / "global-cm-0.annotruth")
    for stage in ("weighed_from", "joint_from"):
        assert getattr(together.module_, stage) == getattr(alone.module_, stage) < 1
    torch.testing.assert_close(together.module_.consensus.counts, alone.module_.consensus.counts, rtol=0.05, atol=5)
    np.testing.assert_allclose(together.history_.train_loss, alone.history_.train_loss, rtol=0.02)


def test_marks_are_counted_over_all_processes(folder, tmp_path):
    alone = in_one_process(folder, tmp_path, "coarse-cm")
    together = load_model(folder / "coarse-cm-0.annotruth")
    torch.testing.assert_close(together.module_.marking.marks, alone.module_.marking.marks, rtol=0.02, atol=2)


@pytest.mark.parametrize("method", METHODS)
def test_all_processes_end_with_the_same_model(folder, method):
    first, second = (load_model(folder / f"{method}-{rank}.annotruth") for rank in (0, 1))
    others = second.module_.state_dict()
    assert all(torch.equal(value, others[name]) for name, value in first.module_.state_dict().items())
    np.testing.assert_array_equal(first.confusion_, second.confusion_)


@pytest.mark.parametrize("method", METHODS)
def test_files_are_written_once(folder, method):
    logs = pd.read_csv(folder / method / "logs" / "metrics.csv")
    assert logs.epoch.tolist() == [0, 1]
    assert len(list((folder / method / "logs").glob("events*"))) == 1
    files = {path.name for path in (folder / method / "checkpoints").iterdir()}
    assert files == {"best.ckpt", "last.ckpt", "previous.ckpt"}


def test_all_processes_stop_together_and_name_the_cases(folder):
    first, second = (folder / f"error-{rank}.txt" for rank in (0, 1))
    assert first.read_text() == second.read_text()
    assert "The loss became nan in epoch 0 on the cases item_" in first.read_text()
    assert first.read_text().count("item_") > 3  # more than one process's share


@pytest.mark.parametrize("method", OF_TABLES)
def test_two_processes_learn_from_a_table_what_one_does(folder: Path, method: str) -> None:
    fit = runpy.run_path(str(folder / "script.py"))["fit_table"]
    alone: Classifier = fit(np.load(folder / "data.npz"), 1, method, **OF_TABLES[method])
    first, second = (load_model(folder / f"table-{method}-{rank}.annotruth") for rank in (0, 1))
    for name, value in alone.module_.state_dict().items():
        torch.testing.assert_close(first.module_.state_dict()[name], value, rtol=1e-4, atol=1e-5, msg=name)
        assert torch.equal(first.module_.state_dict()[name], second.module_.state_dict()[name]), name
    np.testing.assert_allclose(first.confusion_, alone.confusion_, atol=1e-4)
    np.testing.assert_allclose(first.history_, alone.history_, rtol=1e-4)
    assert first.settings_["devices"] == 2


def test_the_command_line_speaks_and_writes_once(folder):
    assert (folder / "said.txt").read_text().count("Model:") == 1
    assert load_model(folder / "run" / "model.annotruth").devices == 2
    assert json.loads((folder / "run" / "run.json").read_text())["params"]["strategy"] == "ddp"
