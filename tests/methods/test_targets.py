"""What labels teach: the vote counted by hand, and the targets of the baselines."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from annotruth import Annotations
from annotruth.errors import InputError
from annotruth.methods import DataSpec, make_method
from annotruth.methods.targets import majority_of


@settings(max_examples=30, deadline=None)
@given(st.data(), st.integers(2, 4), st.integers(1, 5))
def test_majority_against_counting_by_hand(data, classes, raters):
    labels = data.draw(
        st.lists(
            st.lists(st.sampled_from([*range(classes), 255]), min_size=raters, max_size=raters), min_size=1, max_size=6
        )
    )
    winners = []
    for pixel in labels:
        votes = [label for label in pixel if label != 255]
        counts = sorted((votes.count(c) for c in range(classes)), reverse=True)
        winners.append(max(range(classes), key=votes.count) if counts[0] > counts[1] else 255)
    found = majority_of(torch.tensor(labels, dtype=torch.uint8).T, classes)
    assert found.dtype == torch.uint8
    assert found.tolist() == [winners]


def test_what_teaches_each_baseline():
    masks = np.array([[[[0, 1, 1]], [[0, 1, 255]], [[1, 0, 255]]]], dtype=np.uint8)
    truth = np.array([[[1, 1, 255]]], dtype=np.uint8)
    annotations = Annotations.from_masks(masks, truth=truth)
    spec = DataSpec(channels=1, raters=3, classes=2, dims=2)
    taught = {"mean": masks[0], "pixel-cm": masks[0], "majority": [[[0, 1, 1]]], "clean": truth}
    for name, expected in taught.items():
        method = make_method(name, "masks")
        supervision = method.mask_targets(annotations, 0)
        np.testing.assert_array_equal(supervision, expected)
        assert supervision.dtype == torch.uint8
        assert method.n_targets(spec) == len(expected)
    with pytest.raises(InputError, match="carry no"):
        make_method("clean", "masks").mask_targets(Annotations.from_masks(masks), 0)


pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.AnnotruthWarning")
