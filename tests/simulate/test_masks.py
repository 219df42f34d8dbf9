"""Mask raters: what each kind does, that strength acts smoothly, and that their confusion is what was counted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix as sklearn_confusion

from annotruth.errors import InputError
from annotruth.metrics import dice
from annotruth.simulate import MaskRater, noisy_digits, simulate_masks
from annotruth.simulate.mask_raters import make_raters
from annotruth.simulate.morphology import smooth_field


def random_truth(seed: int, items: int = 2, shape: tuple[int, ...] = (20, 22), n_classes: int = 2) -> np.ndarray:
    rng = np.random.default_rng(seed)
    fields = np.stack([smooth_field(shape, rng) for _ in range(items)])
    return np.clip((fields - 0.55) * n_classes / 0.45 + 1, 0, n_classes - 1).astype(np.uint8)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([(20, 22), (8, 9, 10)]))
def test_binary_raters_do_as_their_names_say(seed, shape):
    truth = random_truth(seed, shape=shape)
    good, over, under, wrong, blank = np.moveaxis(simulate_masks(truth, seed=seed).masks, 1, 0)
    np.testing.assert_array_equal(good, truth)
    assert (over >= truth).all()
    assert (under <= truth).all()
    assert (blank == 0).all()
    if truth.any():
        assert under.sum() < truth.sum() <= over.sum()
        assert (wrong != truth).any()


def test_wrong_lies_inside_over_of_the_same_hand():
    truth = random_truth(5, items=4)
    over = simulate_masks(truth, ["over"], seed=1).masks
    wrong = simulate_masks(truth, ["wrong"], seed=1).masks
    assert (wrong <= over).all()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([2, 4]))
def test_strength_zero_is_faithful(seed, n_classes):
    truth = random_truth(seed, n_classes=n_classes)
    masks = simulate_masks(truth, strength=0, seed=seed, n_classes=n_classes).masks
    np.testing.assert_array_equal(masks, np.broadcast_to(truth[:, None], masks.shape))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.floats(0, 2), st.floats(0, 2))
def test_a_stronger_rater_errs_wherever_a_weaker_one_does(seed, one, other):
    truth = random_truth(seed)
    weak, strong = sorted((one, other))
    for kind in ("over", "under", "blank"):
        errs_weakly = simulate_masks(truth, [kind], strength=weak, seed=seed).masks != truth[:, None]
        errs_strongly = simulate_masks(truth, [kind], strength=strong, seed=seed).masks != truth[:, None]
        assert (errs_weakly <= errs_strongly).all()


def test_strength_sweeps_the_groups_dice_smoothly():
    _, truth, _ = noisy_digits(60)
    strengths = np.linspace(0, 1.2, 13)
    group = []
    for strength in strengths:
        masks = simulate_masks(truth, ["good", "over", "under", "wrong", "blank"], strength=strength).masks
        group.append(np.mean([dice(masks[:, rater], truth) for rater in range(5)]))
    steps = -np.diff(group)
    assert group[0] == 1
    assert (steps > 0).all()
    assert steps.max() < 0.09


def test_dice_at_strength_one_is_as_in_the_paper_on_digits():
    _, truth, _ = noisy_digits(300)
    simulation = simulate_masks(truth)
    scores = {name: dice(simulation.masks[:, r], truth) for r, name in enumerate(simulation.raters)}
    assert scores["good"] == 1
    assert scores["over"] == pytest.approx(0.65, abs=0.02)
    assert scores["under"] == pytest.approx(0.33, abs=0.03)
    assert scores["wrong"] == pytest.approx(0.66, abs=0.02)
    assert scores["blank"] == 0


def test_over_on_one_class_writes_over_the_others_and_nothing_else_moves():
    truth = random_truth(1, items=3, n_classes=4)
    mask = simulate_masks(truth, [MaskRater("over", target=2)], n_classes=4).masks[:, 0]
    changed = mask != truth
    assert changed.any()
    assert (mask[changed] == 2).all()
    assert set(np.unique(truth[changed])) > {1}


def test_over_on_all_classes_writes_over_background_only_and_takes_the_nearest_class():
    truth = np.zeros((1, 5, 12), dtype=np.uint8)
    truth[0, 2, 3], truth[0, 2, 8] = 1, 2
    mask = simulate_masks(truth, [MaskRater("over", strength=2 / 1.48)], n_classes=3).masks[0, 0]
    np.testing.assert_array_equal(mask[2], [0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 0])


def test_under_leaves_background_behind_and_blank_only_removes_its_target():
    truth = random_truth(2, items=3, n_classes=4)
    under, blank = np.moveaxis(
        simulate_masks(truth, [MaskRater("under", target=1), MaskRater("blank", target=3)], n_classes=4).masks, 1, 0
    )
    assert (under[under != truth] == 0).all()
    assert (truth[under != truth] == 1).all()
    np.testing.assert_array_equal(blank, np.where(truth == 3, 0, truth))


def test_wrong_takes_one_class_for_another():
    truth = np.zeros((2, 40, 60), dtype=np.uint8)
    truth[:, 10:30, 5:15], truth[:, 10:30, 22:32], truth[:, 10:30, 42:52] = 1, 2, 3
    # Cuts leave background behind; whatever is still drawn is the other class, and never the right one.
    confusion = simulate_masks(truth, ["wrong"]).confusion[0]
    for true, taken_for in ((1, 2), (2, 3), (3, 1)):
        assert confusion[true, taken_for] > 0.4
        assert confusion[true, 0] + confusion[true, taken_for] == pytest.approx(1)
    swap = simulate_masks(truth, [MaskRater("wrong", target=3)]).confusion[0]
    assert swap[2, 2] > 0.9
    assert swap[1, 3] > 0.9
    assert swap[3, 1] > 0.3
    assert swap[3, 0] + swap[3, 1] == pytest.approx(1)


@pytest.mark.parametrize(("shape", "n_classes"), [((20, 22), 2), ((20, 22), 4), ((8, 9, 10), 3)])
def test_confusion_is_what_scikit_learn_counts(shape, n_classes):
    truth = random_truth(7, items=3, shape=shape, n_classes=n_classes)
    simulation = simulate_masks(truth, n_classes=n_classes)
    labels = list(range(n_classes))
    for rater in range(5):
        masks = simulation.masks[:, rater]
        expected = sklearn_confusion(truth.ravel(), masks.ravel(), labels=labels, normalize="true")
        np.testing.assert_allclose(simulation.confusion[rater], expected)
        expected = sklearn_confusion(truth[1].ravel(), masks[1].ravel(), labels=labels, normalize="true")
        there = ~np.isnan(simulation.confusion_per_item[1, rater]).any(axis=1)
        assert set(labels) - set(np.unique(truth[1])) == set(np.flatnonzero(~there))
        np.testing.assert_allclose(simulation.confusion_per_item[1, rater][there], expected[there])
        np.testing.assert_allclose(simulation.confusion_per_item[1, rater][there].sum(axis=1), 1)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 5), st.integers(0, 1000))
def test_exactly_k_masks_are_kept_per_item_and_confusion_knows_the_others(k, seed):
    truth = random_truth(seed, items=4)
    full, some = simulate_masks(truth, seed=seed), simulate_masks(truth, seed=seed, keep=k)
    given_masks = (some.masks != 255).any(axis=(2, 3))
    assert (given_masks.sum(axis=1) == k).all()
    np.testing.assert_array_equal(some.masks[given_masks], full.masks[given_masks])
    np.testing.assert_array_equal(some.confusion, full.confusion)
    np.testing.assert_array_equal(some.confusion_per_item, full.confusion_per_item)


def test_unknown_pixels_stay_unknown_and_are_no_border():
    truth = np.ones((1, 9, 9), dtype=np.uint8)
    truth[0, :, 5:] = 255
    simulation = simulate_masks(truth, ["over", "under", "wrong", "blank"])
    assert (simulation.masks[0, :, :, 5:] == 255).all()
    np.testing.assert_array_equal(simulation.masks[0, 1, :, :5], 1)  # nothing to shrink from


def test_an_item_does_not_depend_on_those_after_it_nor_a_rater_on_later_raters():
    truth = random_truth(3, items=6)
    six, two = simulate_masks(truth, keep=2, seed=4), simulate_masks(truth[:2], keep=2, seed=4)
    np.testing.assert_array_equal(six.masks[:2], two.masks)
    first = simulate_masks(truth, ["over", "under"], seed=4).masks
    np.testing.assert_array_equal(first, simulate_masks(truth, ["over", "under", "wrong"], seed=4).masks[:, :2])
    assert (simulate_masks(truth, ["wrong"], seed=5).masks != simulate_masks(truth, ["wrong"], seed=6).masks).any()


def test_items_of_different_sizes():
    truth = [random_truth(1, items=1)[0], random_truth(2, items=1, shape=(15, 31))[0]]
    simulation = simulate_masks(truth)
    assert [masks.shape for masks in simulation.masks] == [(5, 20, 22), (5, 15, 31)]
    annotations = simulation.annotations()
    assert annotations.raters == ("good", "over", "under", "wrong", "blank")
    np.testing.assert_array_equal(annotations.item_truth(1), truth[1])


def test_annotations_carry_truth_images_and_names():
    images, truth, _ = noisy_digits(6)
    annotations = simulate_masks(truth, {"ann": "good", "bob": "under"}, keep=1).annotations(
        images, classes=["paper", "ink"], items=list("abcdef")
    )
    assert annotations.raters == ("ann", "bob")
    assert annotations.classes == ("paper", "ink")
    np.testing.assert_array_equal(annotations.truth, truth)
    np.testing.assert_array_equal(annotations.images, images)
    assert (annotations.labelled().sum(axis=1) == 1).all()


def test_strengths_multiply_and_names_are_told_apart():
    raters = make_raters([MaskRater("over", 0.5), "over", MaskRater("under", name="zoe")], strength=[2, 1, 0.5])
    assert [(r.name, r.strength) for r in raters] == [("over", 1.0), ("over_2", 1.0), ("zoe", 0.5)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"raters": ["godo"]}, "Known: good, over"),
        ({"raters": "good"}, "list of kinds"),
        ({"raters": ["good", MaskRater("over", name="good")]}, "named twice: good"),
        ({"strength": [1.0, 2.0]}, "5 raters but 2 strengths"),
        ({"strength": -1.0}, "0 or more"),
        ({"keep": 6}, "how many of the 5 raters"),
        ({"keep": 0}, "how many of the 5 raters"),
        ({"n_classes": 1}, "outside the classes"),
        ({"raters": [MaskRater("over", target=2)]}, "errs on class 2"),
    ],
)
def test_wrong_use_is_explained(arguments, message):
    with pytest.raises(InputError, match=message):
        simulate_masks(random_truth(0), **arguments)


def test_a_background_target_and_empty_truth_are_refused():
    with pytest.raises(InputError, match="foreground class"):
        MaskRater("over", target=0)
    with pytest.raises(InputError, match="no item"):
        simulate_masks(np.zeros((0, 4, 4), dtype=np.uint8))
    with pytest.raises(InputError, match="at least two classes"):
        simulate_masks(np.zeros((1, 4, 4), dtype=np.uint8), n_classes=1)
