"""What a trained model says of each rater: a matrix and how sure it is, and what the rater would draw."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth.training.raters import RaterFacts

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")


@pytest.mark.parametrize("method", ["mean", "global-cm", "pixel-cm"])
def test_annotators(thinned, models, method):
    model = models[method]
    assert tuple(model.annotators_) == thinned.raters
    for position, (name, annotator) in enumerate(model.annotators_.items()):
        assert annotator.name == name
        assert name in repr(annotator)
        np.testing.assert_array_equal(annotator.confusion, model.confusion_[position])
        np.testing.assert_allclose(annotator.confusion.sum(axis=1), 1, atol=1e-6)
        assert annotator.skill == pytest.approx(np.diag(annotator.confusion).mean())
        low, high = annotator.interval
        assert 0 <= low <= annotator.skill <= high <= 1 + 1e-9
        assert annotator.confusion_interval.shape == (2, 3, 3)
        below, above = annotator.confusion_interval
        assert (below >= 0).all()
        assert (below <= annotator.confusion).all()
        assert (annotator.confusion <= above).all()
        assert (above <= 1 + 1e-6).all()
        assert (above - below).max() > 0.001  # also where a rater has one matrix for all images
        assert annotator.labelled == thinned.labelled()[:, position].sum()


@pytest.mark.parametrize("method", ["mean", "global-cm", "pixel-cm"])
def test_what_a_rater_would_draw(models, method):
    image = np.random.default_rng(1).normal(size=(1, 9, 14)).astype(np.float32)
    model = models[method]
    truth = model.predict_proba(image[None])[0]
    for annotator in model.annotators_.values():
        maps = annotator.confusion_map(image)
        if method == "pixel-cm":
            assert maps.shape == (3, 3, 9, 14)
            np.testing.assert_allclose(maps.sum(axis=1), 1, atol=1e-5)
        else:
            assert maps is None
            maps = np.broadcast_to(annotator.confusion[:, :, None, None], (3, 3, 9, 14))
        expected = np.zeros((3, 9, 14))
        for true in range(3):
            for observed in range(3):
                expected[observed] += truth[true] * maps[true, observed]
        drawn = annotator.predict_proba(image)
        np.testing.assert_allclose(drawn, expected, atol=1e-5)
        np.testing.assert_allclose(drawn.sum(axis=0), 1, atol=1e-5)
        labels = annotator.predict(image)
        assert labels.dtype == np.uint8
        np.testing.assert_array_equal(labels, drawn.argmax(axis=0))


@pytest.mark.parametrize("method", ["mean", "majority", "clean"])
def test_a_blank_rater_calls_everything_background(make_cases, tiny, method):
    annotator = tiny(method, max_epochs=1).fit(make_cases()).annotators_["blank"]
    np.testing.assert_allclose(annotator.confusion, [[1, 0], [1, 0]])
    assert annotator.skill == annotator.interval[0] == annotator.interval[1] == 0.5


def test_bounds_are_widened_to_hold_a_matrix_the_labels_do_not_bear_out():
    matrix, bounds = np.array([[[0.9, 0.1], [0.0, 1.0]]]), np.array([[[[0.7] * 2] * 2, [[0.8] * 2] * 2]])
    facts = RaterFacts.holding(matrix, bounds, np.array([[0.7, 0.8]]), np.array([3]))
    np.testing.assert_allclose(facts.interval, [[0.7, 0.95]])
    np.testing.assert_allclose(facts.confusion_interval[0, 0], [[0.7, 0.1], [0.0, 0.7]])
    np.testing.assert_allclose(facts.confusion_interval[0, 1], [[0.9, 0.8], [0.8, 1.0]])


def test_ranking_of_a_model(models):
    for model in models.values():
        table = model.ranking_
        assert sorted(table.rater) == sorted(model.raters_)
        assert table.skill.is_monotonic_decreasing
        assert (table.best_rank <= table["rank"]).all()
        assert (table["rank"] <= table.worst_rank).all()


# Trainings of an epoch or two: a model that knows little is rightly doubted.
