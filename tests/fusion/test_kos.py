"""Message passing for two classes."""

from __future__ import annotations

import numpy as np
import pytest
from crowdkit.aggregation import KOS as CrowdKit

from annotruth import KOS, Annotations, MajorityVote
from annotruth.errors import InputError

from .crowd_kit import crowd


@pytest.mark.parametrize("seed", [0, 1])
def test_labels_are_crowd_kits(seed: int) -> None:
    annotations, frame, _ = crowd(80, [0.95, 0.9, 0.8, 0.7, 0.6, 0.55, 0.2], keep=0.8, seed=seed)
    fused = KOS().fit(annotations)
    expected = CrowdKit(n_iter=40, random_state=0).fit_predict(frame).sort_index().to_numpy()
    untied = np.abs(fused.predict_proba()[:, 1] - 0.5) > 1e-3
    np.testing.assert_array_equal(fused.predict()[untied], expected[untied])
    assert untied.mean() > 0.95


def test_a_message_is_the_papers_sum_over_all_other_items() -> None:
    matrix = crowd(12, [0.9, 0.8, 0.7, 0.3], keep=0.7)[0].answer_matrix()
    signs = np.where(matrix < 0, 0, 2 * matrix - 1).astype(float)
    message = np.abs(signs)
    for _ in range(7):
        inferred = np.zeros_like(signs)
        heard = np.zeros_like(signs)
        for i, j in zip(*np.nonzero(signs)):
            inferred[i, j] = sum(signs[i, r] * message[i, r] for r in range(4) if r != j)
        for i, j in zip(*np.nonzero(signs)):
            heard[i, j] = sum(signs[k, j] * inferred[k, j] for k in range(12) if k != i)
        message = heard / np.abs(heard).max()
    score = (signs * message).sum(axis=1)
    share = KOS(max_iter=7, tol=0).fit(Annotations.from_answers(matrix)).predict_proba()[:, 1]
    np.testing.assert_allclose((2 * share - 1) * np.abs(message).sum(axis=1), score, atol=1e-12)


def test_liars_help() -> None:
    annotations, _, truth = crowd(400, [0.8, 0.75, 0.7, 0.15, 0.1], seed=2)
    assert (KOS().fit(annotations).predict() == truth).mean() > 0.85
    assert (MajorityVote().fit(annotations).predict() == truth).mean() < 0.75


def test_one_answer_an_item_is_refused_with_advice() -> None:
    alone = Annotations.from_answers(np.array([[1, -1], [-1, 1], [0, -1]]))
    with pytest.raises(InputError, match=r"no item has two answers\. Take dawid-skene with known truth"):
        KOS().fit(alone)


def test_more_than_two_classes_are_refused_with_advice() -> None:
    annotations, _, _ = crowd(20, [0.9, 0.8, 0.7], n_classes=3)
    with pytest.raises(InputError, match=r"there are 3\. Take m-msr or dawid-skene, .*foreground=2"):
        KOS().fit(annotations)
    assert KOS(foreground="2").fit(annotations).classes_ == ("not 2", "2")
