"""What images show of fused masks: who is outvoted though right, who is believed rightly, and when nothing is said."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from annotruth import STAPLE, Annotations
from annotruth.errors import IdentifiabilityWarning, InputError
from annotruth.fusion.shown import ELSEWHERE, _moved, look
from annotruth.simulate import noisy_digits, simulate_masks

OUTVOTED = ("over", "over", "wrong", "good", "under")
BELIEVED = ("good", "good", "under", "blank", "blank")
ELSEWHERE_WORDS = "Edges of the images do not lie along the fused borders, but along"
OUTVOTED_WORDS = "not what most raters drew"


def _crowd(raters, n=30, seed=2, images=True):
    pictures, truth, _ = noisy_digits(n, seed=seed)
    return simulate_masks(truth, raters, seed=seed).annotations(images=pictures if images else None)


def _said(annotations):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        STAPLE().fit(annotations)
    return " ".join(str(each.message) for each in caught if issubclass(each.category, IdentifiabilityWarning))


def _looked_at(annotations):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fused = STAPLE().fit(annotations)
    cases = [(fused.case(index), fused.predict_item(index).ravel()) for index in range(len(annotations))]
    return look(cases, fused.raters_, len(fused.classes_))


def test_who_outvotes_the_truth_is_seen_by_the_images_alone():
    assert ELSEWHERE_WORDS in _said(_crowd(OUTVOTED))
    assert ELSEWHERE_WORDS not in _said(_crowd(OUTVOTED, images=False))


def test_who_is_believed_rightly_is_borne_out_by_the_images():
    assert OUTVOTED_WORDS in _said(_crowd(BELIEVED, images=False))
    assert _said(_crowd(BELIEVED)) == ""
    found = _looked_at(_crowd(BELIEVED))
    assert found.borne_out
    assert not found.elsewhere


def test_where_one_rater_labelled_each_image_moved_borders_tell():
    """All draw too much, and nobody else drew the same image."""
    pictures, truth, _ = noisy_digits(40, seed=3)
    annotations = simulate_masks(truth, ("over",) * 3, keep=1, seed=3).annotations(images=pictures)
    found = _looked_at(annotations)
    assert found.elsewhere
    assert "a pixel farther in" in found.others


@pytest.mark.parametrize("images", ["blank", "noise"])
def test_images_that_show_nothing_say_nothing(images):
    annotations = _crowd(OUTVOTED)
    noise = np.random.default_rng(0).standard_normal((30, 1, 28, 28)).astype(np.float32)
    blind = Annotations.from_masks(annotations.masks, images=noise if images == "noise" else np.zeros_like(noise))
    assert _looked_at(blind) is None
    assert ELSEWHERE_WORDS not in _said(blind)


def test_too_little_to_look_at_says_nothing():
    assert _looked_at(_crowd(OUTVOTED, n=1)) is None
    empty = Annotations.from_masks(
        np.zeros((3, 3, 20, 20), np.uint8), images=np.eye(20)[None, None].repeat(3, axis=0), classes=2
    )
    assert _looked_at(empty) is None


def test_slices_of_volumes_are_looked_at():
    rng = np.random.default_rng(0)
    truth = np.zeros((2, 24, 32, 32), np.uint8)
    truth[0, 6:18, 8:20, 9:24], truth[1, 4:20, 10:26, 6:18] = 1, 1
    larger = np.zeros_like(truth)
    larger[0, 4:20, 6:22, 7:26], larger[1, 2:22, 8:28, 4:20] = 1, 1
    images = (truth + 0.3 * rng.standard_normal(truth.shape))[:, None]
    too_much = Annotations.from_masks(np.stack([larger, larger, larger, truth], axis=1), images=images)
    right = Annotations.from_masks(np.stack([truth, truth, truth, larger], axis=1), images=images)
    assert _looked_at(too_much).others == "what rater_4 drew"
    assert _looked_at(too_much).share < ELSEWHERE
    assert _looked_at(right).borne_out


def test_images_that_cannot_be_read_do_not_stop_the_fusion():
    annotations = _crowd(BELIEVED)

    class Broken:
        shape, dtype = (1, 28, 28), np.dtype(np.float32)

        def __array__(self, *args, **kwargs):
            raise InputError("cut off")

    broken = Annotations.from_masks(annotations.masks, images=[*annotations.images[:20], *[Broken()] * 10])
    assert _said(broken) == ""
    assert _looked_at(annotations) is not None


def test_moved_borders():
    labels = np.zeros((9, 9), np.uint8)
    labels[3:6, 3:6] = 1
    assert _moved(labels, 1, 2).sum() == 25
    assert _moved(labels, 2, 2).sum() == 45  # without the corners, which are 2.8 pixels away from the nearest one
    assert _moved(labels, -0.5, 2).sum() == 1
    np.testing.assert_array_equal(_moved(labels, 0, 3), labels)
    labels[3:6, 6:8] = 2
    moved = _moved(labels, 1, 3)
    assert (moved[3:6, 3:6] == 1).all()
    assert (moved[3:6, 6:9] == 2).all()
