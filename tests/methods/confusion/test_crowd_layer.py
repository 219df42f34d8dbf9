"""crowd-layer, doctor-net and max-mig on label tables: each formula by loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import confusion_matrix

from annotruth import Annotations
from annotruth.methods import Batch, DataSpec, make_method
from annotruth.methods.confusion.max_mig import MIN_PROBABILITY, mutual_information

ITEMS, RATERS, CLASSES = 6, 4, 3
SHAPE = DataSpec(channels=2, raters=RATERS, classes=CLASSES, dims=0, task="labels")
NAMES = ["crowd-layer", "doctor-net", "max-mig"]


def softmax(scores):
    powers = np.exp(scores)
    return powers / powers.sum(axis=-1, keepdims=True)


def made(name):
    """A method and its parts, with numbers in place of where raters' models begin."""
    torch.manual_seed(0)
    method = make_method(name, "labels")
    parts = method.build(SHAPE, torch.nn.Linear(2, CLASSES)).double()
    with torch.no_grad():
        for numbers in parts.annotators.parameters():
            numbers.add_(torch.randn_like(numbers))
    return method, parts


@pytest.fixture
def batch(sparse_batch):
    return sparse_batch(ITEMS, RATERS, CLASSES, torch.float64)


def given(batch):
    """All answers, as (item, rater, label)."""
    table = batch.labels.numpy()
    return [(item, rater, table[item, rater]) for item, rater in zip(*np.nonzero(table >= 0))]


def test_crowd_layer_is_a_softmax_of_a_linear_map_of_probabilities(batch):
    method, parts = made("crowd-layer")
    truth = softmax(parts.truth(batch.images).detach().numpy())
    maps = parts.annotators.maps.detach().numpy()
    by_loops = -np.mean([np.log(softmax(truth[i] @ maps[r])[label]) for i, r, label in given(batch)])
    loss, likelihood = method.loss(parts, batch, 0.5)
    assert loss.item() == pytest.approx(by_loops)
    assert likelihood.item() == pytest.approx(by_loops)
    np.testing.assert_allclose(method.confusion(parts, batch.images).dense()[0].detach(), softmax(maps))


def test_a_crowd_layer_begins_as_the_identity():
    parts = make_method("crowd-layer", "labels").build(SHAPE)
    torch.testing.assert_close(parts.annotators.maps.data, torch.eye(CLASSES).expand(RATERS, -1, -1))


def test_doctors_imitate_raters_and_weights_learn_what_others_say(batch):
    method, parts = made("doctor-net")
    scores, doctors = parts.truth(batch.images).detach().numpy(), parts.annotators
    heads, weights = doctors.heads.detach().numpy(), softmax(doctors.weights.detach().numpy()[:, 0])
    opinions = softmax(np.einsum("bi,rij->brj", scores, heads[:, :-1]) + heads[:, -1])
    np.testing.assert_allclose(
        parts.log_truth(batch.images).exp().detach(), np.einsum("r,brj->bj", weights, opinions), rtol=1e-6
    )
    own, others = [], []
    for item, rater, label in given(batch):
        own.append(-np.log(opinions[item, rater, label]))
        rest = [r for r in range(RATERS) if r != rater]  # a doctor's own labels say nothing of how good it is
        others.append(-np.log(np.average(opinions[item, rest, label], weights=weights[rest])))
    loss, likelihood = method.loss(parts, batch, 0.5)
    assert likelihood.item() == pytest.approx(np.mean(own))
    assert loss.item() == pytest.approx(np.mean(own) + np.mean(others))


def test_weights_teach_no_head(batch):
    """A head learns its own rater's labels, whatever weight it has."""
    slopes = []
    for tilt in (0.0, 2.0):
        method, parts = made("doctor-net")
        with torch.no_grad():
            parts.annotators.weights[0] += tilt
        method.loss(parts, batch, 0.5)[0].backward()
        slopes.append((parts.annotators.heads.grad, parts.truth.weight.grad, parts.annotators.weights.grad))
    torch.testing.assert_close(slopes[0][:2], slopes[1][:2])
    assert (slopes[0][2] != slopes[1][2]).all()


def test_a_doctor_alone_has_nobody_to_be_weighed_by(batch):
    method, parts = made("doctor-net")
    alone = Batch(batch.images, batch.labels[:, :1], raters=torch.tensor([0]))
    loss, likelihood = method.loss(parts, alone, 0.5)
    assert loss.item() == likelihood.item()
    loss.backward()
    assert parts.annotators.weights.grad is None


def test_mutual_information_by_pairs():
    rng = np.random.default_rng(0)
    one, other, prior = rng.dirichlet(np.ones(3), 5), rng.dirichlet(np.ones(3), 5), rng.dirichlet(np.ones(3))
    joint = np.array([[(x * y / prior).sum() for y in other] for x in one])
    apart = [joint[i, j] for i in range(5) for j in range(5) if i != j]
    by_pairs = np.mean(1 + np.log(np.diag(joint))) - np.mean(apart)
    found = mutual_information(*(torch.from_numpy(np.log(part)) for part in (one, other, prior)))
    assert found.item() == pytest.approx(by_pairs)


def test_independent_answers_tell_nothing_and_equal_ones_the_entropy():
    """Of certain answers over many items, the bound is tight: log classes for equal ones, 0 for independent ones."""
    sure = torch.eye(CLASSES)[torch.arange(3000) % CLASSES].clamp_min(1e-30).log()
    even = torch.full((CLASSES,), 1 / CLASSES).log()
    assert mutual_information(sure, sure, even).item() == pytest.approx(np.log(CLASSES), abs=1e-2)
    assert mutual_information(sure, even.expand(3000, CLASSES), even).item() == pytest.approx(0, abs=1e-4)


def test_the_jury_adds_scores_and_the_network_learns_from_it(batch):
    method, parts = made("max-mig")
    jury = parts.annotators
    with torch.no_grad():
        jury.log_prior.copy_(torch.tensor([0.5, 0.3, 0.2]).log())
    totals = np.tile(np.log([0.5, 0.3, 0.2]), (ITEMS, 1))
    for item, rater, label in given(batch):
        totals[item] += jury.scores.detach().numpy()[rater, :, label]
    verdict = jury.log_verdict(batch.labels[:, :, None])[:, :, 0]
    np.testing.assert_allclose(verdict.exp().detach(), softmax(totals), rtol=1e-6)
    answered = (batch.labels >= 0).any(dim=1)
    expected = mutual_information(parts.log_truth(batch.images)[answered], verdict[answered], jury.log_prior)
    assert method.loss(parts, batch, 0.5)[0].item() == pytest.approx(-expected.item())


def test_the_jury_begins_with_the_majority_vote():
    answers = np.array([[0, 0, 0, 1], [1, 1, 0, 1], [2, 2, 2, 2], [1, 1, 1, 0], [0, 0, -1, 2]])
    vote = [0, 1, 2, 1, 0]
    method, parts = made("max-mig")
    method.prepare(parts, Annotations.from_answers(answers))
    for rater, column in enumerate(answers.T):
        said = column >= 0
        counted = confusion_matrix(np.array(vote)[said], column[said], labels=range(CLASSES), normalize="true")
        expected = (counted + MIN_PROBABILITY) / (1 + MIN_PROBABILITY * CLASSES)
        np.testing.assert_allclose(parts.annotators(torch.zeros(1, 2)).dense()[0, rater].detach(), expected, rtol=1e-5)
    frequency = np.array([0.4, 0.4, 0.2]) + MIN_PROBABILITY
    np.testing.assert_allclose(parts.annotators.log_prior.exp(), frequency / frequency.sum(), rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_raters_who_are_not_in_a_batch_are_left_alone(name, batch):
    """The gradient has rows for those who are; the loss is the same as with a column for everybody."""
    method, parts = made(name)
    labels = batch.labels.clone()
    labels[:, 1] = -1
    listed = Batch(batch.images, labels[:, [0, 2, 3]], raters=torch.tensor([0, 2, 3]))
    loss, _ = method.loss(parts, listed, 0.5)
    loss.backward()
    for numbers in parts.annotators.parameters():
        assert numbers.grad.is_sparse
        assert numbers.grad.coalesce().indices().tolist() == [[0, 2, 3]]
    if name != "doctor-net":  # whose weights are shared among those of a batch
        assert loss.item() == pytest.approx(method.loss(parts, Batch(batch.images, labels), 0.5)[0].item())


@pytest.mark.parametrize("name", NAMES)
def test_nothing_answered_costs_nothing(name):
    method, parts = made(name)
    loss, _ = method.loss(parts, Batch(torch.ones(2, 2).double(), torch.full((2, RATERS), -1)), 0.5)
    loss.backward()
    assert loss.item() == 0
