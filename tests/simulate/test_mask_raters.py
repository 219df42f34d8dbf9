"""Mask raters: what each kind does, and that strength acts smoothly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotruth.metrics import dice
from annotruth.simulate import MaskRater, noisy_digits, simulate_masks
from annotruth.simulate.mask_raters import make_raters


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([(20, 22), (8, 9, 10)]))
def test_binary_raters_do_as_their_names_say(random_truth, seed, shape):
    truth = random_truth(seed, shape=shape)
    good, over, under, wrong, blank = np.moveaxis(simulate_masks(truth, seed=seed).masks, 1, 0)
    np.testing.assert_array_equal(good, truth)
    assert (over >= truth).all()
    assert (under <= truth).all()
    assert (blank == 0).all()
    if truth.any():
        assert under.sum() < truth.sum() <= over.sum()
        assert (wrong != truth).any()


def test_wrong_lies_inside_over_of_the_same_hand(random_truth):
    truth = random_truth(5, items=4)
    over = simulate_masks(truth, ["over"], seed=1).masks
    wrong = simulate_masks(truth, ["wrong"], seed=1).masks
    assert (wrong <= over).all()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([2, 4]))
def test_strength_zero_is_faithful(random_truth, seed, n_classes):
    truth = random_truth(seed, n_classes=n_classes)
    masks = simulate_masks(truth, strength=0, seed=seed, n_classes=n_classes).masks
    np.testing.assert_array_equal(masks, np.broadcast_to(truth[:, None], masks.shape))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.floats(0, 2), st.floats(0, 2))
def test_a_stronger_rater_errs_wherever_a_weaker_one_does(random_truth, seed, one, other):
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


def test_over_on_one_class_writes_over_the_others_and_nothing_else_moves(random_truth):
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


def test_under_leaves_background_behind_and_blank_only_removes_its_target(random_truth):
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


def test_strengths_multiply_and_names_are_told_apart():
    raters = make_raters([MaskRater("over", 0.5), "over", MaskRater("under", name="zoe")], strength=[2, 1, 0.5])
    assert [(r.name, r.strength) for r in raters] == [("over", 1.0), ("over_2", 1.0), ("zoe", 0.5)]


def test_a_careless_rater_slips_on_one_item_of_five_and_is_faithful_on_the_others(random_truth):
    truth = random_truth(7, items=300, shape=(12, 12))
    masks = simulate_masks(truth, ["careless"], seed=2).masks[:, 0]
    slips = (masks != truth).reshape(len(truth), -1).any(axis=1).mean()
    assert 0.12 < slips < 0.28


def test_a_mixer_gives_whole_objects_another_class_and_misses_them_where_there_is_none():
    truth = np.zeros((40, 20, 20), dtype=np.uint8)
    truth[:, 2:6, 2:6], truth[:, 12:16, 12:16] = 1, 2
    mixed = simulate_masks(truth, ["mixer"], n_classes=3, seed=0).masks[:, 0]
    np.testing.assert_array_equal(mixed > 0, truth > 0)
    corner = mixed[:, 2:6, 2:6].reshape(len(mixed), -1)
    assert (corner == corner[:, :1]).all()
    assert 0.3 < (corner[:, 0] == 2).mean() < 0.7
    missed = simulate_masks((truth == 1).astype(np.uint8), ["mixer"], seed=0).masks[:, 0]
    assert 0.3 < (missed.reshape(40, -1).sum(axis=1) == 0).mean() < 0.7


def test_who_is_good_on_easy_pictures_errs_on_thin_objects():
    thin, thick = np.zeros((2, 60, 24, 24), dtype=np.uint8)
    thin[:, 4:20, 11:13], thick[:, 2:22, 2:22] = 1, 1
    errs = [
        (simulate_masks(truth, ["easy"], seed=1).masks[:, 0] != truth).reshape(60, -1).any(axis=1).mean()
        for truth in (thin, thick)
    ]
    assert errs[0] > 0.9
    assert errs[1] < 0.4


@pytest.mark.parametrize("kind", ["careless", "mixer", "easy"])
def test_strength_zero_is_faithful_of_the_other_kinds_too(random_truth, kind):
    truth = random_truth(3, n_classes=3)
    np.testing.assert_array_equal(simulate_masks(truth, [kind], strength=0, n_classes=3).masks[:, 0], truth)
