"""The mean loss of pixel-wise confusion matrices, gather-based, with gradients computed on the way.

For truth probabilities p, positive weights W and a row-normalised confusion matrix A[i, j] = W[i, j] / Σ_k W[i, k], an
annotator who said j is explained with probability Σ_i p_i · A[i, j]. That needs only the observed column of W and its
row sums, so A is never formed: time and memory stay far below one matrix product per pixel. The sum is formed without
logarithms where nothing can underflow, and in the log domain where scores are extreme.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from annotruth.nn.blocks import blocks, one_pixel_axis
from annotruth.nn.confusion.likelihood import column_index, diagonal_of
from annotruth.nn.confusion.rows import in_range, is_ordinary
from annotruth.nn.labels import is_labelled


def pixel_loss(
    log_truth: Tensor, scores: Tensor, labels: Tensor, trace_weight: float, row_weight: Tensor
) -> tuple[Tensor, Tensor]:
    """Mean of ``trace_weight`` · trace − log-likelihood over the labels given, and of −log-likelihood alone.

    The same as the means of what :func:`~annotruth.nn.observed_log_likelihood` gives, where the parameters are
    explained. Gradients reach ``log_truth`` and ``scores``, from the first result only. They are computed together with
    the loss, so ``backward`` can be called once.

    Examples
    --------
    >>> log_truth = torch.tensor([[0.9, 0.1]]).log()
    >>> always_right = torch.tensor([[[[30.0, -30.0], [-30.0, 30.0]]]])
    >>> loss, _ = pixel_loss(log_truth, always_right, torch.tensor([[0]]), 0.0, log_truth.exp())
    >>> round(loss.neg().exp().item(), 4)
    0.9
    """
    single = torch.promote_types(log_truth.dtype, torch.float32)  # networks may run in half precision
    return _PixelLoss.apply(
        one_pixel_axis(log_truth, 2).to(single),
        one_pixel_axis(scores, 4).to(single),
        one_pixel_axis(labels, 2),
        trace_weight,
        one_pixel_axis(row_weight, 2),
    )


class _PixelLoss(torch.autograd.Function):
    """Block by block, so that what is computed in between stays in the processor's cache and takes no memory.

    All tensors have one axis of pixels, the last.
    """

    @staticmethod
    def forward(
        ctx: Any, log_truth: Tensor, scores: Tensor, labels: Tensor, trace_weight: float, row_weight: Tensor
    ) -> tuple[Tensor, Tensor]:
        given = is_labelled(labels, scores.shape[2])
        count = given.sum().clamp_min(1)
        negative, trace = log_truth.new_zeros(()), log_truth.new_zeros(())
        learning = any(ctx.needs_input_grad)
        if learning:
            grad_truth, grad_scores = log_truth.new_empty(log_truth.shape), scores.new_empty(scores.shape)
            ctx.gradients = grad_truth, grad_scores
        ordinary = is_ordinary(scores)
        for items, pixels in blocks(scores):
            rows, below = scores[items, ..., pixels], None
            if not ordinary:
                rows, below = in_range(rows, dim=3)
            weights = F.softplus(rows)
            row_sum = weights.sum(dim=3)
            index = column_index(labels[items, :, pixels], scores.shape[2])
            column = weights.gather(3, index).squeeze(3)
            joint, scale = _joint(log_truth[items, None, :, pixels], column / row_sum, below, index)
            explained = joint.sum(dim=2)
            counted = given[items, :, pixels] / count
            negative -= explained.log().add_(scale).mul_(counted).sum()
            # What the trace gains with each diagonal weight, as long as the row sums stay.
            of_diagonal = (counted.unsqueeze(2) * row_weight[items, None, :, pixels]).div_(row_sum)
            right = of_diagonal * diagonal_of(weights)
            trace += right.sum()
            if learning:
                # How far each true class is responsible for the observed label: p(y = i | label).
                share = joint.mul_(counted.div_(explained).unsqueeze(2))
                torch.sum(share, dim=1, out=grad_truth[items, :, pixels]).neg_()
                # All entries of a row share the gradient of its sum; column and diagonal have one of their own. Each is
                # multiplied with the slope of softplus, the sigmoid, which is 1 - exp(-softplus).
                on_column = column.neg().expm1_().div_(column).mul_(share)
                of_sum = share.sub_(right, alpha=trace_weight).div_(row_sum)
                gradient = torch.sigmoid(rows, out=grad_scores[items, ..., pixels])
                on_diagonal = of_diagonal.mul_(diagonal_of(gradient))
                gradient.mul_(of_sum.unsqueeze(3)).scatter_add_(3, index, on_column.unsqueeze(3))
                diagonal_of(gradient).add_(on_diagonal, alpha=trace_weight)
        ctx.mark_non_differentiable(negative)
        return negative + trace_weight * trace, negative

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        gradients, ctx.gradients = ctx.gradients, None
        if gradients is None:
            raise RuntimeError("The gradients of this loss were handed out already; compute the loss once more.")
        if of_loss != 1:
            for gradient in gradients:
                gradient.mul_(of_loss)
        return *gradients, None, None, None


def _joint(log_truth: Tensor, probability: Tensor, below: Tensor | None, index: Tensor) -> tuple[Tensor, Tensor]:
    """p_i · A[i, observed] for every true class i, divided by exp(scale) so that their sum does not underflow.

    ``probability`` is A[i, observed] as far as it is in range, and overwritten.
    """
    if below is None:
        # Some p_i is at least 1 / classes, and A[i, observed] is not tiny: the sum needs no help.
        return probability.mul_(log_truth.exp()), log_truth.new_zeros(())
    exponent = below.gather(3, index).squeeze(3) + log_truth
    scale = exponent.amax(dim=2)
    return probability.mul_(exponent.sub_(scale.unsqueeze(2)).exp_()), scale
