"""Networks on one fused label per item: majority, dawid-skene, shared-cm and soft-bootstrap."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from annotruth import Annotations, DawidSkene
from annotruth.errors import InputError
from annotruth.methods import Batch, DataSpec, make_method
from annotruth.simulate import simulate_labels

CLASSES = 3
SHAPE = DataSpec(channels=2, raters=4, classes=CLASSES, dims=0, task="labels")
NAMES = ["majority", "dawid-skene", "shared-cm", "soft-bootstrap"]


@pytest.fixture
def batch():
    rng = np.random.default_rng(0)
    return Batch(torch.tensor(rng.normal(size=(5, 2))), torch.tensor([[0], [2], [-1], [1], [2]]))


def made(name, **options):
    torch.manual_seed(0)
    method = make_method(name, "labels", options)
    return method, method.build(SHAPE, torch.nn.Linear(2, CLASSES)).double()


def table(answers, classes=CLASSES):
    """Answers as labels by item, -1 = none."""
    labels = np.full(classes, -1)
    labels[answers.item] = answers.label
    return labels.tolist()


@pytest.mark.parametrize("name", ["majority", "shared-cm", "soft-bootstrap"])
def test_the_vote_teaches_and_nothing_where_nobody_answered(name):
    answers = np.array([[0, 0, 1, 2], [-1, -1, -1, -1], [-1, 2, -1, -1], [2, 1, 1, 2]])
    method = make_method(name, "labels")
    fused = method.label_targets(Annotations.from_answers(answers))
    assert table(fused, 4) == [0, -1, 2, 1]  # the lowest class wins a tie
    assert (fused.rater == 0).all()
    assert method.n_targets(SHAPE) == 1


def test_dawid_skene_sees_through_a_majority_that_errs():
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


@pytest.mark.parametrize("weight", [0.0, 0.01, 0.5])
def test_shared_cm_is_cross_entropy_through_one_matrix_plus_its_trace(batch, weight):
    method, parts = made("shared-cm", trace_weight=weight)
    with torch.no_grad():
        for scores in parts.annotators.parameters():
            scores.add_(torch.randn_like(scores))
    truth = parts.log_truth(batch.images).exp().detach().numpy()
    (matrix,) = parts.annotators(batch.images).dense()[0].detach().numpy()
    said = truth @ matrix
    given = -np.mean([np.log(said[0, 0]), np.log(said[1, 2]), np.log(said[3, 1]), np.log(said[4, 2])])
    loss, likelihood = method.loss(parts, batch, 0.5)
    assert likelihood.item() == pytest.approx(given)
    assert loss.item() == pytest.approx(given + weight * np.trace(matrix))


@pytest.mark.parametrize("trust", [0.0, 0.6, 0.95, 1.0])
def test_soft_bootstrap_mixes_the_vote_with_the_networks_own_answer(batch, trust):
    method, parts = made("soft-bootstrap", trust=trust)
    truth = parts.log_truth(batch.images).exp().detach().numpy()
    terms = []
    for own, vote in zip(truth, batch.labels[:, 0]):
        if vote >= 0:
            target = trust * np.eye(CLASSES)[vote] + (1 - trust) * own
            terms.append(-(target * np.log(own)).sum())
    loss, likelihood = method.loss(parts, batch, 0.5)
    assert loss.item() == pytest.approx(np.mean(terms))
    plain, _ = make_method("majority", "labels").loss(parts, batch, 0.5)
    assert likelihood.item() == pytest.approx(plain.item())


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("soft-bootstrap", {"trust": -0.1}, "trust is a share, 0 ≤ trust ≤ 1, not -0.1"),
        ("soft-bootstrap", {"trust": 1.1}, "trust is a share"),
        ("soft-bootstrap", {"trust": "much"}, "trust of soft-bootstrap must be a number"),
        ("shared-cm", {"trace_weight": None}, "trace_weight of shared-cm must be a number"),
        ("dawid-skene", {"one_coin": True}, "has no option 'one_coin'. Its options: none"),
        ("global-cm-lowrank", {"rank": 0}, "rank must be at least 1, not 0"),
        ("global-cm-lowrank", {"warmup": 1.0}, "warmup is a share of the training"),
    ],
)
def test_wrong_options(name, options, words):
    with pytest.raises(InputError, match=words):
        make_method(name, "labels", options)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_answered_costs_nothing(name):
    method, parts = made(name)
    loss, _ = method.loss(parts, Batch(torch.ones(2, 2).double(), torch.full((2, 1), -1)), 0.5)
    loss.backward()
    assert loss.item() == 0
