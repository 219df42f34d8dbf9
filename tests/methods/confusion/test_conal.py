"""conal on label tables, by loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import expit, softmax


def test_answers_mix_common_and_own_confusion(build_shaken, given, batch):
    method, model = build_shaken("conal", difference_weight=0.1)
    maps = model.annotators
    truth = softmax(model.truth(batch.images).detach().numpy(), axis=-1)
    items = maps.items(batch.images).detach().numpy()
    raters, own, common = (part.detach().numpy() for part in (maps.raters, maps.own, maps.common))
    said = []
    for item, rater, label in given:
        one, other = items[item], raters[rater]
        share = expit(one @ other / np.linalg.norm(one) / np.linalg.norm(other))
        scores = truth[item] @ (share * common + (1 - share) * own[rater])
        said.append(np.log(softmax(scores)[label]))
    difference = np.mean([np.sum((own[rater] - common) ** 2) for rater in range(4)])
    loss, likelihood = method.loss(model, batch, 0.5)
    assert likelihood.item() == pytest.approx(-np.mean(said))
    assert loss.item() == pytest.approx(-np.mean(said) - 0.1 * difference)


def test_some_raters_of_a_batch_are_those_that_were_named(build_shaken, batch):
    _, model = build_shaken("conal")
    some = torch.tensor([2, 0])
    torch.testing.assert_close(
        model.confusion(batch.images, some).dense(), model.confusion(batch.images).dense()[:, some]
    )
