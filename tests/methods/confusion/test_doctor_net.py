"""doctor-net on label tables: doctors imitate raters, and are weighed by what others say."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import softmax

from annotruth.methods import Batch

RATERS = 4


def test_doctors_imitate_raters_and_weights_learn_what_others_say(build_shaken, given, batch):
    method, model = build_shaken("doctor-net")
    scores, doctors = model.truth(batch.images).detach().numpy(), model.annotators
    heads, weights = doctors.heads.detach().numpy(), softmax(doctors.weights.detach().numpy()[:, 0])
    opinions = softmax(np.einsum("bi,rij->brj", scores, heads[:, :-1]) + heads[:, -1], axis=-1)
    np.testing.assert_allclose(
        model.log_truth(batch.images).exp().detach(), np.einsum("r,brj->bj", weights, opinions), rtol=1e-6
    )
    own, others = [], []
    for item, rater, label in given:
        own.append(-np.log(opinions[item, rater, label]))
        rest = [r for r in range(RATERS) if r != rater]  # a doctor's own labels say nothing of how good it is
        others.append(-np.log(np.average(opinions[item, rest, label], weights=weights[rest])))
    loss, likelihood = method.loss(model, batch, 0.5)
    assert likelihood.item() == pytest.approx(np.mean(own))
    assert loss.item() == pytest.approx(np.mean(own) + np.mean(others))


def test_weights_teach_no_head(build_shaken, batch):
    """A head learns its own rater's labels, whatever weight it has."""
    slopes = []
    for tilt in (0.0, 2.0):
        method, model = build_shaken("doctor-net")
        with torch.no_grad():
            model.annotators.weights[0] += tilt
        method.loss(model, batch, 0.5)[0].backward()
        slopes.append((model.annotators.heads.grad, model.truth.weight.grad, model.annotators.weights.grad))
    torch.testing.assert_close(slopes[0][:2], slopes[1][:2])
    assert (slopes[0][2] != slopes[1][2]).all()


def test_a_doctor_alone_has_nobody_to_be_weighed_by(build_shaken, batch):
    method, model = build_shaken("doctor-net")
    alone = Batch(batch.images, batch.labels[:, :1], raters=torch.tensor([0]))
    loss, likelihood = method.loss(model, alone, 0.5)
    assert loss.item() == likelihood.item()
    loss.backward()
    assert model.annotators.weights.grad is None
