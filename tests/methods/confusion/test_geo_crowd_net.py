"""geo-crowd-net on label tables, by loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import softmax

from annotruth.errors import InputError
from annotruth.methods import make_method
from annotruth.methods.confusion.geo_crowd_net import SMOOTHING, log_volume


@pytest.mark.parametrize("volume", ["truth", "raters"])
def test_the_volume_is_the_determinant_of_products(build_shaken, given, batch, volume):
    method, model = build_shaken("geo-crowd-net", volume=volume, volume_weight=0.3)
    truth = softmax(model.truth(batch.images).detach().numpy(), axis=-1)
    matrices = model.annotators(batch.images).dense()[0].detach().numpy()
    likelihood = -np.mean([np.log(truth[i] @ matrices[r][:, label]) for i, r, label in given])
    rows = truth.T if volume == "truth" else np.concatenate(list(matrices), axis=1)
    products = sum(np.outer(column, column) for column in rows.T) / rows.shape[1]
    expected = likelihood - 0.3 * np.log(np.linalg.det(products + SMOOTHING * np.eye(3)))
    loss, explained = method.loss(model, batch, 0.5)
    assert explained.item() == pytest.approx(likelihood)
    assert loss.item() == pytest.approx(expected)


def test_a_negative_weight_is_refused():
    with pytest.raises(InputError, match="volume_weight must not be negative"):
        make_method("geo-crowd-net", "labels", {"volume_weight": -1.0})


def test_of_two_explanations_the_larger_volume_wins():
    """Labels say 0.7 and 0.3: sure truths and unsure raters have more volume than the other way round."""
    sure = torch.tensor([[1.0, 0.0] * 5, [0.0, 1.0] * 5])
    assert log_volume(sure) > log_volume(0.7 * sure + 0.3 * (1 - sure))
