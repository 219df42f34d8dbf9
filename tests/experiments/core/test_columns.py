"""Columns of tables, built on the records of metrics."""

from types import SimpleNamespace

import numpy as np
import pytest

from annotruth.errors import InputError
from annotruth.experiments.core.columns import FROM_DATA, FROM_MODEL, column
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


def test_an_unknown_metric_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match=r"metric.*dyce.*accuracy"):
        column("dyce")
