"""A network on labels that Dawid and Skene's model has fused."""

from __future__ import annotations

import numpy as np

from annotruth import Annotations, DawidSkene
from annotruth.methods import make_method
from annotruth.simulate import simulate_labels

CLASSES = 3

NAMES = ["majority", "dawid-skene", "shared-cm", "soft-bootstrap"]


def test_dawid_skene_sees_through_a_majority_that_errs(table):
    """Two who are right outvoted by three who guess: the vote fails where the model does not."""
    truth = np.random.default_rng(0).integers(0, CLASSES, 300)
    good, guess = 0.95 * np.eye(CLASSES) + 0.05 / CLASSES, np.full((CLASSES, CLASSES), 1 / CLASSES)
    simulation = simulate_labels(truth, [good, good, good, guess, guess, guess, guess])
    annotations = simulation.annotations()
    taught = {name: np.array(table(make_method(name, "labels").label_targets(annotations), 300)) for name in NAMES[:2]}
    np.testing.assert_array_equal(taught["dawid-skene"], DawidSkene().fit(annotations).predict())
    assert np.mean(taught["dawid-skene"] == truth) > 0.97 > 0.95 > np.mean(taught["majority"] == truth)


def test_dawid_skene_teaches_nothing_where_nobody_answered():
    answers = np.array([[0, 0, 0], [1, 1, 1], [-1, -1, -1], [2, 2, 2], [0, 0, 1]])
    fused = make_method("dawid-skene", "labels").label_targets(Annotations.from_answers(answers))
    assert fused.item.tolist() == [0, 1, 3, 4]
    assert fused.label.tolist() == [0, 1, 2, 0]
