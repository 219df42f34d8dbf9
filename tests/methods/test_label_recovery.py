"""From answers of raters whose matrices are known: every method finds the truth, and those that can, the raters."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth import Classifier
from annotruth.metrics import confusion_rmse
from annotruth.simulate import hammer_spammer, simulate_labels

CLASSES, ITEMS = 3, 240
MIXER = np.array([[1.0, 0.0, 0.0], [0.0, 0.3, 0.7], [0.0, 0.1, 0.9]])  # calls much of the second class the third
RATERS = {"good": hammer_spammer(CLASSES, 0.9), "fair": hammer_spammer(CLASSES, 0.6), "mixer": MIXER,
          "guesser": hammer_spammer(CLASSES, 0.0)}  # fmt: skip


def fitted(method, raters, keep, **settings):
    truth = np.random.default_rng(1).integers(0, CLASSES, ITEMS)
    features = np.eye(CLASSES)[truth] + np.random.default_rng(2).normal(0, 0.15, (ITEMS, CLASSES))
    simulation = simulate_labels(truth, raters, keep=keep)
    model = Classifier(method, network="linear", batch_size=24, validation=0, progress=False, **settings)
    return model.fit(features, simulation.answers), model.score(features, truth)


# Errors of matrices: faithful raters all round would be 0.3. em_steps: matrices are counted against a network that
# must have learnt something before.
@pytest.mark.parametrize(
    ("method", "most", "settings"),
    [("gem", 0.06, {"em_steps": 3}), ("mbem", 0.06, {"em_steps": 2}), ("aggnet", 0.06, {"em_steps": 3}),
     ("max-mig", 0.12, {}), ("crowd-layer", 0.12, {}), ("doctor-net", 0.12, {}), ("shared-cm", 0.12, {}),
     ("soft-bootstrap", 0.12, {}), ("dawid-skene", 0.12, {}), ("geo-crowd-net", 0.12, {}),
     ("conal", 0.2, {}), ("union-net", 0.3, {}), ("madl", 0.2, {}), ("annot-mix", 0.2, {}), ("taidtm", 0.28, {}),
     ("crowd-ar", 0.3, {}), ("logit-clip", 0.12, {}), ("co-teaching", 0.12, {})],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::annotruth.errors.AnnotruthWarning")
def test_all_answers_of_four(method, most, settings):
    model, accuracy = fitted(method, RATERS, "all", max_epochs=12, **settings)
    assert accuracy > 0.95
    skill = {name: annotator.skill for name, annotator in zip(RATERS, model.annotators_.values())}
    assert max(skill, key=skill.__getitem__) == "good"
    assert min(skill, key=skill.__getitem__) == "guesser"
    matrices = np.stack(list(RATERS.values()))
    assert confusion_rmse(model.confusion_, matrices) < most


def test_mbem_needs_one_answer_an_item():
    model, accuracy = fitted("mbem", [RATERS["good"], RATERS["fair"], MIXER], 1, max_epochs=20, em_steps=2)
    assert accuracy > 0.95
    assert confusion_rmse(model.confusion_, np.stack([RATERS["good"], RATERS["fair"], MIXER])) < 0.1
