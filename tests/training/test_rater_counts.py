"""Labels counted against the estimated truth, held against the metrics of the model's own predictions."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth import Annotations
from annotruth.data.confusion import confusion_counts
from annotruth.methods import make_method
from annotruth.metrics import expected_confusion, per_item_confusion
from annotruth.training.datasets import MaskDataset
from annotruth.training.rater_counts import AnswerCounts, count_items, resampled_intervals, row_means

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")


@pytest.fixture
def counted(thinned):
    """Count a model's labels of some cases, standardised as those that it was trained on."""
    standard = MaskDataset(thinned).measure()

    def count(model, annotations, patch=None, batch_size=4):
        cases = MaskDataset(annotations).standardise(standard)
        return count_items(make_method(model.method, "masks"), model.module_, cases, batch_size, patch)

    return count


def test_labels_are_counted_against_the_estimated_truth(counted, thinned, models):
    model = models["mean"]
    posterior = model.predict_proba(thinned.images)
    rows = counted(model, thinned).met
    assert rows.shape == (10, 3, 3, 3)
    given = thinned.labelled()
    expected = expected_confusion(posterior, thinned.masks)
    shares = rows / np.maximum(rows.sum(axis=3, keepdims=True), 1e-12)
    np.testing.assert_allclose(shares[given], expected[given], atol=1e-5)
    assert (rows[~given] == 0).all()
    # Over all items at once: the items laid side by side are one large item.
    together = expected_confusion(
        np.concatenate(list(posterior), axis=1)[None], np.concatenate(list(thinned.masks), axis=1)[None]
    )
    np.testing.assert_allclose(model.confusion_, together[0], atol=1e-5)


def test_learnt_matrices_are_averaged_with_the_estimated_truth_as_weight(thinned, models):
    model = models["pixel-cm"]
    images = thinned.images
    posterior = model.predict_proba(images)
    maps = np.stack([model.confusion_maps(image) for image in images])
    expected = per_item_confusion(posterior, maps)
    np.testing.assert_allclose(model.confusion(images), expected, atol=1e-5)
    side_by_side = per_item_confusion(
        np.concatenate(list(posterior), axis=1)[None], np.concatenate(list(maps), axis=3)[None]
    )
    np.testing.assert_allclose(model.confusion_, side_by_side[0], atol=1e-5)


def test_one_matrix_for_all_images(thinned, models):
    images = thinned.images[:4]
    for method in ("mean", "global-cm"):
        confusion = models[method].confusion(images)
        assert confusion.shape == (4, 3, 3, 3)
        np.testing.assert_allclose(confusion, np.broadcast_to(models[method].confusion_, confusion.shape), atol=1e-5)


@pytest.mark.parametrize("method", ["mean", "global-cm", "pixel-cm"])
@pytest.mark.parametrize("patch", [None, (5, 4), (7, 20), (13, 13)])
def test_every_pixel_counts_once_and_padding_never(counted, make_cases, models, method, patch):
    sizes = [(12, 12), (7, 15), (13, 4), (5, 5)]
    annotations = make_cases(4, sizes, classes=3, raters=("good", "over", "under"))
    counts = counted(models[method], annotations, patch)
    pixels = np.array([height * width for height, width in sizes])
    for rows in (counts.met, counts.learnt):
        if rows is not None:
            np.testing.assert_allclose(rows.sum(axis=(2, 3)), pixels[:, None].repeat(3, axis=1), rtol=1e-5)
    np.testing.assert_allclose(counts.decided.sum(axis=(1, 2)), [pixels.sum()] * 3)


def test_the_two_raters_who_agree_best(counted, thinned, models):
    """Each labelled two thirds of the items, so every two share some."""
    masks, best = thinned.masks, np.zeros(3)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        shared = (masks[:, one] != 255) & (masks[:, other] != 255)
        a, b = masks[:, one][shared], masks[:, other][shared]
        scores = [2 * ((a == c) & (b == c)).sum() / ((a == c).sum() + (b == c).sum()) for c in range(3)]
        best = np.maximum(best, scores)
    np.testing.assert_allclose(counted(models["mean"], thinned).alike, best)


def test_labels_against_the_likeliest_class(counted, thinned, models):
    model = models["pixel-cm"]
    likeliest = model.predict(thinned.images)
    expected = confusion_counts(likeliest[:, None], thinned.masks, 3, batch_axes=2).sum(axis=0)
    np.testing.assert_allclose(counted(model, thinned).decided, expected)


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


# Trainings of an epoch or two: a model that knows little is rightly doubted.


def test_an_unsure_network_does_not_make_good_raters_look_careless() -> None:
    """The truth lies within the interval, once answers count against what items and answers say together."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 10, 500)
    matrix = np.full((10, 10), 0.3 / 9)
    np.fill_diagonal(matrix, 0.7)
    answers = np.column_stack([[rng.choice(10, p=matrix[label]) for label in truth] for _ in range(5)])
    ann = Annotations.from_answers(answers, np.zeros((500, 1)), classes=10)
    unsure = np.full((500, 10), 0.4 / 9)
    unsure[np.arange(500), truth] = 0.6
    learnt = np.stack([matrix] * 5)
    together = AnswerCounts.of(ann, lambda items: unsure[items.start : items.stop], learnt)
    alone = AnswerCounts.of(ann, lambda items: unsure[items.start : items.stop])
    bounds = together.skill_interval(together.skill())
    assert ((bounds[:, 0] < 0.7) & (bounds[:, 1] > 0.7)).all()
    assert (alone.skill_interval(alone.skill())[:, 1] < 0.6).all()
    np.testing.assert_allclose(together.frequency, alone.frequency)
    entries = together.confusion_interval(together.confusion())
    assert entries is not None
    covered = (entries[:, 0] <= learnt) & (learnt <= entries[:, 1])
    assert covered.mean() > 0.9
