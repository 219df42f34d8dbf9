"""The two large tables: who is in them, and that every data set is there."""

from __future__ import annotations

import pytest

from annotruth.experiments.data.multi_rater import classification_task, segmentation_task
from annotruth.experiments.tables.multi_rater import CLASSIFICATION, SEGMENTATION
from annotruth.methods.registry import methods_for


def test_every_method_of_the_registry_has_a_row_but_those_for_strokes():
    assert [row.method for row in CLASSIFICATION.rows] == methods_for("labels")
    left_out = set(methods_for("masks")) - {row.method for row in SEGMENTATION.rows}
    assert {"scribble-sup", "box-sup", "coarse-cm"} <= left_out
    assert not left_out & {"pixel-cm", "global-cm", "mrprism", "prob-unet", "staple", "clean"}


@pytest.mark.parametrize(
    ("experiment", "task"), [(CLASSIFICATION, classification_task), (SEGMENTATION, segmentation_task)]
)
def test_every_data_set_has_a_stand_in_that_learners_can_be_given(experiment, task):
    for setting, arguments in experiment.settings.items():
        made = task(**arguments, **experiment.quick.of(setting).sizes, seed=0)
        assert made.train.has_truth
        assert len(made.held_out) > 0
