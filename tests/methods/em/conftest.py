"""Answers that the steps of expectation-maximisation are tried on by loops."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from annotruth.methods import Batch


@pytest.fixture
def batch(sparse_batch: Callable[..., Batch]) -> Batch:
    """Twelve items, three raters, three classes."""
    return sparse_batch(12, 3, 3, torch.float32)
