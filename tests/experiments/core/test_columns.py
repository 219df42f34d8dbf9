"""Columns of tables, built on the records of metrics."""

from types import SimpleNamespace

import numpy as np
import pytest

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.experiments.core.columns import (
    BRIER,
    ECE,
    FROM_DATA,
    FROM_MODEL,
    HD95,
    HD95_PIXELS,
    SURFACE_DICE,
    SURFACE_DICE_PIXELS,
    column,
)
from annotruth.experiments.core.task import TaskData, Trained
from annotruth.experiments.data.digits import digits_task
from annotruth.metrics import METRICS, metric, vote_entropy


@pytest.fixture
def trained():
    task = digits_task(keep="all", seed=0, train=4, test=3)
    model = SimpleNamespace(predict=lambda images: task.held_out.truth)
    return Trained(model, task, 0, 1.0, None)


def test_whatever_a_metric_can_need_can_be_fed():
    assert {need for record in METRICS.values() for need in record.needs} <= {*FROM_DATA, *FROM_MODEL}


def test_title_direction_and_form_are_the_records_unless_they_are_given():
    found = column("cm_rmse")
    assert (found.name, found.title, found.better, found.form) == ("cm_rmse", "CM RMSE", "lower", ".4f")
    assert not found.counted
    changed = column("cm_rmse", name="other", better="neither", series="s")
    assert (changed.name, changed.title, changed.better, changed.series) == ("other", "CM RMSE", "neither", "s")


def test_a_new_metric_is_fed_with_what_it_needs(trained):

    @metric("area error", "prediction", "truth", better="lower", unit="px", form=".1f")
    def area_error(prediction, truth):
        return abs(float((prediction > 0).sum()) - float((truth > 0).sum()))

    try:
        found = column("area_error")
        assert (found.title, found.better, found.form) == ("area error (px)", "lower", ".1f")
        assert found.score(trained) == 0
    finally:
        del METRICS["area_error"]


def test_a_metric_that_gives_a_number_for_each_item_is_averaged(trained):
    expected = vote_entropy(trained.task.held_out.masks, 2).mean()
    assert column("vote_entropy").score(trained) == pytest.approx(expected)


def test_the_model_is_not_asked_where_the_data_lack_what_it_would_be_compared_with(trained):
    task = TaskData(trained.task.train, trained.task.held_out)
    model = SimpleNamespace(confusion=lambda images: pytest.fail("asked"))
    assert column("cm_rmse").score(Trained(model, task, 0, 1.0, None)) is None


def test_classifiers_are_asked_in_their_own_way():
    held_out = SimpleNamespace(kind="labels", truth=np.array([0, 1]))
    model = SimpleNamespace(predict_proba=lambda ann: np.array([[0.9, 0.1], [0.8, 0.2]]), confusion_=np.eye(2)[None])
    task = SimpleNamespace(held_out=held_out, confusion=np.eye(2)[None])
    trained = Trained(model, task, 0, 1.0, None)
    assert column("accuracy").score(trained) == 0.5
    assert column("cm_error").score(trained) == 0


def test_distances_are_in_millimetres_where_the_data_tell_the_spacing_and_else_in_pixels():
    truth, prediction = np.zeros((2, 1, 6), dtype=np.uint8), np.zeros((2, 1, 6), dtype=np.uint8)
    truth[:, 0, 1], prediction[:, 0, 3] = 1, 1
    model = SimpleNamespace(predict=lambda images: prediction)

    def score(columns, spacing):
        held_out = Annotations.from_masks(truth[:, None], truth[:, None], classes=2, truth=truth, spacing=spacing)
        return [each.score(Trained(model, TaskData(held_out, held_out), 0, 1.0, None)) for each in columns]

    assert score([HD95, SURFACE_DICE], (1.0, 0.5)) == [1.0, 1.0]
    assert score([HD95, SURFACE_DICE], [(1.0, 0.5), None]) == score([HD95, SURFACE_DICE], None) == [None, None]
    for spacing in ((1.0, 0.5), None):
        assert score([HD95_PIXELS, SURFACE_DICE_PIXELS], spacing) == [2.0, 0.0]
    assert [each.title for each in (HD95, HD95_PIXELS)] == ["HD95 (mm)", "HD95 (pixels)"]
    assert HD95.better == HD95_PIXELS.better == "lower"


def test_calibration_is_measured_on_masks_and_label_tables():
    probabilities = np.array([[0.9, 0.1], [0.8, 0.2]])
    expected = pytest.approx((0.1 + 0.8) / 2), pytest.approx(2 * (0.01 + 0.64) / 2)
    labels = SimpleNamespace(kind="labels", truth=np.array([0, 1]))
    model = SimpleNamespace(predict_proba=lambda given: probabilities if given is labels else None)
    table = Trained(model, SimpleNamespace(held_out=labels), 0, 1.0, None)
    assert (ECE.score(table), BRIER.score(table)) == expected
    pictures = np.zeros((2, 1, 1, 1))
    masks = SimpleNamespace(kind="masks", images=pictures, truth=np.array([[[0]], [[1]]]))
    model = SimpleNamespace(predict_proba=lambda given: probabilities[..., None, None] if given is pictures else None)
    drawn = Trained(model, SimpleNamespace(held_out=masks), 0, 1.0, None)
    assert (ECE.score(drawn), BRIER.score(drawn)) == expected


def test_an_unknown_metric_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match=r"metric.*dyce.*accuracy"):
        column("dyce")
