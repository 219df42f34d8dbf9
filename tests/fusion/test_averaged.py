"""Several models' posteriors, averaged."""

from __future__ import annotations

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError

from .crowd_kit import crowd

MEMBERS = [("majority", {}, 1.0), ("dawid-skene", {"one_coin": True}, 2.0), ("glad", {}, 1.0)]


def test_the_posterior_is_the_weighted_mean_of_the_models() -> None:
    annotations, _, _ = crowd(120, [0.9, 0.8, 0.7, 0.6], n_classes=3, keep=0.8)
    fused = at.AveragedModels(members=MEMBERS).fit(annotations)
    alone = [each.fit(annotations) for each in (at.MajorityVote(), at.DawidSkene(one_coin=True), at.GLAD())]
    mean = np.average([each.predict_proba() for each in alone], axis=0, weights=[1, 2, 1])
    np.testing.assert_allclose(fused.predict_proba(), mean, atol=1e-12)
    np.testing.assert_allclose(fused.prior_, np.average([each.prior_ for each in alone], axis=0, weights=[1, 2, 1]))
    np.testing.assert_allclose(fused.weights_, [0.25, 0.5, 0.25])


def test_intervals_draw_items_anew_without_learning_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    fused = at.AveragedModels().fit(crowd(400, [0.9, 0.8, 0.7, 0.6])[0])
    monkeypatch.setattr("annotruth.fusion.dawid_skene.maximise", None)
    low, high = fused.skill_interval()
    assert ((low < fused.skill_) & (fused.skill_ < high)).all()
    assert (high - low < 0.15).all()


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([], "positive weights"),
        ([("majority", {}, 0.0)], "positive weights"),
        ([("majority", {})], "a method, its options and a weight each"),
        ([("spatial-staple", {}, 1.0)], "cannot be averaged"),
        ([("mjority", {}, 1.0)], "majority"),
    ],
)
def test_members_that_cannot_be_averaged_are_refused(members: list, words: str) -> None:
    with pytest.raises(InputError, match=words):
        at.AveragedModels(members=members).fit(crowd(20, [0.9, 0.8, 0.7])[0])
