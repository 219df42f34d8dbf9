"""STAPLE against SimpleITK, and its options."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import IdentifiabilityWarning, InputError
from annotruth.fusion import count_case


def ball(size: int = 24) -> np.ndarray:
    return (((np.indices((size,) * 3) - size // 2) ** 2).sum(axis=0) < (size // 3) ** 2).astype(np.uint8)


def binary_masks(n_raters: int = 5, seed: int = 0) -> np.ndarray:
    """Masks (raters, *spatial) of raters with differing sensitivity and specificity."""
    rng, truth = np.random.default_rng(seed), ball()
    hit, false = 0.95 - 0.05 * np.arange(n_raters), 0.02 + 0.02 * np.arange(n_raters)
    draws = rng.random((n_raters, *truth.shape))
    return np.where(truth, draws < hit[:, None, None, None], draws < false[:, None, None, None]).astype(np.uint8)


def class_masks(n_classes: int = 4, n_raters: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = np.sort(rng.integers(0, n_classes, (40, 60)), axis=1).astype(np.uint8)
    noise = rng.random((n_raters, *truth.shape)) < (0.1 + 0.06 * np.arange(n_raters))[:, None, None]
    return np.where(noise, rng.integers(0, n_classes, noise.shape), truth).astype(np.uint8), truth


def itk_images(masks: np.ndarray) -> list:
    simple_itk = pytest.importorskip("SimpleITK")
    return [simple_itk.GetImageFromArray(mask) for mask in masks]


@pytest.mark.parametrize("n_raters", [3, 4, 5])
def test_same_probabilities_as_itk(n_raters: int) -> None:
    simple_itk = pytest.importorskip("SimpleITK")
    masks = binary_masks(n_raters)
    peer = simple_itk.STAPLEImageFilter()
    peer.SetForegroundValue(1)
    expected = simple_itk.GetArrayFromImage(peer.Execute(itk_images(masks)))
    fused = at.STAPLE().fit(at.Annotations.from_masks(masks[None]))
    np.testing.assert_allclose(fused.predict_proba()[0, 1], expected, atol=1e-5)
    np.testing.assert_allclose(fused.confusion_[:, 1, 1], peer.GetSensitivity(), atol=1e-6)
    np.testing.assert_allclose(fused.confusion_[:, 0, 0], peer.GetSpecificity(), atol=1e-6)


def test_one_class_of_several_as_in_itk() -> None:
    simple_itk = pytest.importorskip("SimpleITK")
    masks, _ = class_masks()
    peer = simple_itk.STAPLEImageFilter()
    peer.SetForegroundValue(2)
    expected = simple_itk.GetArrayFromImage(peer.Execute(itk_images(masks)))
    annotations = at.Annotations.from_masks(masks[None], classes=["air", "bone", "liver", "spleen"])
    for foreground in (2, "liver"):
        fused = at.STAPLE(foreground=foreground).fit(annotations)
        assert fused.classes_ == ("not liver", "liver")
        assert fused.confusion_.shape == (5, 2, 2)
        np.testing.assert_allclose(fused.predict_proba()[0, 1], expected, atol=1e-5)
        assert set(np.unique(fused.predict())) == {0, 1}


@pytest.mark.parametrize("seed", range(3))
def test_same_labels_as_itk_for_many_classes(seed: int) -> None:
    simple_itk = pytest.importorskip("SimpleITK")
    masks, _ = class_masks(seed=seed)
    peer = simple_itk.MultiLabelSTAPLEImageFilter()
    peer.SetTerminationUpdateThreshold(1e-8)
    expected = simple_itk.GetArrayFromImage(peer.Execute(itk_images(masks)))
    fused = at.STAPLE().fit(at.Annotations.from_masks(masks[None]))
    posterior = np.sort(fused.predict_proba()[0], axis=0)
    decided = posterior[-1] - posterior[-2] > 1e-4
    assert decided.mean() > 0.99
    np.testing.assert_array_equal(fused.predict()[0][decided], expected[decided])


def test_many_tied_raters_of_many_classes_do_not_corrupt_the_matrices() -> None:
    # Two raters, tied wherever they differ: a vote that breaks ties by class number would favour one of them.
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, (60, 60)).astype(np.uint8)
    noise = rng.random((2, *truth.shape)) < 0.2
    masks = np.where(noise, (truth + 1) % 3, truth).astype(np.uint8)
    with pytest.warns(IdentifiabilityWarning, match="Only two"):
        fused = at.STAPLE(max_iter=2, tol=1).fit(at.Annotations.from_masks(masks[None]))
    with pytest.warns(IdentifiabilityWarning, match="Only two"):
        turned = at.STAPLE(max_iter=2, tol=1).fit(at.Annotations.from_masks(masks[None, ::-1]))
    np.testing.assert_allclose(fused.confusion_, turned.confusion_[::-1], atol=1e-12)
    np.testing.assert_allclose(fused.skill_[0], fused.skill_[1], atol=0.01)


def test_254_classes_end() -> None:
    masks = np.tile(np.arange(254, dtype=np.uint8).repeat(3), (3, 1))
    masks[0, :5] = 253
    fused = at.STAPLE(max_iter=20).fit(at.Annotations.from_masks(masks[None]))
    np.testing.assert_array_equal(fused.predict()[0], masks[1])
    with pytest.raises(InputError, match="254"):
        at.Annotations.from_masks(np.zeros((1, 3, 4), np.uint8), classes=256)


def test_five_hundred_raters() -> None:
    rng = np.random.default_rng(0)
    truth = (np.arange(400) // 200).astype(np.uint8)
    masks = np.where(rng.random((500, 400)) < 0.55, truth, 1 - truth).astype(np.uint8)
    fused = at.STAPLE(max_iter=100, tol=1e-4).fit(at.Annotations.from_masks(masks[None]))
    posterior = fused.predict_proba()
    assert np.isfinite(posterior).all()
    assert (fused.predict()[0] == truth).mean() > 0.95


@pytest.mark.parametrize("scope", ["dataset", "case"])
@pytest.mark.parametrize("estimator", [at.STAPLE, at.DawidSkene, at.SpatialSTAPLE])
def test_nobody_labelled_anything(estimator: type, scope: str) -> None:
    """Not in the whole data set, or not in one case that is fused by itself: then any class is as likely."""
    masks = np.full((2, 3, 8, 8), 255, dtype=np.uint8)
    if scope == "case":
        masks[1] = np.eye(8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fused = estimator(scope=scope).fit(at.Annotations.from_masks(masks, classes=2))
    np.testing.assert_allclose(fused.predict_proba()[0], 0.5)


def test_excluding_consensus() -> None:
    masks = binary_masks()
    annotations = at.Annotations.from_masks(masks[None])
    fused = at.STAPLE(exclude_consensus=True).fit(annotations)
    agreed = (masks == masks[0]).all(axis=0)
    assert fused.expected_counts_[0].sum() == pytest.approx((~agreed).sum())
    np.testing.assert_array_equal(fused.predict()[0][agreed], masks[0][agreed])
    np.testing.assert_array_equal(fused.predict_proba()[0].max(axis=0)[agreed], 1)


def test_excluding_consensus_where_there_is_nothing_else() -> None:
    masks = np.repeat(ball()[None], 3, axis=0)
    fused = at.STAPLE(exclude_consensus=True).fit(at.Annotations.from_masks(masks[None]))
    np.testing.assert_array_equal(fused.predict()[0], masks[0])


def test_smoothing_joins_what_noise_has_torn() -> None:
    masks = binary_masks(n_raters=3)
    annotations = at.Annotations.from_masks(masks[None])
    plain, smooth = at.STAPLE().fit(annotations), at.STAPLE(smoothing=0.6).fit(annotations)
    assert (smooth.predict()[0] != ball()).mean() < 0.5 * (plain.predict()[0] != ball()).mean()
    np.testing.assert_allclose(smooth.confusion_[:, 1, 1], [0.95, 0.9, 0.85], atol=0.03)
    assert np.abs(plain.confusion_ - smooth.confusion_).max() > 1e-3


def test_smoothing_fills_in_where_nobody_labelled() -> None:
    masks = np.repeat(ball()[None], 3, axis=0)
    masks[:, 12, 12, 12] = 255
    with pytest.warns(at.fusion.UnlabelledWarning):
        fused = at.STAPLE(smoothing=1.0).fit(at.Annotations.from_masks(masks[None]))
    assert fused.predict()[0, 12, 12, 12] == 1


def test_cases_of_their_own_and_all_together() -> None:
    masks = np.stack([binary_masks(seed=0), 1 - binary_masks(seed=1)])
    masks[1] = 1 - masks[1]
    masks[1, 0] = np.where(np.random.default_rng(5).random(masks[1, 0].shape) < 0.5, 1, 0)  # rater 1 tires
    annotations = at.Annotations.from_masks(masks)
    case, dataset = at.STAPLE(scope="case").fit(annotations), at.STAPLE().fit(annotations)
    assert case.case_confusion_[0, 0, 1, 1] > 0.9
    assert case.case_confusion_[1, 0, 1, 1] < 0.6
    assert 0.6 < dataset.confusion_[0, 1, 1] < 0.85
    np.testing.assert_allclose(case.expected_counts_.sum(), masks.size)


def test_patterns_counted_elsewhere() -> None:
    masks = np.stack([binary_masks(seed=s) for s in range(3)])
    annotations = at.Annotations.from_masks(masks)
    counted = [count_case(annotations, index) for index in range(3)]
    fused, direct = at.STAPLE().fit(annotations, patterns=counted), at.STAPLE().fit(annotations)
    assert fused.confusion_.tobytes() == direct.confusion_.tobytes()
    with pytest.raises(InputError, match="patterns of 2"):
        at.STAPLE().fit(annotations, patterns=counted[:2])


def test_new_raters_join_by_partial_fit() -> None:
    masks = np.stack([binary_masks(seed=s) for s in range(2)])
    names = ["a", "b", "c", "d", "e"]
    first = at.Annotations.from_masks(masks[:1, :3], raters=names[:3], items=["x"])
    second = at.Annotations.from_masks(masks[1:, [4, 1, 3]], raters=["e", "b", "d"], items=["y"])
    fused = at.STAPLE().fit(first).partial_fit(second)
    assert fused.raters_ == ("a", "b", "c", "e", "d")
    assert fused.labelled_counts_.tolist() == [13824, 27648, 13824, 13824, 13824]
    joint = np.full((2, 5, *masks.shape[2:]), 255, dtype=np.uint8)
    joint[0, :3], joint[1, [3, 1, 4]] = masks[0, :3], masks[1, [4, 1, 3]]
    whole = at.STAPLE().fit(at.Annotations.from_masks(joint))
    np.testing.assert_allclose(fused.confusion_, whole.confusion_, atol=1e-4)
    np.testing.assert_allclose(fused.predict_proba(), whole.predict_proba(), atol=1e-3)


def test_raters_who_share_nothing_are_named() -> None:
    masks = np.full((2, 6, *ball().shape), 255, dtype=np.uint8)
    masks[0, :3], masks[1, 3:] = binary_masks(3, seed=0), binary_masks(3, seed=1)
    with pytest.warns(IdentifiabilityWarning, match="2 groups that share no item"):
        at.STAPLE().fit(at.Annotations.from_masks(masks))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"smoothing": -1}, "smoothing"), ({"foreground": "tumour"}, "tumour"), ({"foreground": 7}, "7")],
)
def test_wrong_parameters_are_refused_in_words(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        at.STAPLE(**wrong).fit(at.Annotations.from_masks(binary_masks()[None]))


def test_smoothing_needs_neighbours() -> None:
    with pytest.raises(InputError, match="neighbours"):
        at.STAPLE(smoothing=1).fit(at.Annotations.from_answers(np.zeros((3, 3), dtype=int)))


def test_foreground_of_a_table() -> None:
    answers = np.array([[0, 0, 2], [2, 2, 1], [1, 1, 1], [2, 2, 2]])
    fused = at.STAPLE(foreground=2, tol=1e-3).fit(at.Annotations.from_answers(answers), gold={"item_2": 1})
    assert fused.predict().tolist() == [0, 1, 0, 1]
