"""What tests of methods on label tables share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from annotruth.methods import Batch


@pytest.fixture
def sparse_batch() -> Callable[..., Batch]:
    """Makes two features and answers of items: a third of the answers are missing; nobody answers the last item."""

    def make(items: int, raters: int, classes: int, dtype: torch.dtype) -> Batch:
        rng = np.random.default_rng(0)
        labels = rng.integers(0, classes, (items, raters))
        labels[rng.random(labels.shape) < 0.3] = -1
        labels[-1] = -1
        return Batch(torch.tensor(rng.normal(size=(items, 2)), dtype=dtype), torch.tensor(labels))

    return make
