"""Two processes that share each batch of a label table learn what one process learns from the whole of it."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
import torch

from annotruth import Classifier, load_model

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.AnnotruthWarning")

METHODS = {"mean": {}, "global-cm": {"warmup": 0.1}, "global-cm-lowrank": {"warmup": 0.0}, "crowd-layer": {}}

SCRIPT = f"""
import os
import sys
import warnings
from pathlib import Path

import numpy as np

from annotruth import Classifier


def fit(data, devices, method, **params):
    return Classifier(
        method, network="linear", max_epochs=3, batch_size=7, validation=0.2, accelerator="cpu", devices=devices,
        strategy="ddp" if devices > 1 else "auto", progress=False, **params,
    ).fit(data["features"], data["answers"])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1])
    for method, params in {METHODS}.items():
        model = fit(np.load(folder / "data.npz"), 2, method, **params)
        model.save(folder / f"{{method}}-{{os.environ.get('LOCAL_RANK', '0')}}.annotruth")
"""


@pytest.fixture(scope="module")
def folder(in_two_processes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a script leaves behind that trains in two processes: 30 raters, of whom any two answer an item."""
    folder = tmp_path_factory.mktemp("ddp")
    (folder / "script.py").write_text(SCRIPT)
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 41)
    answers = np.full((41, 30), -1)
    for item, true in enumerate(truth):
        answers[item, rng.choice(30, 2, replace=False)] = rng.choice([true, true, true, 0], 2)
    np.savez(folder / "data.npz", features=np.eye(3)[truth] + rng.normal(0, 0.3, (41, 3)), answers=answers)
    done = in_two_processes(str(folder / "script.py"), str(folder))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("method", METHODS)
def test_two_processes_learn_what_one_does(folder: Path, method: str) -> None:
    fit = runpy.run_path(str(folder / "script.py"))["fit"]
    alone: Classifier = fit(np.load(folder / "data.npz"), 1, method, **METHODS[method])
    first, second = (load_model(folder / f"{method}-{rank}.annotruth") for rank in (0, 1))
    for name, value in alone.module_.state_dict().items():
        torch.testing.assert_close(first.module_.state_dict()[name], value, rtol=1e-4, atol=1e-5, msg=name)
        assert torch.equal(first.module_.state_dict()[name], second.module_.state_dict()[name]), name
    np.testing.assert_allclose(first.confusion_, alone.confusion_, atol=1e-4)
    np.testing.assert_allclose(first.history_, alone.history_, rtol=1e-4)
    assert first.settings_["devices"] == 2
