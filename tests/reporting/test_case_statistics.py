"""The numbers behind the report on masks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score

from annotruth.metrics import pairwise_disagreement
from annotruth.reporting.case_statistics import case_statistics


def test_statistics_of_every_case(make_study) -> None:
    study = make_study(n_items=4)
    masks = study.ann.masks
    masks[0, 1] = 255  # a mask not given
    masks[1, 2, :4] = 255  # part of a mask not given
    statistics = case_statistics(study.model, study.ann)
    assert statistics.missing_masks == pytest.approx(1 / 12)
    assert statistics.missing_pixels == pytest.approx((4 * 20) / (11 * 16 * 20))
    assert statistics.dice == 1
    assert np.isnan(statistics.agreement[0, 1])
    assert statistics.agreement[2, 1] == pytest.approx(f1_score(study.truth[2].ravel(), masks[2, 1].ravel()))
    foreground = study.truth.mean()
    assert statistics.shares == pytest.approx([0.9 - 0.8 * foreground, 0.1 + 0.8 * foreground], abs=1e-6)
    worst = statistics.most_disputed(4)
    assert [case.disagreement for case in worst] == sorted((case.disagreement for case in worst), reverse=True)
    assert case_statistics(study.model, study.ann).cases[2].disagreement == pairwise_disagreement(masks[2:3], 2)[0] > 0


def test_a_lone_rater_is_compared_with_the_estimate_and_nobody_at_all_with_nothing(make_study) -> None:
    study = make_study(n_items=2, raters=("good", "over"))
    study.ann.masks[0, 0] = 255
    study.ann.masks[1] = 255
    alone, unlabelled = case_statistics(study.model, study.ann).cases
    both = np.stack([study.truth[0], study.ann.masks[0, 1]])
    assert alone.disagreement == pairwise_disagreement(both[None], 2)[0] > 0
    assert unlabelled.disagreement == 0
