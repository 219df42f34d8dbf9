"""Label raters: matrices with the skill they say, alone and in groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotruth.errors import InputError
from annotruth.simulate import (
    cifar10_group,
    class_swapper,
    hammer_spammer,
    label_group,
    neighbour_mixer,
    pairwise_flipper,
    similar_mixer,
)

SKILL = st.floats(0, 1)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 12), SKILL, st.integers(0, 100))
def test_matrices_are_conditional_probabilities_with_the_skill_they_say(n_classes, skill, seed):
    rng = np.random.default_rng(seed)
    flipper, spammer = pairwise_flipper(n_classes, skill, rng), hammer_spammer(n_classes, skill)
    swapper, neighbour = class_swapper(n_classes, skill, rng), neighbour_mixer(n_classes, skill)
    pairs = similar_mixer(n_classes, skill, [(0, n_classes - 1)])
    for matrix in (flipper, spammer, swapper, neighbour, pairs):
        assert (matrix >= 0).all()
        np.testing.assert_allclose(matrix.sum(axis=1), 1)
    for matrix in (flipper, swapper, neighbour):
        np.testing.assert_allclose(np.diagonal(matrix), skill)
    np.testing.assert_allclose(np.diagonal(spammer), skill + (1 - skill) / n_classes)
    assert ((flipper > 0).sum(axis=1) <= 2).all()
    np.testing.assert_allclose(swapper.sum(axis=0), 1)  # a permutation: no label is given more often than it is true


def test_flip_targets_are_uniform_over_the_other_classes():
    rng = np.random.default_rng(0)
    flips = np.mean([pairwise_flipper(4, 0.0, rng) for _ in range(3000)], axis=0)
    np.testing.assert_allclose(flips, (1 - np.eye(4)) / 3, atol=0.04)


def test_a_groups_skills_vary_a_little_around_the_mean():
    group = label_group("pairwise-flipper", 200, n_classes=5, skill=0.4, seed=1)
    skills = group[:, 0, 0]
    assert np.std(skills) == pytest.approx(0.01, rel=0.2)
    assert np.mean(skills) == pytest.approx(0.4, abs=0.005)
    np.testing.assert_array_equal(group, label_group("pairwise-flipper", 200, n_classes=5, skill=0.4, seed=1))
    sure = label_group("hammer-spammer", 50, n_classes=5, skill=1.0)
    assert (sure <= 1).all()
    assert (sure >= 0).all()


def test_the_cifar_group_errs_much_yet_leaves_the_truth_to_be_found():
    matrices = np.stack(list(cifar10_group().values()))
    mean = matrices.mean(axis=0)
    assert np.diagonal(mean).mean() == pytest.approx(0.45)
    assert (mean.argmax(axis=0) == np.arange(10)).all()  # diagonally dominant in every column


def test_impossible_raters_are_refused():
    with pytest.raises(InputError, match="between 0 and 1"):
        hammer_spammer(3, 1.5)
    with pytest.raises(InputError, match="two classes"):
        hammer_spammer(1, 0.5)
    with pytest.raises(InputError, match="no class may be in two groups"):
        similar_mixer(4, 0.5, [(0, 1), (1, 2)])
    with pytest.raises(InputError, match="Known: pairwise-flipper"):
        label_group("liar", 3, 3, 0.5)  # type: ignore[arg-type]
