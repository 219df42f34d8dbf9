"""Records of metrics: every metric has one, and it says the truth about its function."""

import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import annotruth
import annotruth.metrics as metrics
from annotruth.errors import InputError
from annotruth.metrics import METRICS, Metric, find_metric, metric

ONE = np.array([[[0, 1, 1, 0]], [[1, 1, 0, 0]]])
SAME = np.eye(2)[None].repeat(3, axis=0)
PERFECT = {
    "prediction": ONE, "truth": ONE, "probabilities": np.stack([ONE == 0, ONE == 1], axis=1).astype(float),
    "spacing": (1.0, 0.5), "foreground": ONE.astype(float), "soft_truth": ONE.astype(float),
    "samples": ONE[:, None].repeat(2, axis=1), "masks": ONE[:, None].repeat(2, axis=1),
    "answers": np.array([[0, 0], [1, 1]]), "confusion": SAME, "true_confusion": SAME, "n_classes": 2,
}  # fmt: skip


@pytest.fixture
def registry(monkeypatch):
    """A registry that forgets what a test adds."""
    monkeypatch.setattr(metrics.registry, "METRICS", dict(METRICS))
    return metrics.registry.METRICS


@pytest.mark.parametrize("name", METRICS)
def test_perfect_input_gives_the_best_number_of_the_range(name):
    record = METRICS[name]
    given = [PERFECT[need] for need in record.needs]
    value = record.score(*given)
    low, high = record.range
    assert low <= value <= high
    assert record.better == "neither" or value == {"higher": high, "lower": low}[record.better]
    assert np.ndim(record.function(*given)) == len(record.axes)
    assert record.per_class == ("class" in record.axes)


@pytest.mark.parametrize("name", METRICS)
def test_functions_are_public_and_take_what_the_record_says(name):
    record = METRICS[name]
    assert getattr(metrics, record.function.__name__) is record.function
    required = [p for p in inspect.signature(record.function).parameters.values() if p.default is p.empty]
    assert len(required) <= len(record.needs) <= len(inspect.signature(record.function).parameters)
    assert record.title
    assert float(format(0.5, record.form)) == 0.5


def test_a_decorated_function_stays_a_plain_function(registry):
    def share(prediction):
        return float((prediction > 0).mean())

    decorated = metric("share", "prediction", better="lower", unit="mm", form=".1f", name="the_share")(share)
    assert decorated is share
    record = registry["the_share"]
    assert isinstance(record, Metric)
    assert (record.heading, record.arrow, record.write(0.26), record.write(None)) == ("share (mm)", "↓", "0.3", "–")
    assert record.write(float("nan")) == "–"
    assert find_metric("the_share") is find_metric("share") is record


def test_the_mean_of_the_known_is_the_number_of_a_metric_that_gives_many():
    masks = np.array([[[[0, 1]], [[0, 1]]], [[[1, 0]], [[0, 1]]], [[[0, 0]], [[255, 255]]]], dtype=np.uint8)
    assert METRICS["pairwise_disagreement"].score(masks, 2) == pytest.approx((0 + 1) / 2)


def test_a_name_is_given_once(registry):
    with pytest.raises(InputError, match="There is a metric dice already, the function dice; choose another name"):
        metric("another", name="dice")(lambda: 0.0)


def test_every_module_of_the_folder_is_found_when_the_folder_is_imported():
    code = """
import sys, pkgutil, annotruth.metrics as metrics
print([m.name for m in pkgutil.iter_modules(metrics.__path__) if f"annotruth.metrics.{m.name}" not in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_metric_in_a_new_file_is_known_by_that_alone(tmp_path):
    shutil.copytree(Path(annotruth.__file__).parent, tmp_path / "annotruth")
    (tmp_path / "annotruth" / "metrics" / "area.py").write_text(
        "from annotruth.metrics.registry import metric\n\n\n"
        "@metric('area', 'prediction', better='neither')\n"
        "def area(prediction):\n    return float((prediction > 0).sum())\n"
    )
    code = "import annotruth.metrics as m; print(m.METRICS['area'].title, m.area.__name__, m.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split()[:2] == ["area", "area"]
    assert str(tmp_path) in done.stdout
