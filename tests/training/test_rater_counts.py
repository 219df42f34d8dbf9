"""What a trained model says of each rater, against the metrics computed from its own predictions."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth.data.confusion import confusion_counts
from annotruth.methods import make_method
from annotruth.metrics import expected_confusion, per_item_confusion
from annotruth.training.datasets import MaskDataset
from annotruth.training.rater_counts import count_items, resampled_intervals, row_means
from annotruth.training.raters import RaterFacts

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")


@pytest.fixture(scope="module")
def annotations(make_cases):
    """Two labels an item, so that every rater missed some."""
    return make_cases(10, (12, 12), classes=3, raters=("good", "over", "under"), keep=2)


@pytest.fixture(scope="module")
def models(annotations, tiny):
    options = {"validation": 0, "max_epochs": 3, "learning_rate": 0.02}
    return {method: tiny(method, **options).fit(annotations) for method in ("mean", "global-cm", "pixel-cm")}


def counted(model, annotations, patch=None, batch_size=4):
    cases = MaskDataset(annotations).standardise(model._standard)
    return count_items(make_method(model.method, "masks"), model.module_, cases, batch_size, patch)


def test_labels_are_counted_against_the_estimated_truth(annotations, models):
    model = models["mean"]
    posterior = model.predict_proba(annotations.images)
    rows = counted(model, annotations).met
    assert rows.shape == (10, 3, 3, 3)
    given = annotations.labelled()
    expected = expected_confusion(posterior, annotations.masks)
    shares = rows / np.maximum(rows.sum(axis=3, keepdims=True), 1e-12)
    np.testing.assert_allclose(shares[given], expected[given], atol=1e-5)
    assert (rows[~given] == 0).all()
    # Over all items at once: the items laid side by side are one large item.
    together = expected_confusion(
        np.concatenate(list(posterior), axis=1)[None], np.concatenate(list(annotations.masks), axis=1)[None]
    )
    np.testing.assert_allclose(model.confusion_, together[0], atol=1e-5)


def test_learnt_matrices_are_averaged_with_the_estimated_truth_as_weight(annotations, models):
    model = models["pixel-cm"]
    images = annotations.images
    posterior = model.predict_proba(images)
    maps = np.stack([model.confusion_maps(image) for image in images])
    expected = per_item_confusion(posterior, maps)
    np.testing.assert_allclose(model.confusion(images), expected, atol=1e-5)
    side_by_side = per_item_confusion(
        np.concatenate(list(posterior), axis=1)[None], np.concatenate(list(maps), axis=3)[None]
    )
    np.testing.assert_allclose(model.confusion_, side_by_side[0], atol=1e-5)


def test_one_matrix_for_all_images(annotations, models):
    images = annotations.images[:4]
    for method in ("mean", "global-cm"):
        confusion = models[method].confusion(images)
        assert confusion.shape == (4, 3, 3, 3)
        np.testing.assert_allclose(confusion, np.broadcast_to(models[method].confusion_, confusion.shape), atol=1e-5)


@pytest.mark.parametrize("method", ["mean", "global-cm", "pixel-cm"])
def test_annotators(annotations, models, method):
    model = models[method]
    assert tuple(model.annotators_) == annotations.raters
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
        assert annotator.labelled == annotations.labelled()[:, position].sum()


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


@pytest.mark.parametrize("method", ["mean", "global-cm", "pixel-cm"])
@pytest.mark.parametrize("patch", [None, (5, 4), (7, 20), (13, 13)])
def test_every_pixel_counts_once_and_padding_never(make_cases, models, method, patch):
    sizes = [(12, 12), (7, 15), (13, 4), (5, 5)]
    annotations = make_cases(4, sizes, classes=3, raters=("good", "over", "under"))
    counts = counted(models[method], annotations, patch)
    pixels = np.array([height * width for height, width in sizes])
    for rows in (counts.met, counts.learnt):
        if rows is not None:
            np.testing.assert_allclose(rows.sum(axis=(2, 3)), pixels[:, None].repeat(3, axis=1), rtol=1e-5)
    np.testing.assert_allclose(counts.decided.sum(axis=(1, 2)), [pixels.sum()] * 3)


def test_the_two_raters_who_agree_best(annotations, models):
    """Each labelled two thirds of the items, so every two share some."""
    masks, best = annotations.masks, np.zeros(3)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        shared = (masks[:, one] != 255) & (masks[:, other] != 255)
        a, b = masks[:, one][shared], masks[:, other][shared]
        scores = [2 * ((a == c) & (b == c)).sum() / ((a == c).sum() + (b == c).sum()) for c in range(3)]
        best = np.maximum(best, scores)
    np.testing.assert_allclose(counted(models["mean"], annotations).alike, best)


def test_labels_against_the_likeliest_class(annotations, models):
    model = models["pixel-cm"]
    likeliest = model.predict(annotations.images)
    expected = confusion_counts(likeliest[:, None], annotations.masks, 3, batch_axes=2).sum(axis=0)
    np.testing.assert_allclose(counted(model, annotations).decided, expected)


def test_a_row_without_evidence_is_taken_as_faithful_but_not_as_sure():
    rows = np.zeros((3, 2, 2, 2))
    rows[:, 0, 0] = [6, 2]
    rows[:, 0, 1] = [0, 8]
    confusion = row_means(rows.sum(axis=0), rows.sum(axis=(0, 3)))
    np.testing.assert_allclose(confusion, [[[0.75, 0.25], [0, 1]], np.eye(2)])
    matrices, skills = resampled_intervals(rows, seed=0)
    np.testing.assert_allclose(matrices[0], [confusion[0], confusion[0]])
    np.testing.assert_allclose(matrices[1], [np.zeros((2, 2)), np.ones((2, 2))])
    np.testing.assert_allclose(skills, [[0.875, 0.875], [0, 1]])


def test_intervals_against_the_normal_approximation():
    items = 400
    right = np.random.default_rng(0).normal(0.7, 0.1, size=(items, 1, 2))
    rows = np.zeros((items, 1, 2, 2))
    rows[:, :, [0, 1], [0, 1]], rows[:, :, [0, 1], [1, 0]] = right, 1 - right
    ((entries_low, entries_high),), ((low, high),) = resampled_intervals(rows, seed=0)
    error = 1.96 * right.mean(axis=2).std() / np.sqrt(items)
    assert low == pytest.approx(right.mean() - error, abs=error / 3)
    assert high == pytest.approx(right.mean() + error, abs=error / 3)
    error = 1.96 * right[:, 0].std(axis=0) / np.sqrt(items)
    np.testing.assert_allclose(np.diag(entries_low), right[:, 0].mean(axis=0) - error, atol=error.max() / 3)
    np.testing.assert_allclose(np.diag(entries_high), right[:, 0].mean(axis=0) + error, atol=error.max() / 3)
    np.testing.assert_allclose(entries_low + entries_high[:, ::-1], 1)  # two classes: one entry mirrors the other


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
