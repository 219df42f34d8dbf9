"""Networks on masks that STAPLE or its spatial form has fused, item by item."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth import STAPLE, Annotations, SpatialSTAPLE
from annotruth.methods import make_method


@pytest.mark.filterwarnings("ignore:The estimated truth may be wrong")
def test_staple_fuses_each_item_by_itself(digits):
    for name, estimator in (("staple", STAPLE), ("spatial-staple", SpatialSTAPLE)):
        method = make_method(name, "masks")
        expected = estimator().fit(digits.take([1])).predict()[0]
        given = method.mask_targets(digits, 1)
        assert given.shape == (1, 28, 28)
        np.testing.assert_array_equal(given[0].numpy(), expected)


def test_pixels_nobody_labelled_teach_nothing(digits):
    masks = digits.masks.copy()
    masks[0] = 255
    masks[1, :, :9] = 255
    some = Annotations.from_masks(masks, digits.images)
    for name in ("staple", "spatial-staple"):
        bare, part = (make_method(name, "masks").mask_targets(some, index)[0] for index in (0, 1))
        assert (bare == 255).all()
        assert (part[:9] == 255).all()
        assert (part[9:] < 2).all()
