"""The losses of MrPrism, each against an independent reference."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter

from annotruth.nn.prism.fusion import fuse, said
from annotruth.nn.prism.losses import (
    SSIM_CONSTANT,
    WINDOW_DEVIATION,
    WINDOW_SIDE,
    mask_loss,
    multi_head_loss,
    shuffle_loss,
    ssim_loss,
)


def similarity(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The structural similarity of Wang et al. 2004 around every pixel, by SciPy's Gaussian."""

    def mean(values: np.ndarray) -> np.ndarray:
        return gaussian_filter(values, WINDOW_DEVIATION, mode="nearest", radius=WINDOW_SIDE // 2)

    a, b = mean(one), mean(other)
    spread_a, spread_b, both = mean(one**2) - a**2, mean(other**2) - b**2, mean(one * other) - a * b
    return (
        (2 * a * b + SSIM_CONSTANT)
        * (2 * both + SSIM_CONSTANT)
        / ((a**2 + b**2 + SSIM_CONSTANT) * (spread_a + spread_b + SSIM_CONSTANT))
    )


@pytest.mark.parametrize("size", [(5, 4), (13, 20), (6, 7, 8)])
def test_ssim_against_scipy(size):
    rng = np.random.default_rng(0)
    mask, target = rng.random((2, 2, 3, *size))
    counted = rng.random((2, *size)) < 0.7
    per_class = np.array(
        [
            [(similarity(a, b) + similarity(1 - a, 1 - b)) / 2 for a, b in zip(*pair)]
            for pair in zip(mask, _known(mask, target, counted))
        ]
    )
    expected = (1 - per_class.mean(axis=1))[counted].mean()
    found = ssim_loss(torch.from_numpy(mask), torch.from_numpy(target), torch.from_numpy(counted))
    assert found.item() == pytest.approx(expected, abs=1e-4)


def _known(mask: np.ndarray, target: np.ndarray, counted: np.ndarray) -> np.ndarray:
    return np.where(counted[:, None], target, mask)


def test_loss_of_a_mask_is_ssim_dice_and_cross_entropy():
    torch.manual_seed(0)
    scores, target = torch.randn(2, 3, 8, 8), torch.randn(2, 3, 8, 8).softmax(dim=1)
    counted = torch.rand(2, 8, 8) < 0.6
    per_pixel = torch.nn.functional.cross_entropy(scores, target, reduction="none")
    mask = scores.softmax(dim=1)
    dice = [
        (2 * (mask[:, each] * target[:, each])[counted].sum() + 1) / ((mask + target)[:, each][counted].sum() + 1)
        for each in (1, 2)
    ]
    expected = ssim_loss(mask[:, 1:], target[:, 1:], counted) + 1 - sum(dice) / 2 + per_pixel[counted].mean()
    torch.testing.assert_close(mask_loss(scores.log_softmax(dim=1), target, counted), expected)


def test_ssim_draws_a_mask_away_from_the_middle_whatever_the_target():
    everywhere = torch.ones(1, 9, 9, dtype=torch.bool)
    for target, sign in ((0.0, 1), (1.0, -1)):
        mask = torch.full((1, 1, 9, 9), 0.5, requires_grad=True)
        ssim_loss(mask, torch.full((1, 1, 9, 9), target), everywhere).backward()
        assert (sign * mask.grad.mean() * 81).item() > 0.2


def test_ssim_of_nothing_is_zero_and_gradients_are_of_the_mask_alone():
    mask = torch.rand(1, 2, 9, 9, requires_grad=True)
    target = torch.rand(1, 2, 9, 9, requires_grad=True)
    assert ssim_loss(mask, target, torch.zeros(1, 9, 9, dtype=torch.bool)).item() == 0
    ssim_loss(mask, target, torch.ones(1, 9, 9, dtype=torch.bool)).backward()
    assert mask.grad.abs().sum() > 0
    assert target.grad is None


def matrices_of(scores: torch.Tensor) -> torch.Tensor:
    return scores.softmax(dim=3)


@pytest.fixture
def problem():
    torch.manual_seed(0)
    labels = torch.randint(0, 3, (4, 5, 6), dtype=torch.uint8)
    labels[0, 1], labels[1] = 255, 255  # a rater who is not there, and a patch that nobody labelled
    scores = torch.randn(4, 5, 3, 3, requires_grad=True)
    return labels, scores, torch.randn(4, 3, 6).softmax(dim=1)


def test_multi_head_loss_against_torch(problem):
    labels, scores, truth = problem
    matrices = matrices_of(scores)
    heads = torch.einsum("pks,prkj->prjs", truth, matrices)
    expected = torch.nn.functional.nll_loss(
        heads.log().permute(0, 1, 3, 2).reshape(-1, 3), labels.flatten().long(), ignore_index=255
    )
    loss = multi_head_loss(said(labels, 3), matrices, truth)
    torch.testing.assert_close(loss, expected)
    one, other = (torch.autograd.grad(of, scores, retain_graph=True)[0] for of in (loss, expected))
    torch.testing.assert_close(one, other)


def test_multi_head_loss_of_a_label_that_cannot_be_is_finite_and_has_a_slope():
    matrices = torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]]], requires_grad=True)
    loss = multi_head_loss(said(torch.tensor([[[1]]]), 2), matrices, torch.tensor([[[1.0], [0.0]]]))
    assert loss.item() == pytest.approx(-log(1e-9))
    loss.backward()
    assert torch.isfinite(matrices.grad).all()
    assert matrices.grad[0, 0, 0, 1] < 0


@pytest.mark.parametrize("rule", ["bayes", "weights", "literal"])
def test_shuffle_loss_against_fusing_by_hand(problem, rule):
    labels, scores, truth = problem
    matrices, given = matrices_of(scores), said(labels, 3)
    torch.manual_seed(5)
    found = shuffle_loss(rule, given, matrices, truth, shuffles=2)
    torch.manual_seed(5)
    heads = torch.einsum("pks,prkj->prjs", truth, matrices) * (labels < 3).unsqueeze(2)
    expected, anybody = 0.0, (labels < 3).any(dim=1)
    for _ in range(2):
        dealt = matrices[:, torch.randperm(5)]
        of_labels, of_heads = fuse(rule, given, dealt, truth, prior=False), fuse(rule, heads, dealt, truth, prior=False)
        expected -= ((of_labels * of_heads.log()).sum(dim=1))[anybody].mean() / 2
    torch.testing.assert_close(found, expected)


def test_shuffling_is_least_where_heads_say_what_raters_said():
    """With sure heads, the loss is the least there is: the entropy of the labels' own fusion."""
    labels = torch.tensor([[[0, 1], [0, 1], [1, 0]]], dtype=torch.uint8)
    truth = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    faithful, contrary = torch.eye(2), 1 - torch.eye(2)
    right = torch.stack([faithful, faithful, contrary])[None]
    wrong = torch.stack([contrary, faithful, faithful])[None]
    losses = []
    for matrices in (right, wrong):
        torch.manual_seed(0)
        losses.append(shuffle_loss("bayes", said(labels, 2), 0.8 * matrices + 0.1, truth, shuffles=6).item())
    assert losses[0] < losses[1]


def test_losses_of_nothing_are_zero(problem):
    _, scores, truth = problem
    nothing = torch.zeros(4, 5, 3, 6)
    assert multi_head_loss(nothing, matrices_of(scores), truth).item() == 0
    assert shuffle_loss("bayes", nothing, matrices_of(scores), truth).item() == 0


def test_shuffle_loss_teaches_heads_and_not_confidences(problem):
    """Its gradient is that of the labels which heads foretell; confidences are constants."""
    labels, scores, truth = problem
    shuffle_loss("bayes", said(labels, 3), matrices_of(scores), truth).backward()
    assert scores.grad.abs().sum() > 0
    assert scores.grad[1].abs().sum() == 0  # nobody labelled this patch
