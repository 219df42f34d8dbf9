"""Skills from how far pairs of raters agree."""

from __future__ import annotations

import numpy as np
import pytest
from crowdkit.aggregation import MMSR as CrowdKit

from annotruth import MMSR, Annotations, MajorityVote
from annotruth.errors import InputError

from .crowd_kit import crowd, weighted_vote


@pytest.mark.parametrize(("n_classes", "seed"), [(2, 0), (3, 1), (5, 2)])
def test_weights_and_labels_are_crowd_kits(n_classes: int, seed: int) -> None:
    annotations, frame, _ = crowd(150, [0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.1], n_classes, keep=0.8, seed=seed)
    fused, peer = MMSR(max_iter=5000, tol=1e-11).fit(annotations), CrowdKit(random_state=0, tol=1e-11).fit(frame)
    np.testing.assert_allclose(fused.state_.weight, peer.skills_.sort_index(), atol=1e-4)
    scores = weighted_vote(frame, peer.skills_)
    best = np.sort(scores, axis=1)
    untied = best[:, -1] - best[:, -2] > 1e-6
    np.testing.assert_array_equal(fused.predict()[untied], scores.argmax(axis=1)[untied])


def test_raters_who_lie_on_purpose_are_turned_round() -> None:
    annotations, _, truth = crowd(600, [0.8] * 6 + [0.1] * 3, seed=3)
    fused = MMSR().fit(annotations)
    assert (fused.predict() == truth).mean() > (MajorityVote().fit(annotations).predict() == truth).mean() + 0.05
    assert (np.sign(fused.state_.weight) == [1] * 6 + [-1] * 3).all()


def test_raters_who_share_no_item_are_refused_with_advice() -> None:
    apart = np.full((4, 4), -1)
    np.fill_diagonal(apart, [0, 1, 0, 1])
    with pytest.raises(InputError, match=r"no two of them did.*dawid-skene"):
        MMSR().fit(Annotations.from_answers(apart))


def test_too_many_raters_for_a_table_of_pairs_are_refused_with_advice() -> None:
    answers = Annotations.from_answers(np.eye(1, 20_001, dtype=int))
    with pytest.raises(InputError, match=r"20,001 raters have too many pairs.*--option one_coin=true"):
        MMSR().fit(answers)


def test_a_rater_who_shares_no_item_weighs_nothing() -> None:
    annotations, _, _ = crowd(100, [0.9, 0.8, 0.7])
    matrix = np.pad(annotations.answer_matrix(), ((0, 1), (0, 1)), constant_values=-1)
    matrix[-1, -1] = 1
    fused = MMSR().fit(Annotations.from_answers(matrix))
    assert fused.state_.weight[-1] == 0
    np.testing.assert_allclose(fused.state_.weight[:-1], MMSR().fit(annotations).state_.weight, rtol=0.01)


def test_groups_of_raters_who_share_no_item_have_signs_of_their_own() -> None:
    parts = [crowd(200, [0.9, 0.8, 0.75, 0.7], seed=seed) for seed in range(6)]
    matrix = np.full((1200, 24), -1)
    for number, (part, _, _) in enumerate(parts):
        matrix[200 * number : 200 * (number + 1), 4 * number : 4 * (number + 1)] = part.answer_matrix()
    assert (MMSR().fit(Annotations.from_answers(matrix)).state_.weight > 0).all()
