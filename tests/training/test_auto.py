"""method="auto" compares methods first, and learns by the recommended one."""

from __future__ import annotations

import numpy as np
import pytest

import annotruth as at
from annotruth.choosing import cross_validation
from annotruth.errors import InputError
from annotruth.simulate import label_group, simulate_labels

# Trainings of one epoch: a model that knows little is rightly doubted.
pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")

METHODS = {"masks": ("majority", "mean"), "labels": ("majority", "mean")}


@pytest.fixture(autouse=True)
def few_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_validation, "DEFAULT_METHODS", METHODS)


def test_a_segmenter_is_what_the_recommended_method_gives(cases, tiny, weights, same, tmp_path):
    model = tiny("auto", max_epochs=1).fit(cases, run_folder=tmp_path)
    assert model.method == "auto"
    assert model.method_.name == model.comparison_.recommended
    assert model.comparison_.methods == METHODS["masks"]
    assert (tmp_path / "comparison" / "trainings" / "mean-fold-0-seed-0.npz").is_file()
    named = tiny(model.method_.name, max_epochs=1).fit(cases)
    assert same(weights(model), weights(named))
    assert model.settings_["method"] == named.method
    np.testing.assert_array_equal(model.annotators_["good"].confusion, named.annotators_["good"].confusion)
    kept = at.load_model(model.save(tmp_path / "model.annotruth"))
    assert kept.method == named.method
    np.testing.assert_array_equal(kept.predict(cases.images[:2]), model.predict(cases.images[:2]))


def test_a_classifier_chooses_likewise_from_arrays():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 30)
    features = np.eye(2)[truth] + rng.normal(0, 0.2, (30, 2))
    told = simulate_labels(truth, label_group("hammer-spammer", 3, 2, skill=0.9)).annotations()
    answers = told.answers.matrix(30, 3)
    model = at.Classifier("auto", network="linear", max_epochs=1, progress=False).fit(features, answers)
    assert model.method_.name in METHODS["labels"]
    assert model.predict(features).shape == (30,)


@pytest.mark.parametrize(
    ("params", "words"),
    [({"trace_weight": 0.1}, "leave out trace_weight"), ({"devices": 2, "strategy": "ddp"}, "in one process")],
)
def test_what_auto_cannot_take(cases, tiny, params, words):
    with pytest.raises(InputError, match=words):
        tiny("auto", **params).fit(cases)
