"""taidtm on label tables, by loops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from annotruth.nn import row_probabilities


def test_scores_of_items_and_raters_add_up(build_shaken, given, batch):
    method, model = build_shaken("taidtm")
    raters = model.annotators
    truth = softmax(model.truth(batch.images).detach().numpy(), axis=-1)
    shared = (0.1 * raters.items(batch.images).relu() @ raters.shared.weight.T + raters.shared.bias).view(-1, 3, 3)
    said = []
    for item, rater, label in given:
        matrix = row_probabilities(shared[item] + raters.own[rater], dim=1).detach().numpy()
        said.append(np.log(truth[item] @ matrix[:, label]))
    assert method.loss(model, batch, 0.5)[0].item() == pytest.approx(-np.mean(said))


def test_labels_are_taken_at_their_word_at_first(build_shaken, given, batch):
    method, model = build_shaken("taidtm")
    truth = softmax(model.truth(batch.images).detach().numpy(), axis=-1)
    at_their_word = -np.mean([np.log(truth[item, label]) for item, _, label in given])
    assert method.loss(model, batch, 0.1)[0].item() == pytest.approx(at_their_word)
    assert not method.objective_is_final(model, 0.1)
