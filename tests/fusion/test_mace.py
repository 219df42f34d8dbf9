"""Raters who answer without looking."""

from __future__ import annotations

import numpy as np
import pytest
from crowdkit.aggregation import MACE as CrowdKit
from scipy.special import digamma

from annotruth import MACE
from annotruth.errors import InputError
from annotruth.fusion.mace import SpammerState

from .crowd_kit import as_array, crowd


class _Continued(CrowdKit):
    """Crowd-kit's MACE, going on from where another one came to."""

    state: SpammerState

    def _initialize(self, n_workers: int, n_labels: int) -> None:
        super()._initialize(n_workers, n_labels)
        self.spamming_, self.thetas_ = (
            np.exp(digamma(counts) - digamma(counts.sum(axis=1, keepdims=True)))
            for counts in (self.state.looking, self.state.habit)
        )


@pytest.mark.parametrize(("n_classes", "priors"), [(2, (0.5, 0.5)), (3, (0.5, 0.5)), (4, (2.0, 1.0))])
def test_what_is_found_stays_where_it_is_in_crowd_kit(n_classes: int, priors: tuple[float, float]) -> None:
    annotations, frame, _ = crowd(60, [0.9, 0.85, 0.8, 0.7, 0.6, 0.3], n_classes, keep=0.8)
    fused = MACE(max_iter=2000, tol=0, spam_prior=priors).fit(annotations)
    peer = _Continued(n_restarts=1, n_iter=3, alpha=priors[0], beta=priors[1])
    peer.state = fused.state_
    np.testing.assert_allclose(fused.predict_proba(), as_array(peer.fit_predict_proba(frame)), atol=1e-4)


def test_crowd_kit_comes_to_the_same_from_a_start_of_its_own() -> None:
    annotations, frame, _ = crowd(30, [0.95, 0.9, 0.8, 0.5], 2)
    peer = CrowdKit(n_restarts=1, n_iter=60, random_state=0).fit_predict_proba(frame)
    np.testing.assert_allclose(MACE(max_iter=500, tol=0).fit(annotations).predict_proba(), as_array(peer), atol=1e-3)


def test_spammers_are_told_from_raters_who_look() -> None:
    annotations, _, truth = crowd(300, [0.9, 0.9, 0.85, 0.25, 0.25], n_classes=4, seed=1)
    fused = MACE().fit(annotations)
    assert (fused.competence_[:3] > 0.7).all()
    assert (fused.competence_[3:] < 0.1).all()
    assert (fused.predict() == truth).mean() > 0.93


@pytest.mark.parametrize("wrong", [{"spam_prior": (1, 0)}, {"spam_prior": (1, 2, 3)}, {"habit_prior": 0}])
def test_priors_that_are_no_counts_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError, match="positive"):
        MACE(**wrong).fit(crowd(5, [0.9, 0.8])[0])
