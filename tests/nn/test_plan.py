"""Stages of a network, by the size and spacing of images."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotruth.errors import InputError
from annotruth.nn import NetworkPlan, plan_network
from annotruth.nn.plan import MAX_STAGES, MIN_SIDE

SIDES = st.lists(st.integers(1, 700), min_size=2, max_size=3)


@given(size=SIDES, data=st.data())
def test_no_axis_falls_below_four_pixels_and_every_one_is_halved_while_it_may_be(size, data):
    spacing = data.draw(st.lists(st.floats(0.2, 8), min_size=len(size), max_size=len(size)))
    plan = plan_network(size, spacing)
    left = np.array(size, dtype=float)
    for stage in plan.strides:
        left = np.ceil(left / np.array(stage))
    halved = np.array(plan.stride) > 1
    assert 2 <= len(plan.widths) <= MAX_STAGES
    if max(size) >= 2 * MIN_SIDE:
        assert (left[halved] >= MIN_SIDE).all()
    if len(plan.widths) < MAX_STAGES and max(size) >= 2 * MIN_SIDE:
        assert (left < 2 * MIN_SIDE).any() or not halved.all()


@given(size=SIDES)
def test_widths_double_and_end(size):
    widths = plan_network(size).widths
    assert widths[0] == 16
    assert max(widths) <= 256
    assert all(after in (2 * before, max(widths)) for before, after in pairwise(widths))


def test_thick_slices_are_looked_through_later():
    plan = plan_network((256, 256, 32), spacing=(0.5, 0.5, 3.0))
    assert plan.strides[1] == (2, 2, 1)
    assert plan.kernels[0] == (3, 3, 1)
    assert plan.kernels[-1] == (3, 3, 3)
    assert plan.stride[2] > 1
    assert plan_network((256, 256, 32)).strides[1] == (2, 2, 2)


def test_an_axis_once_looked_along_stays_so():
    plan = plan_network((24, 20, 16), spacing=(1, 1, 2.5))
    assert plan.strides[-1] == (1, 1, 2)
    assert plan.kernels == ((3, 3, 1), (3, 3, 3), (3, 3, 3), (3, 3, 3))


def test_names_say_how_wide():
    assert plan_network((64, 64), name="standard").widths[0] == 32
    assert plan_network((64, 64), name="residual").residual
    assert plan_network((64, 64), name="monai:SegResNet").widths == plan_network((64, 64)).widths
    with pytest.raises(InputError, match=r"small, standard, residual, monai:<ClassName>"):
        plan_network((64, 64), name="huge")


GOOD = {"name": "small", "widths": [8, 16], "strides": [[1, 1], [2, 2]], "kernels": [[3, 3], [3, 3]]}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"widths": [8]}, "for each stage; there are 1, 2 and 2"),
        ({"strides": [[2, 2], [2, 2]]}, "first stage works at full resolution"),
        ({"strides": [[1, 1], [2]]}, "one number per axis"),
        ({"kernels": [[3, 3], [2, 2]]}, "odd numbers"),
        ({"widths": [0, 16]}, "positive whole numbers"),
        ({"norm": "group"}, "norm"),
        ({"widths": [8], "strides": [[1, 1]], "kernels": [[3, 3]]}, "two stages at least"),
    ],
)
def test_a_plan_changed_by_hand_must_make_sense(changes, words):
    assert NetworkPlan(**GOOD).stride == (2, 2)
    with pytest.raises(InputError, match=words):
        NetworkPlan(**{**GOOD, **changes})
