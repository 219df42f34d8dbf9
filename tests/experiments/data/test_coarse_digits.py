"""Coarse drawings of digits: rows share them, and each kind varies by itself."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth.errors import ContradictionWarning
from annotruth.experiments.data.coarse_digits import coarse_digits_task

pytestmark = pytest.mark.filterwarnings(f"ignore::{ContradictionWarning.__module__}.ContradictionWarning")


def test_rows_share_digits_whatever_is_drawn_on_them():
    sizes = {"seed": 1, "pool": 30, "train": 20, "test": 10}
    drawn, scribbles = coarse_digits_task(**sizes), coarse_digits_task(**sizes, ratio=0.01)
    boxes, semi = coarse_digits_task(**sizes, boxes=True), coarse_digits_task(**sizes, semi=True)
    for task in (scribbles, boxes, semi):
        np.testing.assert_array_equal(task.held_out.truth, drawn.held_out.truth)
        np.testing.assert_array_equal(task.train.images[:20], drawn.train.images)
    assert (scribbles.train.masks == 1).sum() < 0.1 * (drawn.train.masks == 1).sum()
    assert not boxes.train.has_negatives
    assert len(semi.train) == 30
    assert (semi.train.masks[:20] == 255).all()
    np.testing.assert_array_equal(semi.known[:20], drawn.train.truth)
    assert (semi.known[20:] == 255).all()
    assert (semi.train.masks[20:] == 1).any()


@pytest.mark.parametrize("vary", ["positive", "negative"])
def test_one_kind_varies_by_itself(vary):
    sizes = {"seed": 1, "pool": 20, "train": 20, "test": 5}
    task, whole = coarse_digits_task(**sizes, ratio=0.1, vary=vary), coarse_digits_task(**sizes)

    def marks(task):
        negatives = np.stack([task.train.item_negatives(i) for i in range(20)])
        return {"positive": (task.train.masks == 1).sum(), "negative": (negatives == 1).sum()}

    other = {"positive": "negative", "negative": "positive"}[vary]
    assert marks(task)[vary] < 0.3 * marks(whole)[vary]
    assert marks(task)[other] >= marks(whole)[other]  # fewer contradictions
