"""Annotator models: near the identity at the start, of the right shapes, and learning what raters do."""

from __future__ import annotations

import math

import pytest
import torch

from annotruth.nn import (
    GlobalAnnotators,
    IdentityAnnotators,
    LowRankAnnotators,
    PixelAnnotators,
    identity_scores,
    noisy_label_loss,
)


def models(classes: int, dims: int = 2) -> dict[str, torch.nn.Module]:
    torch.manual_seed(0)
    return {
        "identity": IdentityAnnotators(3, classes),
        "global": GlobalAnnotators(3, classes),
        "pixel": PixelAnnotators(1, 3, classes, dims=dims),
        "low rank": LowRankAnnotators(1, 3, classes, dims=dims),
        "rank 2": LowRankAnnotators(1, 3, classes, dims=dims, rank=2),
    }


@pytest.mark.parametrize("size", [(16, 12), (9, 14), (4, 6, 5)])
@pytest.mark.parametrize("classes", [2, 5])
def test_all_raters_start_faithful_everywhere(size, classes):
    images = torch.randn(2, 1, *size)
    for name, model in models(classes, len(size)).items():
        matrices = model(images).dense().detach()
        assert matrices.shape[1:4] == (3, classes, classes), name
        if name in ("pixel", "low rank", "rank 2"):
            assert matrices.shape == (2, 3, classes, classes, *size), name
        diagonal = matrices.diagonal(dim1=2, dim2=3)
        assert diagonal.min() > (0.95 if classes == 2 else 0.9), name
        torch.testing.assert_close(matrices.sum(dim=3), torch.ones_like(matrices.sum(dim=3)))


def test_low_rank_starts_as_faithful_with_many_classes():
    matrices = LowRankAnnotators(1, 2, classes=60, rank=3)(torch.randn(1, 1, 4, 4)).dense()
    assert matrices.diagonal(dim1=2, dim2=3).min() > 0.95


def test_identity_scores_are_six_on_the_diagonal_less_five():
    torch.testing.assert_close(identity_scores(3), torch.full((3, 3), -5.0).fill_diagonal_(1.0))


def test_the_identity_stands_where_the_images_are():
    assert IdentityAnnotators(2, 3)(torch.empty(1, 1, 4, 4, device="meta")).dense().device.type == "meta"


@pytest.mark.parametrize("name", ["global", "pixel", "low rank", "rank 2"])
def test_a_rater_who_always_says_background_is_found_out(name):
    torch.manual_seed(1)
    truth = (torch.rand(4, 8, 8) > 0.5).to(torch.uint8)
    images = truth.unsqueeze(1) + 0.1 * torch.randn(4, 1, 8, 8)
    labels = torch.stack([truth, truth, torch.zeros_like(truth)], dim=1)
    log_truth = torch.where(torch.stack([truth == 0, truth == 1], dim=1), 0.99, 0.01).log()
    model = models(2)[name]
    optimiser = torch.optim.Adam(model.parameters(), lr=0.2)
    for _ in range(40):
        optimiser.zero_grad()
        noisy_label_loss(log_truth, model(images), labels)[0].backward()
        optimiser.step()
    rows, weight = model(images).mean_rows(log_truth.exp())
    mean = (rows.sum(dim=0) / weight.sum(dim=0)).detach()
    assert mean[0].diagonal().min() > 0.9
    assert mean[2, 1, 0] > 0.9


@pytest.mark.parametrize("row", [[100.0, -100.0], [-100.0, -300.0]])
def test_a_global_matrix_with_extreme_scores_still_learns(row):
    model = GlobalAnnotators(1, 2)
    with torch.no_grad():
        model.scores[0, 0] = torch.tensor(row)
    log_truth = torch.tensor([[0.0, -300.0]])  # surely class 0, which this rater never takes for 1, and yet said 1
    loss, _ = noisy_label_loss(log_truth, model(log_truth), torch.tensor([[1]]), trace_weight=0.01)
    loss.backward()
    assert loss.item() == pytest.approx(-row[1] + math.log(100) if row[0] > 0 else row[0] - row[1], abs=0.02)
    assert model.scores.grad is not None
    assert model.scores.grad.isfinite().all()
    assert model.scores.grad[0, 0, 1].item() == pytest.approx(-1, abs=0.02)
