"""Labels as runs."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from annotruth.desk.coding import decode_runs, encode_runs, from_text, to_text
from annotruth.errors import InputError


@given(arrays(np.uint8, array_shapes(max_dims=3), elements=st.sampled_from([0, 1, 2, 255])))
def test_labels_come_back_as_they_went(labels):
    assert (decode_runs(encode_runs(labels), labels.size) == labels.reshape(-1)).all()
    assert (from_text(to_text(labels), labels.shape) == labels).all()


@given(st.binary(max_size=60), st.integers(0, 50))
def test_any_bytes_are_labels_or_are_refused(code, size):
    with suppress(InputError):
        assert decode_runs(code, size).shape == (size,)


def test_a_mask_of_another_size_is_refused():
    code = encode_runs(np.array([0, 1, 1], dtype=np.uint8))
    with pytest.raises(InputError, match="another size"):
        decode_runs(code, 1)


@pytest.mark.parametrize("text", ["", "no base 64", "AAAA", to_text(np.zeros(9, dtype=np.uint8))])
def test_a_damaged_mask_of_the_log_is_refused(text):
    with pytest.raises(InputError):
        from_text(text, (0,))
