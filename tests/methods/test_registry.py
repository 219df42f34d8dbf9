"""Methods by name, their options, and what they learn from."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from annotruth import Annotations
from annotruth.errors import InputError
from annotruth.methods import METHODS, DataSpec, make_method
from annotruth.methods.base import majority_of


def test_names():
    assert {"pixel-cm", "pixel-cm-lowrank", "global-cm", "majority", "mean", "clean"} <= set(METHODS)
    for name, method in METHODS.items():
        assert method.name == name
        assert method.summary
        assert method.paper


def test_an_unknown_method_lists_the_known_ones():
    with pytest.raises(InputError) as refused:
        make_method("unet")
    assert all(name in str(refused.value) for name in METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_an_unknown_option_lists_the_methods_own(name):
    with pytest.raises(InputError, match=f"The method {name} has no option 'colour'. Its options: ") as refused:
        make_method(name, {"colour": 1})
    options = [field.name for field in fields(METHODS[name])]
    assert all(option in str(refused.value) for option in options or ["none"])


@pytest.mark.parametrize("name", METHODS)
def test_options_are_kept(name):
    given_options = {field.name: field.default for field in fields(METHODS[name])}
    assert vars(make_method(name, given_options)) == vars(make_method(name)) == given_options


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("pixel-cm", {"trace_weight": "much"}, "trace_weight of pixel-cm must be a number, not 'much'"),
        ("pixel-cm", {"trace_weight": True}, "must be a number"),
        ("pixel-cm", {"warmup": None}, "must be a number"),
        ("pixel-cm", {"trace": 1}, "Unknown trace 1"),
        ("pixel-cm", {"features": "both"}, "Unknown features 'both'. Known: own, shared"),
        ("global-cm", {"trace": "sum"}, "Unknown trace 'sum'. Known: posterior, plain"),
        ("global-cm", {"warmup": 1.0}, "warmup"),
        ("global-cm", {"warmup": -0.1}, "warmup"),
        ("pixel-cm-lowrank", {"rank": 0}, "rank must be at least 1"),
        ("pixel-cm-lowrank", {"rank": 1.5}, "rank of pixel-cm-lowrank must be a whole number"),
    ],
)
def test_wrong_values_are_refused(name, options, words):
    with pytest.raises(InputError, match=words):
        make_method(name, options, "masks")


@pytest.mark.parametrize("value", [1, 0.5, np.float32(0.5), np.int64(1)])
def test_any_number_will_do(value):
    assert make_method("pixel-cm", {"trace_weight": value}).trace_weight == value


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
        winners.append(min(range(classes), key=lambda c: (-votes.count(c), c)) if votes else 255)
    found = majority_of(torch.tensor(labels, dtype=torch.uint8).T, classes)
    assert found.dtype == torch.uint8
    assert found.tolist() == [winners]


def test_what_teaches_each_baseline():
    masks = np.array([[[[0, 1, 1]], [[0, 1, 255]], [[1, 0, 255]]]], dtype=np.uint8)
    truth = np.array([[[1, 1, 255]]], dtype=np.uint8)
    annotations = Annotations.from_masks(masks, truth=truth)
    shape = DataSpec(channels=1, raters=3, classes=2, dims=2)
    taught = {"mean": masks[0], "pixel-cm": masks[0], "majority": [[[0, 1, 1]]], "clean": truth}
    for name, expected in taught.items():
        method = make_method(name)
        supervision = method.mask_targets(annotations, 0)
        np.testing.assert_array_equal(supervision, expected)
        assert supervision.dtype == torch.uint8
        assert method.n_targets(shape) == len(expected)
    with pytest.raises(InputError, match="carry no"):
        make_method("clean").mask_targets(Annotations.from_masks(masks), 0)
