"""What tests of methods share: three digits, answers to label tables, and models for these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from annotruth import Annotations
from annotruth.methods import Batch, DataSpec, make_method
from annotruth.simulate import noisy_digits, simulate_masks


@pytest.fixture
def digits() -> Annotations:
    """Three digits drawn by the usual five raters."""
    images, truth, _ = noisy_digits(3)
    return simulate_masks(truth).annotations(images=images)


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


@pytest.fixture
def fused_batch() -> Batch:
    """Two features and one fused label of five items, of which the third has none."""
    features = np.random.default_rng(0).normal(size=(5, 2))
    return Batch(torch.tensor(features), torch.tensor([[0], [2], [-1], [1], [2]]))


@pytest.fixture
def build() -> Callable[..., tuple[Any, Any]]:
    """Makes a method for label tables of three classes, and its model around a linear network of two features."""

    def make(name: str, raters: int = 4, dtype: torch.dtype = torch.float64, **options: Any) -> tuple[Any, Any]:
        torch.manual_seed(0)
        method = make_method(name, "labels", options)
        spec = DataSpec(channels=2, raters=raters, classes=3, dims=0, task="labels")
        return method, method.build(spec, torch.nn.Linear(2, 3)).to(dtype)

    return make


@pytest.fixture
def build_shaken(build: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
    """As ``build``, with random numbers added to where the model of the raters begins."""

    def make(name: str, **options: Any) -> tuple[Any, Any]:
        method, model = build(name, **options)
        with torch.no_grad():
            for numbers in model.annotators.parameters():
                numbers.add_(torch.randn_like(numbers))
        return method, model

    return make
