"""soft-bootstrap: the vote mixed with what the network thinks itself."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth.methods import make_method

CLASSES = 3


@pytest.mark.parametrize("trust", [0.0, 0.6, 0.95, 1.0])
def test_soft_bootstrap_mixes_the_vote_with_the_networks_own_answer(build, fused_batch, trust):
    method, model = build("soft-bootstrap", trust=trust)
    truth = model.log_truth(fused_batch.images).exp().detach().numpy()
    terms = []
    for own, vote in zip(truth, fused_batch.labels[:, 0]):
        if vote >= 0:
            target = trust * np.eye(CLASSES)[vote] + (1 - trust) * own
            terms.append(-(target * np.log(own)).sum())
    loss, likelihood = method.loss(model, fused_batch, 0.5)
    assert loss.item() == pytest.approx(np.mean(terms))
    plain, _ = make_method("majority", "labels").loss(model, fused_batch, 0.5)
    assert likelihood.item() == pytest.approx(plain.item())
