"""The Annotations type: making one, what is missing, splitting, taking, reading late, and how far apart pixels lie."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotruth import Annotations
from annotruth.data import Lazy
from annotruth.errors import InputError

RNG = np.random.default_rng(0)

MASKS = RNG.integers(0, 3, (6, 2, 4, 5)).astype(np.uint8)


def _part(array: np.ndarray, index: int) -> np.ndarray:
    return array[index]


def _fail() -> np.ndarray:
    raise AssertionError("read too early")


def test_masks_of_one_size():
    found = Annotations.from_masks(MASKS, images=np.zeros((6, 3, 4, 5)), truth=MASKS[:, 0])
    assert repr(found) == "Annotations(masks: 6 items, 2 raters, 3 classes)"
    assert found.items[0] == "item_0"
    assert found.raters == ("rater_1", "rater_2")
    assert found.classes == ("0", "1", "2")
    assert list(found) == list(found.items)
    assert len(found) == 6
    assert found.same_shape
    assert found.masks is MASKS
    assert found.images.dtype == np.float32
    np.testing.assert_array_equal(found.truth, MASKS[:, 0])
    with pytest.raises(InputError, match="only a label table has answers"):
        _ = found.answers


def test_masks_of_different_sizes_come_as_a_list():
    masks = [np.ones((2, 4, 4), np.int64), np.ones((2, 3, 6), bool)]
    found = Annotations.from_masks(masks, images=[np.zeros((1, 4, 4)), np.zeros((1, 3, 6))])
    assert found.raters == ("rater_1", "rater_2")
    assert (found.shape(0), found.shape(1)) == ((4, 4), (3, 6))
    assert found.item_masks(1).dtype == np.uint8
    assert not found.same_shape
    with pytest.raises(InputError, match="differ in size"):
        _ = found.masks


def test_volumes_given_as_a_list_count_their_raters():
    found = Annotations.from_masks([np.ones((5, 3, 4, 6), np.uint8)] * 2)
    assert len(found.raters) == 5
    assert found.shape(0) == (3, 4, 6)


def test_missing_raters_and_pixels():
    masks = MASKS.copy()
    masks[1, 0] = 255
    masks[2, 1, 0, 0] = 255
    found = Annotations.from_masks(masks)
    assert found.classes == ("0", "1", "2")
    labelled = found.labelled()
    assert not labelled[1, 0]
    assert labelled.sum() == 11


def test_at_least_two_classes_and_names_in_any_alphabet():
    empty = np.zeros((1, 1, 2, 2), np.uint8)
    assert Annotations.from_masks(empty).classes == ("0", "1")
    assert Annotations.from_masks(empty, classes=4).classes == ("0", "1", "2", "3")
    assert Annotations.from_masks(empty, classes=["Hintergrund", "血管"]).classes == ("Hintergrund", "血管")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"masks": MASKS[:0]}, "There is no item"),
        ({"raters": ["ann"]}, "hold 2 raters but 1 names"),
        ({"raters": ["ann", "ann"]}, "Each rater needs a name of its own; named twice: ann"),
        ({"items": ["x"] * 6}, "Each item needs a name of its own"),
        ({"classes": 2}, r"Item item_\d, rater rater_\d: label 2 lies outside the classes \(0 to 1"),
        ({"classes": 255}, "at most 254 classes"),
        ({"images": np.zeros((5, 1, 4, 5))}, "6 items but 5 images"),
        ({"images": np.zeros((6, 1, 4, 4))}, "Item item_0: the mask has size 4×5 but the image has 4×4"),
        ({"truth": np.zeros((6, 4, 4))}, "Item item_0, truth: the mask has size 4×4 but the image has 4×5"),
        ({"groups": ["p"]}, "6 items but 1 groups"),
        ({"rater_info": {"zoe": {}}}, "raters without labels: zoe"),
        ({"masks": MASKS * 0.5}, r"Item item_\d, rater rater_\d: labels must be whole numbers, found 0.5"),
        ({"masks": MASKS.astype(np.int16) - 1}, "label -1 lies outside"),
    ],
)
def test_mistakes_in_masks_are_named(change, message):
    with pytest.raises(InputError, match=message):
        Annotations.from_masks(**({"masks": MASKS} | change))


def test_bad_images_and_absent_parts_are_named():
    found = Annotations.from_masks(MASKS, images=np.full((6, 1, 4, 5), np.nan), items=list("abcdef"))
    with pytest.raises(InputError, match="Item b: the image holds 20 non-finite values"):
        found.item_image(1)
    bare = Annotations.from_masks(MASKS)
    for name in ("images", "truth"):
        with pytest.raises(InputError, match="carry no"):
            getattr(bare, name)


def test_lazy_arrays_are_read_when_they_are_needed_and_in_other_processes():
    masks = [Lazy(partial(_part, MASKS, index), (2, 4, 5)) for index in range(6)]
    images = [Lazy(_fail, (3, 4, 5))] * 6
    found = Annotations(
        kind="masks", items=list("abcdef"), raters=["ann", "bob"], classes=["0", "1", "2"], masks=masks, images=images,
        pixel_values={0: 0, 1: 128, 2: 254},
    )  # fmt: skip
    assert found.shape(2) == (4, 5)
    assert found.same_shape
    part = pickle.loads(pickle.dumps(found.take([3, 1])))
    np.testing.assert_array_equal(part.masks, MASKS[[3, 1]])
    assert part.pixel_values == {0: 0, 1: 128, 2: 254}
    with pytest.raises(AssertionError, match="read too early"):
        found.item_image(0)


def test_lazy_labels_are_checked_when_they_are_read():
    masks = [Lazy(partial(_part, MASKS + 4, 0), (2, 4, 5))]
    found = Annotations(kind="masks", items=["a"], raters=["ann", "bob"], classes=["0", "1", "2"], masks=masks)
    with pytest.raises(InputError, match="Item a, rater ann: label 4"):
        found.item_masks(0)


def test_many_classes_are_checked_too():
    masks = np.full((1, 1, 300, 300), 200, np.uint8)
    assert len(Annotations.from_masks(masks).classes) == 201
    with pytest.raises(InputError, match="label 200 lies outside"):
        Annotations.from_masks(masks, classes=150)


@pytest.mark.parametrize(
    "columns", [["item", "rater", "label"], ["task", "worker", "answer"], ["case", "annotator", "label"]]
)
def test_a_table_with_any_usual_names(columns):
    frame = pd.DataFrame([["b", "bob", "Läsion"], ["a", "bob", "gesund"], ["b", "ann", "gesund"]], columns=columns)
    found = Annotations.from_table(frame, truth={"a": "gesund"})
    assert repr(found) == "Annotations(labels: 2 items, 2 raters, 2 classes, 3 answers)"
    assert (found.items, found.raters, found.classes) == (("b", "a"), ("bob", "ann"), ("Läsion", "gesund"))
    np.testing.assert_array_equal(found.answer_matrix(), [[0, 1], [1, -1]])
    np.testing.assert_array_equal(found.labelled(), [[True, True], [True, False]])
    np.testing.assert_array_equal(found.truth, [-1, 1])
    with pytest.raises(InputError, match="only masks have item_masks"):
        found.item_masks(0)


def test_truth_with_gaps_has_become_float_in_pandas():
    frame = pd.DataFrame({"item": [1, 2, 3], "rater": ["a"] * 3, "label": [0, 1, 1]})
    truth = pd.Series([1.0, np.nan, 0.0], index=[1, 2, 3])
    np.testing.assert_array_equal(Annotations.from_table(frame, truth=truth).truth, [1, -1, 0])
    with pytest.raises(InputError, match="classes nobody answered: 7"):
        Annotations.from_table(frame, truth={"1": 7})


def test_a_dense_table_and_its_images():
    matrix = np.array([[0, 1, -1], [2, -1, -1]])
    found = Annotations.from_answers(matrix, images=np.zeros((2, 16)), truth=np.array([0, -1]))
    np.testing.assert_array_equal(found.answer_matrix(), matrix)
    assert found.classes == ("0", "1", "2")
    assert found.images.shape == (2, 16)
    np.testing.assert_array_equal(found.truth, [0, -1])
    named = Annotations.from_answers(matrix, classes=["cat", "dog", "cow"], items=["x", "y"], raters=list("abc"))
    assert named.classes == ("cat", "dog", "cow")


def test_take_keeps_everything_in_the_order_asked_for():
    found = Annotations.from_masks(
        MASKS, images=np.arange(6.0)[:, None, None, None] * np.ones((1, 1, 4, 5)), truth=MASKS[:, 1],
        items=list("abcdef"), groups=list("xxyyzz"), rater_info={"rater_1": {"years": 3}},
    ).take([4, 0])  # fmt: skip
    assert found.items == ("e", "a")
    assert found.groups == ("z", "x")
    assert found.classes == ("0", "1", "2")
    assert found.rater_info == {"rater_1": {"years": 3}}
    np.testing.assert_array_equal(found.masks, MASKS[[4, 0]])
    np.testing.assert_array_equal(found.truth, MASKS[[4, 0], 1])
    np.testing.assert_array_equal(found.images[:, 0, 0, 0], [4, 0])


def test_raters_are_taken_in_the_order_asked_for():
    eager = Annotations.from_masks(MASKS, rater_info={"rater_1": {"years": 3}, "rater_2": {"years": 5}})
    lazy = eager._with(masks=[Lazy(partial(_part, MASKS, index), (2, 4, 5)) for index in range(6)])
    for found in (eager.take_raters(["rater_2"]), pickle.loads(pickle.dumps(lazy.take_raters(["rater_2"])))):
        assert found.raters == ("rater_2",)
        assert found.rater_info == {"rater_2": {"years": 5}}
        assert found.shape(0) == (4, 5)
        np.testing.assert_array_equal(found.masks, MASKS[:, 1:])
    np.testing.assert_array_equal(lazy.take_raters(["rater_2", "rater_1"]).masks, MASKS[:, ::-1])
    with pytest.raises(InputError, match="ann"):
        eager.take_raters(["ann"])


def test_raters_of_answers_match_the_dense_table():
    matrix = RNG.integers(-1, 4, (9, 5))
    found = Annotations.from_answers(matrix, classes=4).take_raters(["rater_5", "rater_2"])
    np.testing.assert_array_equal(found.answer_matrix(), matrix[:, [4, 1]])


def test_take_of_answers_matches_the_dense_table():
    matrix = RNG.integers(-1, 4, (9, 5))
    found = Annotations.from_answers(matrix, classes=4, truth=np.arange(9) % 4)
    chosen = [7, 2, 5]
    np.testing.assert_array_equal(found.take(chosen).answer_matrix(), matrix[chosen])
    np.testing.assert_array_equal(found.take(chosen).truth, np.arange(9)[chosen] % 4)
    assert len(found.take([])) == 0


@settings(max_examples=30, deadline=None)
@given(
    groups=st.lists(st.integers(0, 8), min_size=1, max_size=60),
    parts=st.lists(st.integers(1, 10), min_size=1, max_size=4),
    seed=st.integers(0, 99),
)
def test_splits_are_reproducible_and_never_tear_groups(groups, parts, seed):
    found = Annotations.from_answers(np.zeros((len(groups), 1), int), groups=[f"p{group}" for group in groups])
    fractions = np.array(parts) / sum(parts)
    split = found.split(list(fractions), seed=seed)
    assert sorted(item for part in split for item in part.items) == sorted(found.items)
    homes = [set(part.groups) for part in split]
    assert sum(map(len, homes)) == len(set(found.groups))
    assert [part.items for part in found.split(list(fractions), seed=seed)] == [part.items for part in split]
    order = {item: index for index, item in enumerate(found.items)}
    assert all([order[item] for item in part.items] == sorted(order[item] for item in part.items) for part in split)
    largest = max(groups.count(group) for group in groups)
    assert all(abs(len(part) - share * len(found)) <= largest * len(parts) for part, share in zip(split, fractions))


def test_split_without_groups_keeps_the_fractions():
    found = Annotations.from_answers(np.zeros((100, 1), int))
    assert [len(part) for part in found.split([0.7, 0.2, 0.1])] == [70, 20, 10]
    assert found.split([0.5, 0.5], seed=1)[0].items != found.split([0.5, 0.5], seed=2)[0].items
    for wrong in ([0.5, 0.4], [1.5, -0.5]):
        with pytest.raises(InputError, match="must be positive and sum to 1"):
            found.split(wrong)


VOLUMES = np.zeros((3, 2, 8, 6, 4), dtype=np.uint8)


def test_nobody_told_the_spacing():
    assert Annotations.from_masks(VOLUMES).spacing(0) is None
    assert Annotations.from_answers(np.array([[0, 1]])).spacing(0) is None


@pytest.mark.parametrize("spacing", [(1, 0.5, 3), [1, 0.5, 3], np.array([1, 0.5, 3])])
def test_one_spacing_for_all(spacing):
    found = Annotations.from_masks(VOLUMES, spacing=spacing)
    assert [found.spacing(index) for index in range(3)] == [(1.0, 0.5, 3.0)] * 3
    assert all(isinstance(step, float) for step in found.spacing(0))


def test_one_spacing_per_item():
    found = Annotations.from_masks(VOLUMES, spacing=[(1, 1, 1), None, (2, 2, 5)])
    assert [found.spacing(index) for index in range(3)] == [(1, 1, 1), None, (2, 2, 5)]


def test_the_spacing_is_kept():
    found = Annotations.from_masks(VOLUMES, spacing=[(1, 1, 1), None, (2, 2, 5)])
    assert [found.take([2, 0]).spacing(index) for index in (0, 1)] == [(2, 2, 5), (1, 1, 1)]
    parts = found.split([0.5, 0.5], seed=3)
    told = {item: part.spacing(index) for part in parts for index, item in enumerate(part.items)}
    assert told == {"item_0": (1, 1, 1), "item_1": None, "item_2": (2, 2, 5)}
    assert found.with_truth(VOLUMES[:, 0]).spacing(2) == (2, 2, 5)
    assert found.with_images(np.zeros((3, 1, 8, 6, 4))).spacing(2) == (2, 2, 5)
    assert pickle.loads(pickle.dumps(found)).spacing(2) == (2, 2, 5)


@pytest.mark.parametrize(
    ("spacing", "message"),
    [
        ((1, 1), r"Item item_0: the spacing \(1\.0, 1\.0\) has 2 numbers, but there are 3 spatial axes"),
        ((), "has 0 numbers, but there are 3"),
        ((1, 1, 0), r"Item item_0: the spacing .* must be positive and finite, in mm"),
        ((1, -1, 1), "must be positive and finite"),
        ((1, np.nan, 1), "must be positive and finite"),
        ((1, 1, np.inf), "must be positive and finite"),
        (1.5, "one number of mm per spatial axis, not 1.5"),
        ("mm", "one number of mm per spatial axis"),
        ([(1, 1, 1), (1, 1, "x"), (1, 1, 1)], "Item item_1: the spacing is one number of mm per spatial axis"),
        ([(1, 1, 1), (1, 1, 1), (1, 1)], r"Item item_2: the spacing \(1\.0, 1\.0\) has 2 numbers"),
        ([(1, 1, 1), (1, 1, 1)], "3 items but 2 spacing"),
    ],
)
def test_what_is_no_spacing(spacing, message):
    with pytest.raises(InputError, match=message):
        Annotations.from_masks(VOLUMES, spacing=spacing)
