"""Checks that any fusion estimator must pass, to be run on a new one in its tests.

>>> from annotruth import MajorityVote
>>> for check in CHECKS:
...     check(MajorityVote())
"""

from __future__ import annotations

import pickle
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.base import CaseEstimate, FusionEstimator, UnlabelledWarning
from annotruth.fusion.state import CaseState, FusionState
from annotruth.fusion.votes import Patterns
from annotruth.parallel.threads import threads
from annotruth.parallel.workers import open_workers
from annotruth.validation import MISSING_PIXEL

CLASSES = 3
SKILLS = (0.95, 0.9, 0.85, 0.8, 0.75)


def noisy_masks(shape: tuple[int, ...] = (24, 20), n_items: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Masks (items, raters, *shape) of raters with independent errors, and the truth (items, *shape).

    Examples
    --------
    >>> masks, truth = noisy_masks((4, 4))
    >>> masks.shape, truth.shape
    ((2, 5, 4, 4), (2, 4, 4))
    """
    rng = np.random.default_rng(seed)
    truth = np.sort(rng.integers(0, CLASSES, (n_items, *shape)), axis=-1).astype(np.uint8)
    others = (truth[:, None] + rng.integers(1, CLASSES, (n_items, len(SKILLS), *shape))) % CLASSES
    right = rng.random(others.shape) < np.reshape(SKILLS, (-1, *[1] * len(shape)))
    return np.where(right, truth[:, None], others).astype(np.uint8), truth


def noisy_images(masks: np.ndarray | Sequence[np.ndarray]) -> list[np.ndarray]:
    """An image (1, *shape) for each case of masks (raters, *shape), in which classes look different."""
    images = []
    for case in masks:
        drawn = np.where(case == MISSING_PIXEL, 0, case).sum(axis=0)
        images.append((drawn / np.maximum((case != MISSING_PIXEL).sum(axis=0), 1))[None].astype(np.float32))
    return images


def _annotations(masks: np.ndarray | Sequence[np.ndarray]) -> Annotations:
    return Annotations.from_masks(masks, noisy_images(masks), classes=CLASSES)


def check_constructor_only_stores(estimator: FusionEstimator) -> None:
    """Parameters come back as they were given, from the estimator and from its clone."""
    for name, value in estimator.get_params().items():
        assert getattr(estimator, name) is value
    twin = clone(estimator)
    assert str(twin.get_params()) == str(estimator.get_params())
    assert not [name for name in vars(estimator) if name.endswith("_")], "nothing is learnt before fit"


def check_asks_for_fit_first(estimator: FusionEstimator) -> None:
    """Results before fit are refused by name."""
    for ask in (estimator.predict, estimator.predict_proba, estimator.skill_interval):
        try:
            ask()
        except NotFittedError:
            continue
        raise AssertionError(f"{ask} gave a result before fit")


def check_shapes_and_sums(estimator: FusionEstimator) -> None:
    """Arrays have the promised shapes and sums, in one, two and three dimensions."""
    for shape in [(40,), (24, 20), (6, 8, 10)]:
        masks, _ = noisy_masks(shape)
        fused = clone(estimator)
        assert fused.fit(_annotations(masks)) is fused
        n_classes, n_raters = len(fused.classes_), masks.shape[1]
        posterior, labels = fused.predict_proba(), fused.predict()
        assert isinstance(posterior, np.ndarray)
        assert isinstance(labels, np.ndarray)
        assert posterior.shape == (2, n_classes, *shape)
        assert posterior.dtype == np.float32
        assert labels.shape == (2, *shape)
        assert labels.dtype == np.uint8
        np.testing.assert_allclose(posterior.sum(axis=1), 1, atol=1e-5)
        assert (posterior >= 0).all()
        np.testing.assert_array_equal(np.take_along_axis(posterior, labels[:, None], 1)[:, 0], posterior.max(axis=1))
        assert fused.confusion_.shape == fused.expected_counts_.shape == (n_raters, n_classes, n_classes)
        np.testing.assert_allclose(fused.confusion_.sum(axis=2), 1)
        np.testing.assert_allclose(fused.prior_.sum(), 1)
        np.testing.assert_allclose(fused.skill_, np.trace(fused.confusion_, axis1=1, axis2=2) / n_classes)
        np.testing.assert_array_equal(fused.labelled_counts_, np.full(n_raters, masks[:, 0].size))
        low, high = fused.confusion_interval()
        assert ((low <= high) & (low >= 0) & (high <= 1)).all()


def check_recovers_truth(estimator: FusionEstimator) -> None:
    """Raters who are mostly right give the truth; raters who all agree give it exactly."""
    masks, truth = noisy_masks((64, 64))
    fused = clone(estimator).fit(_annotations(masks))
    if len(fused.classes_) == CLASSES:
        assert (np.asarray(fused.predict()) == truth).mean() > 0.95
        same = np.repeat(truth[:, None], 3, axis=1)
        np.testing.assert_array_equal(clone(estimator).fit(_annotations(same)).predict(), truth)


def check_log_likelihood_never_falls(estimator: FusionEstimator) -> None:
    """The path of the log-likelihood rises, where there is one."""
    fused = clone(estimator).fit(_annotations(noisy_masks()[0]))
    if hasattr(fused, "log_likelihood_"):
        path = fused.log_likelihood_
        assert len(path) == fused.n_iter_ >= 1
        assert (np.diff(path) >= -1e-9 * np.abs(path[:-1])).all()


def check_same_bits_for_any_threads(estimator: FusionEstimator) -> None:
    """The number of threads changes nothing at all."""
    annotations = _annotations(noisy_masks((300, 400))[0])
    results = []
    for count in (1, 2, 3):
        with threads(count):
            fused = clone(estimator).fit(annotations)
            results.append((fused.confusion_.tobytes(), np.asarray(fused.predict_proba()).tobytes()))
    assert results[0] == results[1] == results[2]


def check_order_of_raters(estimator: FusionEstimator) -> None:
    """Raters in another order have the same matrices, in that order."""
    masks, _ = noisy_masks()
    order = np.array([3, 0, 4, 1, 2])
    fused, other = clone(estimator).fit(_annotations(masks)), clone(estimator).fit(_annotations(masks[:, order]))
    np.testing.assert_allclose(other.confusion_, fused.confusion_[order], atol=1e-6)
    np.testing.assert_allclose(other.predict_proba(), fused.predict_proba(), atol=1e-4)


def check_rater_without_labels(estimator: FusionEstimator) -> None:
    """A rater without any label is accepted and changes nothing."""
    masks, _ = noisy_masks()
    blank = np.concatenate([masks, np.full_like(masks[:, :1], MISSING_PIXEL)], axis=1)
    fused, other = clone(estimator).fit(_annotations(masks)), clone(estimator).fit(_annotations(blank))
    if other.pseudo_counts(other.raters_, len(other.classes_)) is None:
        np.testing.assert_allclose(other.confusion_[-1], 1 / len(other.classes_))
    assert other.labelled_counts_[-1] == 0
    np.testing.assert_allclose(other.predict_proba(), fused.predict_proba(), atol=1e-6)


def check_pixels_without_labels(estimator: FusionEstimator) -> None:
    """Pixels that raters left out say nothing of them; where all did, the posterior is the prior, with a warning."""
    masks, _ = noisy_masks()
    masks[0, 1, :5] = MISSING_PIXEL
    masks[0, :, 0, 0] = MISSING_PIXEL
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fused = clone(estimator).fit(_annotations(masks))
    assert any(issubclass(warning.category, UnlabelledWarning) for warning in caught)
    assert fused.unlabelled_.tolist() == [1, 0]
    assert fused.labelled_counts_[1] == (masks[:, 1] != MISSING_PIXEL).sum()
    assert np.isfinite(fused.predict_proba()).all()
    if not fused.refines:
        np.testing.assert_allclose(np.asarray(fused.predict_proba())[0, :, 0, 0], fused.prior_, atol=1e-6)


def check_gold_pixels(estimator: FusionEstimator) -> None:
    """Pixels of known truth are given as they are known."""
    masks, truth = noisy_masks()
    gold = np.full_like(truth, MISSING_PIXEL)
    gold[0, :4] = (truth[0, :4] + 1) % CLASSES  # known to differ from what raters say
    fused = clone(estimator).fit(_annotations(masks), gold=gold)
    if len(fused.classes_) == CLASSES:
        np.testing.assert_array_equal(np.asarray(fused.predict())[0, :4], gold[0, :4])


def check_cases_of_different_sizes(estimator: FusionEstimator) -> None:
    """Where sizes differ results are lists, equal to the results item by item."""
    cases = [noisy_masks(shape, n_items=1, seed=3)[0][0] for shape in [(24, 20), (16, 28)]]
    fused = clone(estimator).fit(_annotations(cases))
    posterior, labels = fused.predict_proba(), fused.predict()
    assert isinstance(posterior, list)
    assert isinstance(labels, list)
    for index in (0, 1):
        np.testing.assert_array_equal(fused.predict_proba_item(index), posterior[index])
        np.testing.assert_array_equal(fused.predict_item(index), labels[index])
        assert labels[index].shape == cases[index].shape[1:]


def check_partial_fit(estimator: FusionEstimator) -> None:
    """Cases given one after the other lead to where all of them at once do."""
    masks, _ = noisy_masks((40, 40), n_items=4)
    annotations = _annotations(masks)
    whole = clone(estimator).fit(annotations)
    parts = clone(estimator).partial_fit(annotations.take([0, 1])).partial_fit(annotations.take([2, 3]))
    assert parts.items_ == whole.items_
    np.testing.assert_allclose(parts.confusion_, whole.confusion_, atol=2e-3)
    np.testing.assert_allclose(parts.predict_proba(), whole.predict_proba(), atol=2e-2)
    try:
        parts.partial_fit(annotations.take([1]))
    except InputError:
        return
    raise AssertionError("a case given twice was accepted")


def check_scope_case(estimator: FusionEstimator) -> None:
    """With scope="case" every case has matrices of its own, as if it were alone."""
    if "scope" not in estimator.get_params():
        return
    annotations = _annotations(noisy_masks()[0])
    fused = clone(estimator).set_params(scope="case").fit(annotations)
    assert fused.case_confusion_.shape == (2, *fused.confusion_.shape)
    alone = clone(estimator).set_params(scope="dataset").fit(annotations.take([1]))
    np.testing.assert_allclose(fused.case_confusion_[1], alone.confusion_, atol=1e-12)
    np.testing.assert_array_equal(fused.predict_proba_item(1), alone.predict_proba_item(0))


def check_pickles(estimator: FusionEstimator) -> None:
    """A fitted estimator travels between processes, if its class can be imported there."""
    fused = clone(estimator).fit(_annotations(noisy_masks()[0]))
    if _is_importable(type(fused)):
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(fused)).predict_proba(), fused.predict_proba())


def check_state_travels(estimator: FusionEstimator) -> None:
    """What was learnt of the whole is all that another process needs to tell the truth of a case."""
    annotations = _annotations(noisy_masks()[0])
    for scope in ("dataset", "case") if "scope" in estimator.get_params() else ("dataset",):
        fused = _with_scope(estimator, scope).fit(annotations)
        for index in range(len(annotations)):
            state = pickle.loads(pickle.dumps(fused.case_state(index)))
            labels, posterior = clone(estimator).fuse_case(estimator.read_case(annotations, index), state)
            np.testing.assert_array_equal(labels, fused.predict_item(index).ravel())
            np.testing.assert_array_equal(posterior, fused.predict_proba_item(index).reshape(len(posterior), -1))


def check_cases_in_workers(estimator: FusionEstimator) -> None:
    """Cases counted, estimated and refined elsewhere give the same bits as here."""
    annotations = _annotations(noisy_masks((24, 20), n_items=3)[0])
    cases = [annotations.take([index]) for index in range(len(annotations))]
    by_case = _with_scope(estimator, "case")
    with open_workers(2 if _is_importable(type(estimator)) else 1, preload=["annotruth.fusion.folder"]) as across:

        def run_cases(states: Sequence[FusionState], final: bool) -> Iterable[CaseState]:
            return across(partial(_refine, estimator), list(zip(cases, states)))

        patterns = list(across(partial(_count, estimator), cases))
        there = clone(estimator).fit(annotations, patterns=patterns, run_cases=run_cases)
        alone = list(across(partial(_estimate, by_case), cases))
    here = clone(estimator).fit(annotations)
    assert there.confusion_.tobytes() == here.confusion_.tobytes()
    np.testing.assert_array_equal(there.predict_proba(), here.predict_proba())
    there, here = clone(by_case).fit(annotations, patterns=patterns, cases=alone), clone(by_case).fit(annotations)
    assert there.case_confusion_.tobytes() == here.case_confusion_.tobytes()
    np.testing.assert_array_equal(there.predict_proba(), here.predict_proba())


def _count(estimator: FusionEstimator, case: Annotations) -> Patterns:
    return estimator.count(case, 0)


def _refine(estimator: FusionEstimator, task: tuple[Annotations, FusionState]) -> CaseState:
    return estimator.refine_case(estimator.read_case(task[0]), task[1]).without_posterior()


def _estimate(estimator: FusionEstimator, case: Annotations) -> CaseEstimate:
    return estimator.estimate_case(estimator.read_case(case))


def _with_scope(estimator: FusionEstimator, scope: str) -> FusionEstimator:
    return clone(estimator).set_params(**({"scope": scope} if "scope" in estimator.get_params() else {}))


def _is_importable(kind: type) -> bool:
    """Whether other processes find a class; they do not find one that was made in a notebook or an example."""
    module = sys.modules.get(kind.__module__)
    return kind.__module__ != "__main__" and getattr(module, kind.__qualname__, None) is kind


CHECKS: tuple[Callable[[FusionEstimator], None], ...] = tuple(
    check for name, check in sorted(globals().items()) if name.startswith("check_")
)
