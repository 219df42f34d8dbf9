"""What the vote teaches, in every method that learns from it."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth import Annotations
from annotruth.methods import DataSpec, make_method

CLASSES = 3

SPEC = DataSpec(channels=2, raters=4, classes=CLASSES, dims=0, task="labels")


@pytest.mark.parametrize("name", ["majority", "shared-cm", "soft-bootstrap"])
def test_the_vote_teaches_and_nothing_where_nobody_answered(table, name):
    answers = np.array([[0, 0, 1, 2], [-1, -1, -1, -1], [-1, 2, -1, -1], [2, 1, 1, 2]])
    method = make_method(name, "labels")
    fused = method.label_targets(Annotations.from_answers(answers))
    assert table(fused, 4) == [0, -1, 2, 1]  # the lowest class wins a tie
    assert (fused.rater == 0).all()
    assert method.n_targets(SPEC) == 1
