"""Answers to a label table that formulas are tried on by loops."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from annotruth.methods import Batch


@pytest.fixture
def batch(sparse_batch: Callable[..., Batch]) -> Batch:
    """Six items, four raters, three classes."""
    return sparse_batch(6, 4, 3, torch.float64)


@pytest.fixture
def given(batch: Batch) -> list[tuple[int, int, int]]:
    """All answers of the batch, as (item, rater, label)."""
    table = batch.labels.numpy()
    return [(item, rater, table[item, rater]) for item, rater in zip(*np.nonzero(table >= 0))]
