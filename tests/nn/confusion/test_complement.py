"""Negative drawings explained, against plain loops over pixels and classes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from annotruth.nn import IdentityConfusion, PixelConfusion, noisy_label_loss
from annotruth.nn.confusion.complement import Complement, NegativeConfusion


def by_loops(truth, matrices, labels, complement):
    """log (p · A · M)[label] of every pixel, 0 where nothing is said."""
    batch, raters, pixels = labels.shape
    classes = truth.shape[1]
    found = np.zeros(labels.shape)
    for b in range(batch):
        for r in range(raters):
            for s in range(pixels):
                if labels[b, r, s] < classes:
                    found[b, r, s] = np.log(
                        sum(
                            truth[b, i, s] * matrices[b, r, i, k, s] * complement[k, labels[b, r, s]]
                            for i in range(classes)
                            for k in range(classes)
                        )
                    )
    return found


@pytest.fixture(params=[2, 4])
def case(request):
    classes = request.param
    generator = torch.Generator().manual_seed(classes)
    scores = torch.randn(2, 3, classes, classes, 5, generator=generator, dtype=torch.float64)
    log_truth = torch.randn(2, classes, 5, generator=generator, dtype=torch.float64).log_softmax(dim=1)
    labels = torch.randint(0, classes, (2, 3, 5), generator=generator, dtype=torch.uint8)
    labels[0, 1], labels[1, :, 2] = 255, 255
    complement = Complement(classes, learnt=True).double()
    torch.nn.init.normal_(complement.scores, std=0.03, generator=generator)
    return log_truth, scores, labels, complement


def test_likelihood_and_trace_are_those_of_loops(case):
    log_truth, scores, labels, complement = case
    confusion = NegativeConfusion(PixelConfusion(scores), complement())
    log_likelihood, trace = confusion.likelihood(log_truth, labels)
    matrices = F.softplus(scores) / F.softplus(scores).sum(dim=3, keepdim=True)
    wanted = by_loops(log_truth.exp().numpy(), matrices.numpy(), labels.numpy(), complement().exp().detach().numpy())
    np.testing.assert_allclose(log_likelihood.detach().numpy(), wanted, rtol=1e-9)
    np.testing.assert_allclose(trace.numpy(), matrices.diagonal(dim1=2, dim2=3).sum(dim=-1).numpy())
    torch.testing.assert_close(confusion.dense(), matrices)


def test_faithful_people_are_the_limit(case):
    log_truth, _, labels, complement = case
    sure = torch.eye(log_truth.shape[1], dtype=torch.float64)[None, None, :, :, None].expand(2, 3, -1, -1, 5) * 80 - 40
    limit = NegativeConfusion(PixelConfusion(sure), complement()).likelihood(log_truth, labels)[0]
    exact = NegativeConfusion(IdentityConfusion(3, log_truth.shape[1]), complement()).likelihood(log_truth, labels)[0]
    torch.testing.assert_close(limit, exact)


def test_gradients(case):
    log_truth, scores, labels, complement = case

    def loss(log_truth, scores, of_complement):
        itself = torch.eye(len(of_complement), dtype=torch.bool)
        log_complement = of_complement.masked_fill(itself, -torch.inf).log_softmax(dim=1)
        confusion = NegativeConfusion(PixelConfusion(scores), log_complement)
        return noisy_label_loss(log_truth, confusion, labels, trace_weight=0.3, trace="plain")[0]

    inputs = [part.detach().requires_grad_() for part in (log_truth, scores, complement.scores)]
    assert torch.autograd.gradcheck(loss, inputs)


def test_two_classes_not_one_is_the_other():
    log_truth = torch.randn(1, 2, 6).log_softmax(dim=1)
    labels = torch.tensor([[[0, 1, 0, 1, 255, 1]]], dtype=torch.uint8)
    other = torch.where(labels == 255, labels, 1 - labels)
    word = IdentityConfusion(1, 2)
    negative = NegativeConfusion(word, Complement(2)()).likelihood(log_truth, labels)[0]
    torch.testing.assert_close(negative, word.likelihood(log_truth, other)[0])


@pytest.mark.parametrize("learnt", [False, True])
def test_nobody_says_a_pixel_is_not_what_they_take_it_for(learnt):
    complement = Complement(4, learnt)
    matrix = complement().exp()
    torch.testing.assert_close(matrix.sum(dim=1), torch.ones(4))
    assert (matrix.diagonal() == 0).all()
    assert complement.scores.requires_grad == learnt
