"""STAPLE with a graph cut: the limits, and what it refuses."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.fusion._em.cuts import cut_labels, given_neighbours

from .mask_data import assert_refuses_tables_and_single_raters, shifted_masks

pytest.importorskip("maxflow")


@pytest.mark.filterwarnings("ignore:The estimated truth may be wrong")
def test_hardly_any_smoothing_is_staple() -> None:
    annotations = at.Annotations.from_masks(shifted_masks(3)[None], classes=3)
    cut, plain = at.GraphCutSTAPLE(smoothing=1e-9).fit(annotations), at.STAPLE().fit(annotations)
    np.testing.assert_allclose(cut.predict_proba(), plain.predict_proba(), atol=1e-3)


@pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")
def test_specks_go_and_the_shape_stays() -> None:
    rng = np.random.default_rng(0)
    truth = np.zeros((20, 24, 22), dtype=np.uint8)
    truth[5:15, 6:18, 5:17] = 1
    masks = np.where(rng.random((3, *truth.shape)) < 0.2, 1 - truth, truth).astype(np.uint8)
    annotations = at.Annotations.from_masks(masks[None])
    cut, plain = at.GraphCutSTAPLE().fit(annotations), at.STAPLE().fit(annotations)
    assert (cut.predict()[0] != truth).mean() < 0.25 * (plain.predict()[0] != truth).mean()
    posterior = plain.predict_proba()[0].reshape(2, -1)
    field = at.STAPLE(smoothing=0.5).fit(annotations).smooth(posterior, truth.shape)[0].argmax(axis=0)
    _, by_field = given_neighbours(posterior, field.astype(np.uint8), truth.shape, 0.5)
    _, by_cut = given_neighbours(posterior, cut_labels(posterior, truth.shape, 0.5), truth.shape, 0.5)
    assert by_cut >= by_field


def test_unfit_input_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    assert_refuses_tables_and_single_raters(at.GraphCutSTAPLE(), "DawidSkene")
    annotations = at.Annotations.from_masks(shifted_masks()[None])
    with pytest.raises(InputError, match=r"smoothing must be above 0.*use STAPLE"):
        at.GraphCutSTAPLE(smoothing=0.0).fit(annotations)
    monkeypatch.setitem(sys.modules, "maxflow", None)
    with pytest.raises(InputError, match=r"annotruth\[cuts\]"):
        at.GraphCutSTAPLE().fit(annotations)
