"""gem, mbem and aggnet on label tables: their steps by loops, and the ones of ``fusion.DawidSkene``."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from annotruth import DawidSkene
from annotruth.errors import InputError
from annotruth.methods import Batch, DataSpec, make_method
from annotruth.methods.em.steps import cross_entropy, label_posterior
from annotruth.simulate import label_group, simulate_labels

ITEMS, RATERS, CLASSES = 12, 3, 3
SHAPE = DataSpec(channels=2, raters=RATERS, classes=CLASSES, dims=0, task="labels")
NAMES = ["gem", "mbem", "aggnet"]


@pytest.fixture
def batch(sparse_batch):
    return sparse_batch(ITEMS, RATERS, CLASSES, torch.float32)


def made(name, **options):
    torch.manual_seed(0)
    method = make_method(name, "labels", options)
    return method, method.build(SHAPE, torch.nn.Linear(2, CLASSES)).eval()


def network(parts, batch):
    """The network's probabilities (items, classes), as numbers."""
    return parts.truth(batch.images).softmax(dim=1).detach().double().numpy()


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
def test_the_first_target_is_the_mean_of_the_labels(name, batch):
    method, parts = made(name)
    method.stages.begin_epoch(parts, [batch], 0.0)  # nothing was learnt yet that could be counted against
    assert parts.stage == 0
    loss, _ = method.loss(parts, batch, 0.0)
    by_loops = entropy_by_loops(batch.labels, shares_by_loops(batch.labels), np.log(network(parts, batch)))
    assert loss.item() == pytest.approx(by_loops, rel=1e-5)


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_two_rounds_by_loops(name, batch):
    """Matrices, posterior, what the network learns of it while it changes, and the matrices in the end."""
    method, parts = made(name, em_steps=2)
    labels, before = batch.labels, network(parts, batch)
    answers = np.eye(CLASSES)[before.argmax(axis=1)]
    method.stages.begin_epoch(
        parts, [Batch(*(part[:5] for part in batch[:2])), Batch(*(part[5:] for part in batch[:2]))], 0.5
    )
    matrices = counted_by_loops(labels, answers if name == "mbem" else shares_by_loops(labels))
    np.testing.assert_allclose(parts.annotators.matrices, matrices, atol=1e-6)
    assert parts.stage == 1
    assert method.stages.objective_is_final(parts, 0.5)

    parts.truth.weight.neg_()  # the network learns
    now = network(parts, batch)
    prior = {"gem": before, "aggnet": now, "mbem": np.tile(answers.mean(axis=0), (ITEMS, 1))}[name]
    posterior = posterior_by_loops(labels, prior, matrices)
    loss, likelihood = method.loss(parts, batch, 0.9)
    assert loss.item() == pytest.approx(entropy_by_loops(labels, posterior, np.log(now)), rel=1e-4)
    said = np.einsum("ni,rij->nrj", now, matrices)
    given = [-np.log(said[i, r, labels[i, r]]) for i in range(ITEMS) for r in range(RATERS) if labels[i, r] >= 0]
    assert likelihood.item() == pytest.approx(np.mean(given), rel=1e-4)

    method.stages.finish(parts, [batch])
    target = np.eye(CLASSES)[now.argmax(axis=1)] if name == "mbem" else posterior
    np.testing.assert_allclose(parts.annotators.matrices, counted_by_loops(labels, target), atol=1e-5)
    np.testing.assert_allclose(parts.frequency, target.mean(axis=0), atol=1e-5)


def test_the_steps_are_those_of_dawid_and_skene():
    """With a class frequency for a prior and no network's opinion, one more round leaves their estimate in place."""
    truth = np.random.default_rng(0).integers(0, CLASSES, 200)
    simulation = simulate_labels(truth, label_group("pairwise-flipper", RATERS, CLASSES, skill=0.8))
    answers = torch.from_numpy(simulation.answers)
    fused = DawidSkene(max_iter=500, tol=1e-12).fit(simulation.annotations())
    batch = Batch(torch.zeros(len(truth), 2), answers)

    method, parts = made("mbem")
    parts.stage.fill_(1)
    parts.annotators.matrices.copy_(torch.from_numpy(fused.confusion_))
    parts.frequency.copy_(torch.from_numpy(fused.prior_))
    with torch.no_grad():
        posterior = method.posterior(parts, batch, parts.log_truth(batch.images))
    np.testing.assert_allclose(posterior, fused.predict_proba(), atol=1e-5)

    method, parts = made("aggnet")
    with torch.no_grad():
        parts.truth.bias.copy_(torch.from_numpy(fused.prior_).log())  # features are 0: the network knows this only
        parts.stage.fill_(1)
        parts.annotators.matrices.copy_(torch.from_numpy(fused.confusion_))
        method.stages.finish(parts, [batch])
    np.testing.assert_allclose(parts.annotators.matrices, fused.confusion_, atol=1e-4)
    np.testing.assert_allclose(parts.frequency, fused.prior_, atol=1e-4)


def test_raters_of_a_batch_are_found_in_the_table(batch):
    """A batch that lists only those who answered gives what a batch of everybody gives."""
    alone = batch.labels[:6].clone()
    alone[:, 1] = -1
    listed = Batch(batch.images[:6], alone[:, [0, 2]], raters=torch.tensor([0, 2]))
    for name in NAMES:
        results = []
        for some in (Batch(batch.images[:6], alone), listed):
            method, parts = made(name, em_steps=2)
            with torch.no_grad():
                method.stages.begin_epoch(parts, [some], 0.5)
                results.append((*method.loss(parts, some, 0.5), parts.annotators.matrices))
        for one, other in zip(*results):
            torch.testing.assert_close(one, other)


def test_the_evidence_is_the_likelihood_and_its_gradient_the_posterior(batch):
    matrices = torch.rand(RATERS, CLASSES, CLASSES, dtype=torch.double, generator=torch.Generator().manual_seed(1))
    prior = torch.randn(ITEMS, CLASSES, dtype=torch.double, generator=torch.Generator().manual_seed(2)).log_softmax(1)
    posterior, evidence = label_posterior(prior, batch.labels, matrices)
    products = prior.exp().clone().requires_grad_()
    logs = products.log()
    total = logs
    for rater in range(RATERS):
        said = batch.labels[:, rater]
        total = total + torch.where(said[:, None] >= 0, matrices[rater][:, said.clamp_min(0)].T.log(), 0.0)
    torch.testing.assert_close(evidence, total.logsumexp(dim=1).detach())
    (slope,) = torch.autograd.grad(total.logsumexp(dim=1).sum(), logs)
    torch.testing.assert_close(posterior, slope)


def test_pixels_are_items(batch):
    matrices = torch.rand(RATERS, CLASSES, CLASSES, generator=torch.Generator().manual_seed(1))
    prior = torch.randn(ITEMS, CLASSES, generator=torch.Generator().manual_seed(2)).log_softmax(dim=1)
    alone, _ = label_posterior(prior, batch.labels, matrices)
    masks = batch.labels.remainder(256).to(torch.uint8).T.reshape(1, RATERS, 3, 4)  # -1 becomes 255
    pixels, _ = label_posterior(prior.T.reshape(1, CLASSES, 3, 4), masks, matrices)
    torch.testing.assert_close(pixels, alone.T.reshape(1, CLASSES, 3, 4))


def test_one_label_an_item_deceives_gem_and_not_mbem():
    """By algorithm 2 the first posterior is the only label there is, so that everybody looks faithful."""
    labels = torch.full((6, 2), -1)
    labels[:3, 0], labels[3:, 1] = torch.tensor([0, 1, 2]), torch.tensor([1, 2, 0])  # the second is always wrong
    images = torch.eye(3)[[0, 1, 2, 0, 1, 2]]
    for name, skill in (("gem", 1.0), ("mbem", 0.0)):
        method = make_method(name, "labels", {"em_steps": 2})
        parts = method.build(DataSpec(3, 2, 3, 0, "labels"), torch.nn.Linear(3, 3, bias=False))
        with torch.no_grad():
            parts.truth.weight.copy_(9 * torch.eye(3))  # knows the truth
            method.stages.begin_epoch(parts, [Batch(images, labels)], 0.5)
        torch.testing.assert_close(parts.annotators.matrices[0], torch.eye(3))
        torch.testing.assert_close(parts.annotators.matrices[1].diagonal(), torch.full((3,), skill))


def test_nothing_labelled_costs_nothing():
    log_truth = torch.randn(2, 3).log_softmax(dim=1)
    assert cross_entropy(log_truth, log_truth.exp(), torch.full((2, 1), -1)) == 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("steps", "words"), [(0, "em_steps must be at least 1, not 0"), (2.5, "whole number")])
def test_wrong_numbers_of_steps(name, steps, words):
    with pytest.raises(InputError, match=words):
        make_method(name, "labels", {"em_steps": steps})


@pytest.mark.parametrize("name", NAMES)
def test_rounds_are_spread_evenly_over_the_training(name):
    method, parts = made(name, em_steps=4)
    batch = Batch(torch.zeros(2, 2), torch.zeros(2, RATERS, dtype=torch.long))
    stages = []
    for epoch in range(8):
        with torch.no_grad():
            method.stages.begin_epoch(parts, [batch], epoch / 8)
        stages.append(int(parts.stage))
    assert stages == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [method.stages.objective_is_final(parts, epoch / 8) for epoch in (5, 6)] == [False, True]
