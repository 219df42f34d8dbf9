"""The steps of expectation-maximisation on labels, as a network takes them: posterior, likelihood, pixels."""

from __future__ import annotations

import torch

from annotruth.methods.em.steps import cross_entropy, label_posterior

ITEMS, RATERS, CLASSES = 12, 3, 3


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


def test_nothing_labelled_costs_nothing():
    log_truth = torch.randn(2, 3).log_softmax(dim=1)
    assert cross_entropy(log_truth, log_truth.exp(), torch.full((2, 1), -1)) == 0
