"""Vote patterns against plain counting, numbered and hashed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotruth.errors import InputError
from annotruth.fusion import votes as module
from annotruth.fusion.votes import PatternLookup, Patterns, Votes, count_patterns, merge_patterns
from annotruth.metrics import dice_per_item
from annotruth.parallel.threads import threads


def as_dict(patterns: Patterns) -> dict[tuple[int, ...], int]:
    rows = np.vstack([patterns.votes, patterns.gold]).T.tolist()
    assert len({tuple(row) for row in rows}) == len(rows)
    return {tuple(row): int(count) for row, count in zip(rows, patterns.counts)}


def by_hand(masks: np.ndarray, gold: np.ndarray | None) -> dict[tuple[int, ...], int]:
    known = np.full(masks.shape[1], 255, dtype=np.uint8) if gold is None else gold
    rows, counts = np.unique(np.vstack([masks, known]).T, axis=0, return_counts=True)
    return {tuple(row): int(count) for row, count in zip(rows.tolist(), counts)}


def random_masks(seed: int, n_raters: int, n_pixels: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    masks = rng.integers(0, n_classes + 1, (n_raters, n_pixels)).astype(np.uint8)
    gold = rng.integers(0, n_classes + 1, n_pixels).astype(np.uint8)
    masks[masks == n_classes] = 255
    gold[gold == n_classes] = 255
    return masks, gold


@given(st.integers(0, 1000), st.integers(1, 6), st.integers(0, 300), st.integers(1, 5), st.booleans(), st.booleans())
@settings(max_examples=30, deadline=None)
def test_counts_and_lookup(
    seed: int, n_raters: int, n_pixels: int, n_classes: int, with_gold: bool, hashed: bool
) -> None:
    masks, truth = random_masks(seed, n_raters, n_pixels, n_classes)
    gold = truth if with_gold else None
    with pytest.MonkeyPatch.context() as patch:
        if hashed:
            patch.setattr(module, "MAX_NUMBERED_TUPLES", 0)
        patterns = count_patterns(masks, n_classes, gold)
        assert as_dict(patterns) == by_hand(masks, gold)
        lookup = PatternLookup(patterns, n_classes, with_gold=with_gold)
        found = lookup.write(masks, np.arange(len(patterns.counts), dtype=np.int32)[None], gold=gold)[0]
    np.testing.assert_array_equal(patterns.votes[:, found], masks)
    if with_gold:
        np.testing.assert_array_equal(patterns.gold[found], truth)


@pytest.mark.parametrize("hashed", [False, True])
def test_patterns_of_parts_add_up(hashed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if hashed:
        monkeypatch.setattr(module, "MAX_NUMBERED_TUPLES", 0)
    masks, gold = random_masks(0, 3, 500, 3)
    for truth in (None, gold):
        parts = [count_patterns(masks[:, s], 3, None if truth is None else truth[s]) for s in np.s_[:200, 200:]]
        assert as_dict(merge_patterns(parts, 3)) == by_hand(masks, truth)


def test_many_tuples_make_the_hash_table_grow() -> None:
    masks, _ = random_masks(0, 30, 20_000, 9)
    patterns = count_patterns(masks, 9)
    assert len(patterns.counts) == 20_000
    assert as_dict(patterns) == by_hand(masks, None)


def test_hashing_in_several_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PART_PIXELS", 1000)
    masks, _ = random_masks(0, 9, 5000, 3)
    expected = count_patterns(masks, 3)
    assert as_dict(expected) == by_hand(masks, None)
    for count in (1, 3):
        with threads(count):
            again = count_patterns(masks, 3)
        np.testing.assert_array_equal(again.votes, expected.votes)


def test_254_classes_are_counted_and_255_are_not_taken_for_one() -> None:
    masks = np.stack([np.arange(256, dtype=np.uint8)] * 2)
    masks[masks == 254] = 0
    patterns = count_patterns(masks, 254)
    assert as_dict(patterns) == by_hand(masks, None)
    with pytest.raises(InputError, match="254 classes"):
        count_patterns(np.full((2, 5), 254, dtype=np.uint8), 254)


@pytest.mark.parametrize("n_raters", [2, 20])
def test_a_label_outside_the_classes_is_met_on_the_way(n_raters: int) -> None:
    masks = np.zeros((n_raters, 100), dtype=np.uint8)
    masks[1, 99] = 3
    with pytest.raises(InputError, match="outside its 3 classes"):
        count_patterns(masks, 3)


def test_counters_pass_two_to_the_24() -> None:
    masks = np.zeros((1, 2**24 + 3), dtype=np.uint8)
    masks[0, -1] = 1
    assert count_patterns(masks, 2).counts.tolist() == [2**24 + 2, 1]


@pytest.mark.parametrize("hashed", [False, True])
def test_votes_that_were_not_counted_are_noticed(hashed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if hashed:
        monkeypatch.setattr(module, "MAX_NUMBERED_TUPLES", 0)
    masks = np.zeros((2, 10), dtype=np.uint8)
    lookup = PatternLookup(count_patterns(masks, 2), 2)
    for dtype in (np.float32, np.uint8):
        with pytest.raises(InputError, match="changed"):
            lookup.write(masks + 1, np.zeros((1, 1), dtype=dtype))


def test_read_only_files_are_read_in_place(tmp_path: Path) -> None:
    masks, _ = random_masks(0, 3, 1000, 2)
    np.save(tmp_path / "masks.npy", masks)
    mapped = np.load(tmp_path / "masks.npy", mmap_mode="r")
    assert as_dict(count_patterns(mapped, 2)) == by_hand(masks, None)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_dice_with_the_vote_is_that_of_masks_drawn_pixel_by_pixel(n_classes: int) -> None:
    masks, _ = random_masks(n_classes, 4, 900, n_classes)
    masks[0, masks.min(axis=0) == 255] = 0  # somebody labelled every pixel
    tuples, index, counts = np.unique(masks, axis=1, return_inverse=True, return_counts=True)
    votes = Votes.from_patterns(tuples, counts, np.full(tuples.shape[1], 255), n_classes)
    posterior = np.random.default_rng(0).random((tuples.shape[1], n_classes))
    told = posterior.argmax(axis=1)[index.ravel()].reshape(1, 30, 30)
    voted = np.stack([(masks == c).sum(axis=0) for c in range(n_classes)]).argmax(axis=0).reshape(1, 30, 30)
    np.testing.assert_allclose(votes.dice_with(posterior), dice_per_item(told, voted, n_classes)[0])
