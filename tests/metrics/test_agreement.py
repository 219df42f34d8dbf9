"""Agreement coefficients against published examples, scikit-learn and plain loops."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.metrics import (
    cohen_kappa,
    disagreement,
    fleiss_kappa,
    krippendorff_alpha,
    pairwise_disagreement,
    vote_counts,
    vote_entropy,
)

seeds = st.integers(0, 10_000)

# Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability": four observers, twelve units, values 1 to 5.
KRIPPENDORFF = (
    np.array(
        [
            [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
            [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
            [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
            [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
        ]
    ).T
    - 1
)

# Fleiss' kappa, the worked example common in textbooks: fourteen raters, ten items, five classes; kappa = 0.210.
FLEISS = np.array(
    [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
)


def table_with_gaps(seed: int, items: int = 15, raters: int = 4, n_classes: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    table = rng.integers(0, n_classes, (items, raters))
    table[rng.random(table.shape) < 0.3] = -1
    return table


def from_counts(counts: np.ndarray) -> np.ndarray:
    return np.stack([np.repeat(np.arange(counts.shape[1]), row) for row in counts])


@pytest.mark.parametrize(("level", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_of_the_published_example(level, published):
    assert krippendorff_alpha(KRIPPENDORFF, level) == pytest.approx(published, abs=5e-4)


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_alpha_is_its_definition_over_pairs_of_answers(seed):
    table = table_with_gaps(seed)
    units = [row[row >= 0] for row in table if (row >= 0).sum() > 1]
    answers = np.concatenate(units)
    observed = sum(sum(a != b for a, b in itertools.permutations(unit, 2)) / (len(unit) - 1) for unit in units)
    expected = sum(a != b for a, b in itertools.permutations(answers, 2)) / (len(answers) - 1)
    assert krippendorff_alpha(table) == pytest.approx(1 - observed / expected)


def test_fleiss_kappa_of_the_published_example():
    assert fleiss_kappa(from_counts(FLEISS)) == pytest.approx(0.210, abs=5e-4)


def test_fleiss_kappa_with_varying_numbers_of_raters_by_hand():
    table = np.array([[0, 0, 1], [1, 1, -1], [0, -1, -1]])
    agreement = (1 / 3 + 1) / 2
    share = (2 / 3 + 0) / 2
    chance = share**2 + (1 - share) ** 2
    assert fleiss_kappa(table) == pytest.approx((agreement - chance) / (1 - chance))


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(2, 5))
def test_cohen_kappa_is_scikit_learns(seed, n_classes):
    a, b = np.random.default_rng(seed).integers(0, n_classes, (2, 30))
    assert cohen_kappa(a, b) == pytest.approx(cohen_kappa_score(a, b))
    assert cohen_kappa(b, a) == pytest.approx(cohen_kappa(a, b))
    a_with_gap = np.append(a, [-1, 0])
    assert cohen_kappa(a_with_gap, np.append(b, [0, -1])) == pytest.approx(cohen_kappa(a, b))


def test_cohen_kappa_of_masks_leaves_out_missing_pixels():
    a, b = np.random.default_rng(0).integers(0, 3, (2, 4, 5, 5)).astype(np.uint8)
    a[0], b[1] = 255, 255
    assert cohen_kappa(a, b) == pytest.approx(cohen_kappa_score(a[2:].ravel(), b[2:].ravel()))


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_full_agreement_is_one_and_raters_have_no_order(seed):
    rng = np.random.default_rng(seed)
    agreed = np.repeat(np.append(rng.integers(0, 3, 10), [0, 1])[:, None], 4, axis=1)
    for score in (fleiss_kappa, krippendorff_alpha):
        assert score(agreed) == pytest.approx(1)
        table = table_with_gaps(seed)
        assert score(table[:, rng.permutation(4)]) == pytest.approx(score(table))
        assert score(table) <= 1
    assert cohen_kappa(agreed[:, 0], agreed[:, 1]) == pytest.approx(1)


def test_guessing_raters_agree_as_by_chance():
    table = np.random.default_rng(0).integers(0, 3, (4000, 5))
    assert fleiss_kappa(table) == pytest.approx(0, abs=0.02)
    assert krippendorff_alpha(table) == pytest.approx(0, abs=0.02)


def test_nothing_can_be_said_of_one_class_or_of_single_answers():
    one_class, single = np.zeros((4, 3), dtype=int), np.array([[0, -1], [-1, 1]])
    for score in (fleiss_kappa, krippendorff_alpha):
        assert np.isnan(score(one_class))
        assert np.isnan(score(single))
    assert np.isnan(cohen_kappa(one_class[:, 0], one_class[:, 1]))
    assert np.isnan(cohen_kappa(single[:, 0], single[:, 1]))


def test_label_tables_may_come_as_annotations():
    table = table_with_gaps(1)
    annotations = Annotations.from_answers(table, classes=3)
    np.testing.assert_array_equal(vote_counts(annotations), vote_counts(table, 3))
    assert fleiss_kappa(annotations) == fleiss_kappa(table)
    assert krippendorff_alpha(annotations, "ordinal") == krippendorff_alpha(table, "ordinal")


@settings(max_examples=20, deadline=None)
@given(seeds, st.integers(2, 3), st.sampled_from([(3, 4, 5, 6), (2, 3, 4, 3, 5)]))
def test_vote_entropy_is_the_mean_entropy_of_votes(seed, n_classes, shape):
    rng = np.random.default_rng(seed)
    masks = rng.integers(0, n_classes, shape).astype(np.uint8)
    masks[rng.random(masks.shape) < 0.2] = 255
    expected = []
    for item in masks.reshape(shape[0], shape[1], -1):
        entropies = []
        for votes in item.T:
            shares = np.unique(votes[votes != 255], return_counts=True)[1] / max((votes != 255).sum(), 1)
            if len(shares):
                entropies.append(-(shares * np.log(shares)).sum() / np.log(n_classes))
        expected.append(np.mean(entropies))
    np.testing.assert_allclose(vote_entropy(masks, n_classes), expected, atol=1e-12)
    np.testing.assert_allclose(vote_entropy(masks[:, ::-1], n_classes), expected, atol=1e-12)


def test_vote_entropy_lies_between_nought_and_one_and_knows_empty_items():
    masks = np.zeros((3, 2, 4, 4), dtype=np.uint8)
    masks[1, 1] = 1
    masks[2] = 255
    np.testing.assert_array_equal(vote_entropy(masks), [0, 1, np.nan])
    np.testing.assert_array_equal(vote_entropy(Annotations.from_masks(masks)), [0, 1, np.nan])
    table = Annotations.from_answers(np.array([[0, 0], [0, 1], [-1, -1]]))
    np.testing.assert_allclose(vote_entropy(table), [0, 1, np.nan])


def brute_force_pairs(masks):
    """Go pixel by pixel and pair by pair."""
    chances = []
    for votes in masks.reshape(len(masks), -1).T:
        votes = votes[votes != 255]
        if len(votes) > 1 and (votes > 0).any():
            chances.append(np.mean([a != b for a, b in itertools.combinations(votes, 2)]))
    return float(np.mean(chances)) if chances else 0.0


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 5), st.integers(2, 4), seeds)
def test_pairwise_disagreement_is_the_chance_that_two_raters_differ(n_raters, n_classes, seed):
    rng = np.random.default_rng(seed)
    masks = rng.integers(0, n_classes, (n_raters, 4, 5)).astype(np.uint8)
    masks[rng.random(masks.shape) < 0.2] = 255
    masks[:2, 0, 0] = 0  # at least one pixel with two raters
    assert pairwise_disagreement(masks[None], n_classes) == pytest.approx([brute_force_pairs(masks)])


def test_a_lone_rater_is_compared_with_the_estimate_if_there_is_one():
    estimate = np.array([[0, 1, 1, 0]], dtype=np.uint8)
    alone = np.stack([np.array([[0, 1, 0, 0]]), np.full((1, 4), 255)]).astype(np.uint8)
    assert pairwise_disagreement(alone[None], 2, estimate=estimate[None]) == [0.5]
    assert np.isnan(pairwise_disagreement(alone[None], 2)).all()


def test_nobody_marking_anything_is_agreement():
    assert pairwise_disagreement(np.zeros((1, 3, 2, 2), dtype=np.uint8)) == [0]


def test_the_two_ways_to_disagree_by_hand():
    # Four pixels by three raters: all say 0; one of three says 1; two of three say 1; all say 1.
    masks = np.array([[[[0, 1, 1, 1]], [[0, 0, 1, 1]], [[0, 0, 0, 1]]]], dtype=np.uint8)
    divided = -(np.log(1 / 3) / 3 + np.log(2 / 3) * 2 / 3) / np.log(2)
    assert vote_entropy(masks) == pytest.approx([(0 + divided + divided + 0) / 4])
    assert pairwise_disagreement(masks) == pytest.approx([(2 / 3 + 2 / 3 + 0) / 3])  # the first is marked by nobody
    table = Annotations.from_answers(np.array([[0, 0, 1], [1, 1, -1], [0, -1, -1]]))
    assert vote_entropy(table) == pytest.approx([divided, 0, 0])
    assert pairwise_disagreement(table) == pytest.approx([2 / 3, 0, np.nan], nan_ok=True)


def test_the_old_name_of_vote_entropy_warns_and_names_the_new_one():
    masks = np.array([[[[0, 1]], [[0, 0]]]], dtype=np.uint8)
    with pytest.warns(DeprecationWarning, match="vote_entropy"):
        assert disagreement(masks) == vote_entropy(masks)


def test_wrong_use_is_explained():
    with pytest.raises(InputError, match="one shape"):
        cohen_kappa(np.zeros(3, dtype=int), np.zeros(4, dtype=int))
    with pytest.raises(InputError, match="Known: nominal, ordinal, interval"):
        krippendorff_alpha(KRIPPENDORFF, "ratio")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="label 2"):
        vote_entropy(np.full((1, 2, 3, 3), 2, dtype=np.uint8), n_classes=2)
