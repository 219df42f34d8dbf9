"""logit-clip: long scores are shortened while the network learns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from annotruth.errors import InputError
from annotruth.methods import make_method


def test_long_scores_are_shortened(build, fused_batch):
    method, model = build("logit-clip", raters=1, longest=0.5)
    scores = model.truth(fused_batch.images).detach().numpy()
    said = []
    for item, label in ((0, 0), (1, 2), (3, 1), (4, 2)):
        length = np.linalg.norm(scores[item])
        said.append(np.log(softmax(scores[item] * min(1, 0.5 / length))[label]))
    assert np.linalg.norm(scores, axis=1).max() > 0.5
    assert method.loss(model, fused_batch, 0.5)[0].item() == pytest.approx(-np.mean(said))


def test_a_length_of_zero_is_refused():
    with pytest.raises(InputError, match="longest must be greater than 0"):
        make_method("logit-clip", "labels", {"longest": 0.0})
