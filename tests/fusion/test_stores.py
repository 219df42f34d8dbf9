"""Cases are read one at a time, from wherever they lie; bad ones are named."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import annotruth as at
from annotruth.data import Lazy
from annotruth.errors import InputError

SHAPE = (3, 200, 500)


def make_case(number: int) -> np.ndarray:
    rng = np.random.default_rng(number)
    truth = np.zeros(SHAPE[1:], dtype=np.uint8)
    truth[50:150, 100:300] = 1
    return np.where(rng.random(SHAPE) < 0.1, 1 - truth, truth).astype(np.uint8)


class Reader:
    """Reads cases and remembers which of them are still held by somebody."""

    def __init__(self) -> None:
        gc.collect()
        gc.freeze()  # what was there before need not be gone through at every read
        self.alive: list[weakref.ref] = []
        self.most = 0
        self.reads = 0

    def __call__(self, number: int) -> np.ndarray:
        gc.collect()
        case = make_case(number)
        self.alive = [*(ref for ref in self.alive if ref() is not None), weakref.ref(case)]
        self.most = max(self.most, len(self.alive))
        self.reads += 1
        return case


def lazy_annotations(reader: Reader, n_items: int) -> at.Annotations:
    masks = [Lazy(partial(reader, number), SHAPE) for number in range(n_items)]
    items, raters = [f"case_{n}" for n in range(n_items)], ["a", "b", "c"]
    return at.Annotations(kind="masks", items=items, raters=raters, classes=["0", "1"], masks=masks)


@pytest.mark.parametrize("estimator", [at.STAPLE(), at.STAPLE(scope="case"), at.MajorityVote()], ids=str)
def test_one_case_at_a_time(estimator: at.fusion.base.FusionEstimator) -> None:
    reader = Reader()
    annotations = lazy_annotations(reader, 5)
    fused = estimator.fit(annotations)
    assert reader.reads == 5
    for index in range(5):
        fused.predict_proba_item(index)
        fused.predict_item(index)
    assert reader.reads == 15
    assert reader.most == 1
    assert (fused.predict()[0] == (make_case(0).sum(axis=0) >= 2)).mean() > 0.99


def test_memory_mapped_masks_are_not_loaded(tmp_path: Path) -> None:
    masks = np.stack([make_case(number) for number in range(8)])
    np.save(tmp_path / "masks.npy", masks)
    mapped = np.load(tmp_path / "masks.npy", mmap_mode="r")
    annotations = at.Annotations(
        kind="masks", items=[str(n) for n in range(8)], raters=["a", "b", "c"], classes=["0", "1"], masks=mapped
    )
    at.STAPLE().fit(annotations.take([0])).predict_item(0)  # compiled code is not what is measured
    tracemalloc.start()
    fused = at.STAPLE().fit(annotations)
    label = fused.predict_item(3)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < masks.nbytes / 4
    expected = at.STAPLE().fit(at.Annotations.from_masks(masks))
    np.testing.assert_array_equal(label, expected.predict_item(3))


def test_masks_of_other_types_and_layouts() -> None:
    masks = np.stack([make_case(number)[:, 40:90, 80:150] for number in range(2)])
    expected = at.STAPLE().fit(at.Annotations.from_masks(masks)).predict_proba()
    for other in (masks.astype(np.int64), masks.astype(float), masks.astype(bool), np.asfortranarray(masks)):
        np.testing.assert_array_equal(at.STAPLE().fit(at.Annotations.from_masks(other)).predict_proba(), expected)


def test_a_bad_label_met_while_counting_is_named_with_item_and_rater() -> None:
    def bad() -> np.ndarray:
        masks = np.zeros((3, 4, 4), dtype=np.uint8)
        masks[1, 2, 2] = 7
        return masks

    masks = [Lazy(partial(np.zeros, (3, 4, 4), np.uint8), (3, 4, 4)), Lazy(bad, (3, 4, 4))]
    annotations = at.Annotations(
        kind="masks", items=["good", "bad"], raters=["a", "b", "c"], classes=["0", "1"], masks=masks
    )
    with pytest.raises(InputError, match="Item bad, rater b: label 7"):
        at.STAPLE().fit(annotations)


def test_a_mask_too_few_is_named() -> None:
    masks = [Lazy(partial(np.zeros, (2, 4, 4), np.uint8), (2, 4, 4))]
    annotations = at.Annotations(kind="masks", items=["short"], raters=["a", "b", "c"], classes=["0", "1"], masks=masks)
    with pytest.raises(InputError, match="Item short: 2 masks for 3 raters"):
        at.STAPLE().fit(annotations)


def test_fractions_and_nothing_at_all_are_refused() -> None:
    with pytest.raises(InputError, match="whole numbers"):
        at.STAPLE().fit(at.Annotations.from_masks(np.full((1, 3, 4, 4), 0.5)))
    empty = at.Annotations(kind="masks", items=[], raters=["a"], classes=["0", "1"], masks=[])
    with pytest.raises(InputError, match="no item"):
        at.STAPLE().fit(empty)


def test_cases_that_do_not_exist_and_tables_item_by_item() -> None:
    fused = at.STAPLE().fit(at.Annotations.from_masks(make_case(0)[None]))
    np.testing.assert_array_equal(fused.predict_item(-1), fused.predict_item(0))
    with pytest.raises(InputError, match="number 1 is not among"):
        fused.predict_item(1)
    table = at.MajorityVote().fit(at.Annotations.from_answers(np.zeros((2, 3), dtype=int)))
    with pytest.raises(InputError, match="label table"):
        table.predict_item(0)


def test_who_labelled_which_case_is_known_without_reading_it_again() -> None:
    masks = np.zeros((3, 2, 6, 6), dtype=np.uint8)
    masks[0, 1] = 255
    masks[1, 0, 2:] = 255
    fused = at.MajorityVote().fit(at.Annotations.from_masks(masks, raters=["ann", "bob"]))
    later = at.Annotations.from_masks(masks[:1], raters=["cy", "ann"], items=["later"])
    fused.partial_fit(later)
    assert fused.labelled_cases().tolist() == [[True, False, False], [True, True, False], [True, True, False],
                                               [False, False, True]]  # fmt: skip
    assert fused.case_shape(3) == (6, 6)


def test_posteriors_follow_from_other_matrices() -> None:
    masks = np.zeros((1, 2, 4, 4), dtype=np.uint8)
    masks[0, 0, :2] = masks[0, 1, 1:3] = 1
    fused = at.DawidSkene(prior=np.array([0.5, 0.5]), confusion_prior=np.eye(2) + 0.5).fit(
        at.Annotations.from_masks(masks)
    )
    before = fused.predict_proba()
    matrices = np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.6, 0.4], [0.4, 0.6]]])
    other = fused.with_confusion(matrices)
    odds = 0.9 / 0.1 * 0.4 / 0.6  # the first says 1, the second 0
    assert other.predict_proba()[0, 1, 0, 0] == pytest.approx(odds / (1 + odds))
    assert (fused.predict_proba() == before).all()
