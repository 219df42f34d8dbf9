"""Random pixels with matrices of their own, to be worked on in one block or in many."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor


@pytest.fixture(scope="session")
def problem() -> Callable[..., list[Tensor]]:
    """Makes log_truth, scores, labels (some missing, one rater without any) and row weights, in double precision."""

    def make(size: tuple[int, ...], classes: int = 3, raters: int = 4, batch: int = 2, seed: int = 0) -> list[Tensor]:
        generator = torch.Generator().manual_seed(seed)
        log_truth = (
            torch.randn(batch, classes, *size, generator=generator, dtype=torch.double).mul(2).log_softmax(dim=1)
        )
        scores = 3 * torch.randn(batch, raters, classes, classes, *size, generator=generator, dtype=torch.double)
        labels = torch.randint(classes, (batch, raters, *size), generator=generator, dtype=torch.uint8)
        labels[torch.rand(labels.shape, generator=generator) < 0.2] = 255
        labels[:, -1] = 255
        return [log_truth.requires_grad_(), scores.requires_grad_(), labels, torch.rand_like(log_truth)]

    return make


@pytest.fixture(params=["one block", "many blocks"])
def block_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "many blocks":
        monkeypatch.setattr("annotruth.nn.confusion.base._BLOCK_SIZE_ON_CPU", 90)
