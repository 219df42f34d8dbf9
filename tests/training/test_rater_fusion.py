"""Fusion by a trained model, and questions that only some methods answer."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth import Annotations, Segmenter
from annotruth.errors import InputError
from annotruth.simulate import noisy_digits, simulate_masks

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.AnnotruthWarning")


@pytest.fixture(scope="module")
def digits() -> Annotations:
    images, truth, _ = noisy_digits(24)
    return simulate_masks(truth).annotations(images=images)


def test_other_methods_say_that_they_know_no_recurrences(digits):
    model = Segmenter("majority", max_epochs=1, progress=False).fit(digits.take(range(20)))
    with pytest.raises(InputError, match="majority knows nothing of recurrence="):
        model.predict_proba(digits.images[:1], recurrence=0)
    with pytest.raises(InputError, match="learns nothing of its raters"):
        model.rater_confidences_(digits.images[0])


def test_global_cm_fuses_by_bayes(digits):
    """Any method that learns matrices can fuse: here the posterior is worked out by hand."""
    model = Segmenter("global-cm", max_epochs=2, augment=False, progress=False).fit(digits)
    fused, prior = model.fuse(digits.take([0])), model.predict_proba(digits.images[:1]).astype(np.float64)
    matrices = model.confusion(digits.images[:1])[0]
    scores = np.log(prior[0]) + sum(np.log(matrices[r][:, digits.masks[0, r]]) for r in range(len(digits.raters)))
    expected = np.exp(scores) / np.exp(scores).sum(axis=0)
    np.testing.assert_allclose(fused[0], expected, atol=1e-3)
