"""The table on the dense CRF: its data, its columns, and what it says."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from annotruth.experiments.core.task import Trained
from annotruth.experiments.tables.dense_crf import DENSE_CRF, DICE_AFTER, HD95_AFTER, changes_dice, crf_task
from annotruth.metrics import dice


@pytest.mark.parametrize("kind", ["bodies", "digits"])
def test_columns_after_the_crf_score_refined_predictions(kind):
    task = crf_task(kind=kind, seed=0, train=4, test=3)
    truth = task.held_out.truth
    assert len(task.train) == 4
    shifted = np.roll(truth, 1, axis=1)
    model = SimpleNamespace(predict=lambda images, crf=False: truth if crf else shifted)
    trained = Trained(model, task, 0, 1.0, None)
    dice_before, _, hd95_before, _ = (column.score(trained) for column in DENSE_CRF.columns)
    assert dice_before == dice(shifted, truth) < 1 == DICE_AFTER.score(trained)
    assert hd95_before > 0 == HD95_AFTER.score(trained)


def test_the_finding_says_how_far_up_or_down():
    rows = [
        {"setting": "bodies", "method": "mean", "dice": {"mean": 0.9}, "dice_crf": {"mean": 0.91}},
        {"setting": "digits", "method": "mean", "dice": {"mean": 0.9}, "dice_crf": {"mean": 0.88}},
    ]
    up, down = changes_dice()({"rows": rows})
    assert "bodies: after a dense CRF, Dice of mean is 1.00 points above" in up
    assert "2.00 points below" in down
