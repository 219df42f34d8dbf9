"""gem, mbem and aggnet on label tables: their rounds by loops, and the ones of ``fusion.DawidSkene``."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from annotruth import DawidSkene
from annotruth.errors import InputError
from annotruth.methods import Batch, DataSpec, make_method
from annotruth.simulate import label_group, simulate_labels

ITEMS, RATERS, CLASSES = 12, 3, 3

NAMES = ["gem", "mbem", "aggnet"]


@pytest.fixture
def build(build):
    """In single precision, to be asked."""

    def make(name, **options):
        method, model = build(name, RATERS, torch.float32, **options)
        return method, model.eval()

    return make


def network(model, batch):
    """The network's probabilities (items, classes), as numbers."""
    return model.truth(batch.images).softmax(dim=1).detach().double().numpy()


def shares_by_loops(labels):
    shares = np.full((len(labels), CLASSES), 1 / CLASSES)
    for item, given in enumerate([row[row >= 0] for row in labels.numpy()]):
        if len(given):
            shares[item] = [np.mean(given == c) for c in range(CLASSES)]
    return shares


def counted_by_loops(labels, target):
    """The M-step of algorithms 2 and 3: matrices (raters, true, observed); no evidence, an even row."""
    matrices = np.zeros((RATERS, CLASSES, CLASSES))
    for item, row in enumerate(labels.numpy()):
        for rater, label in enumerate(row):
            if label >= 0:
                matrices[rater, :, label] += target[item]
    total = matrices.sum(axis=2, keepdims=True)
    return np.where(total > 0, matrices / np.where(total > 0, total, 1), 1 / CLASSES)


def posterior_by_loops(labels, prior, matrices):
    """The E-step of algorithms 2 and 3."""
    posterior = np.array(prior)
    for item, row in enumerate(labels.numpy()):
        for rater, label in enumerate(row):
            if label >= 0:
                posterior[item] *= matrices[rater, :, label]
    return posterior / posterior.sum(axis=1, keepdims=True)


def entropy_by_loops(labels, target, log_truth):
    answered = (labels >= 0).any(dim=1).numpy()
    return -np.mean((target * log_truth).sum(axis=1)[answered])


@pytest.mark.parametrize("name", NAMES)
def test_the_first_target_is_the_mean_of_the_labels(build, name, batch):
    method, model = build(name)
    method.stages.begin_epoch(model, [batch], 0.0)  # nothing was learnt yet that could be counted against
    assert model.stage == 0
    loss, _ = method.loss(model, batch, 0.0)
    by_loops = entropy_by_loops(batch.labels, shares_by_loops(batch.labels), np.log(network(model, batch)))
    assert loss.item() == pytest.approx(by_loops, rel=1e-5)


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_two_rounds_by_loops(build, name, batch):
    """Matrices, posterior, what the network learns of it while it changes, and the matrices in the end."""
    method, model = build(name, em_steps=2)
    labels, before = batch.labels, network(model, batch)
    answers = np.eye(CLASSES)[before.argmax(axis=1)]
    method.stages.begin_epoch(
        model, [Batch(*(part[:5] for part in batch[:2])), Batch(*(part[5:] for part in batch[:2]))], 0.5
    )
    matrices = counted_by_loops(labels, answers if name == "mbem" else shares_by_loops(labels))
    np.testing.assert_allclose(model.annotators.matrices, matrices, atol=1e-6)
    assert model.stage == 1
    assert method.stages.objective_is_final(model, 0.5)

    model.truth.weight.neg_()  # the network learns
    now = network(model, batch)
    prior = {"gem": before, "aggnet": now, "mbem": np.tile(answers.mean(axis=0), (ITEMS, 1))}[name]
    posterior = posterior_by_loops(labels, prior, matrices)
    loss, likelihood = method.loss(model, batch, 0.9)
    assert loss.item() == pytest.approx(entropy_by_loops(labels, posterior, np.log(now)), rel=1e-4)
    said = np.einsum("ni,rij->nrj", now, matrices)
    given = [-np.log(said[i, r, labels[i, r]]) for i in range(ITEMS) for r in range(RATERS) if labels[i, r] >= 0]
    assert likelihood.item() == pytest.approx(np.mean(given), rel=1e-4)

    method.stages.finish(model, [batch])
    target = np.eye(CLASSES)[now.argmax(axis=1)] if name == "mbem" else posterior
    np.testing.assert_allclose(model.annotators.matrices, counted_by_loops(labels, target), atol=1e-5)
    np.testing.assert_allclose(model.frequency, target.mean(axis=0), atol=1e-5)


def test_the_steps_are_those_of_dawid_and_skene(build):
    """With a class frequency for a prior and no network's opinion, one more round leaves their estimate in place."""
    truth = np.random.default_rng(0).integers(0, CLASSES, 200)
    simulation = simulate_labels(truth, label_group("pairwise-flipper", RATERS, CLASSES, skill=0.8))
    answers = torch.from_numpy(simulation.answers)
    fused = DawidSkene(max_iter=500, tol=1e-12).fit(simulation.annotations())
    batch = Batch(torch.zeros(len(truth), 2), answers)

    method, model = build("mbem")
    model.stage.fill_(1)
    model.annotators.matrices.copy_(torch.from_numpy(fused.confusion_))
    model.frequency.copy_(torch.from_numpy(fused.prior_))
    with torch.no_grad():
        posterior = method.posterior(model, batch, model.log_truth(batch.images))
    np.testing.assert_allclose(posterior, fused.predict_proba(), atol=1e-5)

    method, model = build("aggnet")
    with torch.no_grad():
        model.truth.bias.copy_(torch.from_numpy(fused.prior_).log())  # features are 0: the network knows this only
        model.stage.fill_(1)
        model.annotators.matrices.copy_(torch.from_numpy(fused.confusion_))
        method.stages.finish(model, [batch])
    np.testing.assert_allclose(model.annotators.matrices, fused.confusion_, atol=1e-4)
    np.testing.assert_allclose(model.frequency, fused.prior_, atol=1e-4)


def test_raters_of_a_batch_are_found_in_the_table(build, batch):
    """A batch that lists only those who answered gives what a batch of everybody gives."""
    alone = batch.labels[:6].clone()
    alone[:, 1] = -1
    listed = Batch(batch.images[:6], alone[:, [0, 2]], raters=torch.tensor([0, 2]))
    for name in NAMES:
        results = []
        for some in (Batch(batch.images[:6], alone), listed):
            method, model = build(name, em_steps=2)
            with torch.no_grad():
                method.stages.begin_epoch(model, [some], 0.5)
                results.append((*method.loss(model, some, 0.5), model.annotators.matrices))
        for one, other in zip(*results):
            torch.testing.assert_close(one, other)


def test_one_label_an_item_deceives_gem_and_not_mbem():
    """By algorithm 2 the first posterior is the only label there is, so that everybody looks faithful."""
    labels = torch.full((6, 2), -1)
    labels[:3, 0], labels[3:, 1] = torch.tensor([0, 1, 2]), torch.tensor([1, 2, 0])  # the second is always wrong
    images = torch.eye(3)[[0, 1, 2, 0, 1, 2]]
    for name, skill in (("gem", 1.0), ("mbem", 0.0)):
        method = make_method(name, "labels", {"em_steps": 2})
        model = method.build(DataSpec(3, 2, 3, 0, "labels"), torch.nn.Linear(3, 3, bias=False))
        with torch.no_grad():
            model.truth.weight.copy_(9 * torch.eye(3))  # knows the truth
            method.stages.begin_epoch(model, [Batch(images, labels)], 0.5)
        torch.testing.assert_close(model.annotators.matrices[0], torch.eye(3))
        torch.testing.assert_close(model.annotators.matrices[1].diagonal(), torch.full((3,), skill))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("steps", "words"), [(0, "em_steps must be at least 1, not 0"), (2.5, "whole number")])
def test_wrong_numbers_of_steps(name, steps, words):
    with pytest.raises(InputError, match=words):
        make_method(name, "labels", {"em_steps": steps})


@pytest.mark.parametrize("name", NAMES)
def test_rounds_are_spread_evenly_over_the_training(build, name):
    method, model = build(name, em_steps=4)
    batch = Batch(torch.zeros(2, 2), torch.zeros(2, RATERS, dtype=torch.long))
    stages = []
    for epoch in range(8):
        with torch.no_grad():
            method.stages.begin_epoch(model, [batch], epoch / 8)
        stages.append(int(model.stage))
    assert stages == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [method.stages.objective_is_final(model, epoch / 8) for epoch in (5, 6)] == [False, True]
