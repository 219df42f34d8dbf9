"""max-mig on label tables: the information that network and raters share, pair by pair, and the jury."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn.metrics import confusion_matrix

from annotruth import Annotations
from annotruth.methods.confusion.max_mig import MIN_PROBABILITY, mutual_information

ITEMS, CLASSES = 6, 3


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


def test_the_jury_adds_scores_and_the_network_learns_from_it(build_shaken, given, batch):
    method, model = build_shaken("max-mig")
    jury = model.annotators
    with torch.no_grad():
        jury.log_prior.copy_(torch.tensor([0.5, 0.3, 0.2]).log())
    totals = np.tile(np.log([0.5, 0.3, 0.2]), (ITEMS, 1))
    for item, rater, label in given:
        totals[item] += jury.scores.detach().numpy()[rater, :, label]
    verdict = jury.log_verdict(batch.labels[:, :, None])[:, :, 0]
    np.testing.assert_allclose(verdict.exp().detach(), softmax(totals, axis=-1), rtol=1e-6)
    answered = (batch.labels >= 0).any(dim=1)
    expected = mutual_information(model.log_truth(batch.images)[answered], verdict[answered], jury.log_prior)
    assert method.loss(model, batch, 0.5)[0].item() == pytest.approx(-expected.item())


def test_the_jury_begins_with_the_majority_vote(build_shaken):
    answers = np.array([[0, 0, 0, 1], [1, 1, 0, 1], [2, 2, 2, 2], [1, 1, 1, 0], [0, 0, -1, 2]])
    vote = [0, 1, 2, 1, 0]
    method, model = build_shaken("max-mig")
    method.prepare(model, Annotations.from_answers(answers))
    for rater, column in enumerate(answers.T):
        said = column >= 0
        counted = confusion_matrix(np.array(vote)[said], column[said], labels=range(CLASSES), normalize="true")
        expected = (counted + MIN_PROBABILITY) / (1 + MIN_PROBABILITY * CLASSES)
        np.testing.assert_allclose(model.annotators(torch.zeros(1, 2)).dense()[0, rater].detach(), expected, rtol=1e-5)
    frequency = np.array([0.4, 0.4, 0.2]) + MIN_PROBABILITY
    np.testing.assert_allclose(model.annotators.log_prior.exp(), frequency / frequency.sum(), rtol=1e-5)
