"""Doubt about masks counts by the size of what is drawn, and what is certain for nothing."""

from __future__ import annotations

import numpy as np
import pytest

import annotruth as at
from annotruth.choosing.queue import next_labels
from annotruth.choosing.queue.information import information
from annotruth.choosing.queue.regions import SLIP, find_doubt, mask_posteriors, wary_posterior
from annotruth.fusion.state import FusionState
from annotruth.fusion.votes import Votes

CLASSES = ("background", "lesion")
GOOD = np.array([[[0.9, 0.1], [0.1, 0.9]]])


def gain(lesion: np.ndarray) -> float:
    """What a good rater's mask tells of a case with these probabilities of lesion."""
    found = find_doubt(np.stack([1 - lesion, lesion]), CLASSES)
    return float(information(found.posterior, GOOD)[:, 0] @ found.weight)


def test_a_thousand_nearly_certain_pixels_do_not_drown_a_disputed_border() -> None:
    unsure = np.zeros((64, 64))
    unsure[::2, ::2] = 0.04  # 1,024 pixels, each on its own
    border = np.zeros((64, 64))
    border[20, 20:60] = 0.5
    assert gain(border) > 10 * gain(unsure)
    assert gain(np.maximum(border, unsure)) == pytest.approx(gain(border))
    pale = np.full((64, 64), 0.1)  # 4,096 pixels that hang together
    assert gain(pale) == pytest.approx(10 * information(np.array([[0.9, 0.1]]), GOOD)[0, 0]), "however large it is"


def test_doubt_counts_by_its_share_of_the_foreground() -> None:
    small, large = np.zeros((32, 32)), np.zeros((32, 32))
    small[4:8, 4:8] = large[4:20, 4:20] = 1.0
    small[3, 4:8] = large[3, 4:8] = 0.5
    assert gain(small) / gain(large) == pytest.approx((16 * 16 + 2) / (16 + 2))
    large[3, 8:12] = 0.5
    assert gain(large) > 1.9 * gain(large * (large != 0.5) + 0.5 * (np.arange(32) < 8) * (large == 0.5))


def test_a_region_is_as_many_pieces_as_the_square_root_of_its_area() -> None:
    lesion = np.zeros((32, 32))
    lesion[4:16, 4:16] = lesion[20:24, 20:24] = 0.5
    found = find_doubt(np.stack([1 - lesion, lesion]), CLASSES)
    assert found.pieces.tolist() == [pytest.approx(12 + 4)]
    assert found.weight.tolist() == [2.0]


def test_pixels_and_what_is_sure_add_up() -> None:
    rng = np.random.default_rng(0)
    probability = rng.dirichlet([2, 0.3, 0.3], (12, 10, 6)).transpose(3, 0, 1, 2)
    found = find_doubt(probability, ("a", "b", "c"))
    best = probability.max(axis=0)
    assert found.total == best.size
    assert found.size.sum() == (best < 0.95).sum()
    assert found.sure == pytest.approx(best[best >= 0.95].sum())
    assert found.posterior.sum(axis=1) == pytest.approx(1)
    assert len(found.posterior) <= 128


def test_words() -> None:
    lesion = np.zeros((8, 8))
    assert find_doubt(np.stack([1 - lesion, lesion]), CLASSES).words == "no pixel is in doubt"
    lesion[0, 0] = lesion[5, 3:6] = 0.6
    probability = np.stack([1 - lesion, lesion])
    assert find_doubt(probability, CLASSES).words == "2 regions in doubt, the largest of 3 pixels, background or lesion"
    assert find_doubt(probability, CLASSES, labelled=False).words == "nobody has labelled it"


@pytest.fixture
def masks() -> np.ndarray:
    """Six cases; ann and bob agree but on the border of case 2; nobody labelled case 5; cy labelled cases 0 and 1."""
    masks = np.zeros((6, 3, 24, 24), dtype=np.uint8)
    masks[:, :, 6:18, 6:18] = 1
    masks[2, 1, 4:20, 4:20] = 1
    masks[2:, 2] = 255
    masks[5] = 255
    return masks


@pytest.mark.filterwarnings("ignore::annotruth.fusion.UnlabelledWarning")
def test_the_disputed_and_the_unlabelled_cases_are_asked_for(masks: np.ndarray) -> None:
    labels = at.Annotations.from_masks(masks, raters=["ann", "bob", "cy"], classes=list(CLASSES))
    for estimator in (at.STAPLE(), at.STAPLE(scope="case"), at.SpatialSTAPLE(window=7)):
        fused = estimator.fit(labels)
        known = mask_posteriors(fused)
        assert (np.diff(known.first_row) > 0)[[2, 5]].all()
        queue = next_labels(fused, labels, 3)
        rows = queue.table[queue.table["action"] == "label"]
        assert set(rows["item"]) == {"item_2", "item_5"}
        assert rows[rows["item"] == "item_2"]["rater"].tolist() == ["cy"]
        assert "pixels right" in " ".join(queue.summary)


@pytest.mark.filterwarnings("ignore::annotruth.fusion.UnlabelledWarning")
def test_counts_of_pixels_make_nobody_faultless(masks: np.ndarray) -> None:
    fused = at.STAPLE().fit(at.Annotations.from_masks(masks, classes=list(CLASSES)))
    known = mask_posteriors(fused)
    assert known.confusion.max() < 0.9999 or known.confusion.max() < fused.confusion_.max()
    assert known.evidence.tolist() == [5, 5, 2]
    assert known.labelled(np.arange(6)).sum(axis=0).tolist() == [5, 5, 2]


def test_one_mask_may_have_slipped_as_a_whole() -> None:
    rng = np.random.default_rng(0)
    patterns = np.array([[0, 1, 2, 1], [0, 1, 1, 255], [2, 0, 1, 255]], dtype=np.uint8)
    confusion, prior = rng.dirichlet(np.ones(3), (3, 3)), np.array([0.5, 0.3, 0.2])
    gold = np.array([255, 255, 255, 255])
    votes = Votes.from_patterns(patterns, np.ones(4), gold, n_classes=3)
    found = wary_posterior(at.DawidSkene(), votes, FusionState(confusion, np.zeros((3, 3, 3)), prior))
    for row, labels in enumerate(patterns.T):
        raters = [rater for rater in range(3) if labels[rater] != 255]
        wanted = np.zeros(3)
        total = 0.0
        for slipped in (None, *raters):
            says = prior.copy()
            for rater in raters:
                says *= 1 if rater == slipped else confusion[rater][:, labels[rater]]
            chance = 1 - SLIP if slipped is None else SLIP  # beside the others, who did not slip in either case
            wanted, total = wanted + chance * says / says.sum(), total + chance
        assert found[row] == pytest.approx(wanted / total)
