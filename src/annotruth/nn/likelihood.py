"""How likely is what an annotator said? Gather-based, with hand-written gradients.

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
from annotruth.nn.rows import in_range, is_ordinary
from annotruth.validation import MISSING_PIXEL


def observed_log_likelihood(
    log_truth: Tensor, scores: Tensor, labels: Tensor, row_weight: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Log-probability of every annotator's labels, and the traces of their confusion matrices.

    The confusion matrices are ``softplus(scores)``, row-normalised. Works for pixels (any number of spatial axes) and,
    with no spatial axis, for whole images.

    Parameters
    ----------
    log_truth : (batch, classes, *spatial) log-probabilities of the true class
    scores : (batch, raters, classes, classes, *spatial), [true, observed]
    labels : (batch, raters, *spatial) integers, observed classes, 255 = not labelled
    row_weight : (batch, classes, *spatial), how much each diagonal entry counts in the trace; all of them fully if not
        given. Taken as a constant: no gradient flows into it

    Returns
    -------
    log_likelihood : (batch, raters, *spatial), 0 where not labelled
    trace : (batch, raters, *spatial), Σ_i row_weight_i · A[i, i]

    Examples
    --------
    >>> log_truth = torch.tensor([[0.9, 0.1]]).log()
    >>> always_right = torch.tensor([[[[30.0, -30.0], [-30.0, 30.0]]]])
    >>> log_likelihood, trace = observed_log_likelihood(log_truth, always_right, torch.tensor([[0]]))
    >>> round(log_likelihood.exp().item(), 4), round(trace.item(), 4)
    (0.9, 2.0)
    """
    if row_weight is None:
        row_weight = log_truth.new_ones(()).expand(log_truth.shape)
    at_least_single = torch.promote_types(log_truth.dtype, torch.float32)  # networks may run in half precision
    log_likelihood, trace = _ObservedLogLikelihood.apply(
        one_pixel_axis(log_truth, 2).to(at_least_single),
        one_pixel_axis(scores, 4).to(at_least_single),
        one_pixel_axis(labels, 2),
        one_pixel_axis(row_weight, 2),
    )
    return log_likelihood.view(labels.shape), trace.view(labels.shape)


class _ObservedLogLikelihood(torch.autograd.Function):
    """Block by block, so that what is computed in between stays in the processor's cache and takes no memory.

    All tensors have one axis of pixels, the last. Kept for the backward pass are the inputs and the row sums.
    """

    @staticmethod
    def forward(
        ctx: Any, log_truth: Tensor, scores: Tensor, labels: Tensor, row_weight: Tensor
    ) -> tuple[Tensor, Tensor]:
        log_likelihood, trace = log_truth.new_empty(labels.shape), log_truth.new_empty(labels.shape)
        row_sum = scores.new_empty(scores[:, :, :, 0].shape)
        ctx.ordinary = is_ordinary(scores)
        for items, pixels in blocks(scores):
            rows, below = _rows(scores[items, ..., pixels], ctx.ordinary)
            weights = F.softplus(rows)
            sums = torch.sum(weights, dim=3, out=row_sum[items, ..., pixels])
            diagonal = _diagonal(weights).div(sums).mul_(row_weight[items, None, :, pixels])
            trace[items, :, pixels] = diagonal.sum(dim=2)
            index = _column_index(labels[items, :, pixels], scores.shape[2])
            probability = weights.gather(3, index).squeeze(3).div_(sums)
            joint, scale = _joint(log_truth[items, None, :, pixels], probability, below, index)
            log_likelihood[items, :, pixels] = joint.sum(dim=2).log_().add_(scale)
        log_likelihood.masked_fill_(labels == MISSING_PIXEL, 0)
        ctx.save_for_backward(log_truth, scores, labels, row_weight, log_likelihood, row_sum)
        return log_likelihood, trace

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_likelihood: Tensor, of_trace: Tensor) -> tuple[Tensor, Tensor, None, None]:
        log_truth, scores, labels, row_weight, log_likelihood, row_sum = ctx.saved_tensors
        of_likelihood = of_likelihood.masked_fill(labels == MISSING_PIXEL, 0)
        grad_truth, grad_scores = log_truth.new_empty(log_truth.shape), scores.new_empty(scores.shape)
        for items, pixels in blocks(scores):
            rows, below = _rows(scores[items, ..., pixels], ctx.ordinary)
            sums = row_sum[items, ..., pixels]
            index = _column_index(labels[items, :, pixels], scores.shape[2])
            column = rows.gather(3, index).squeeze(3)
            weight = F.softplus(column)
            joint, scale = _joint(log_truth[items, None, :, pixels], weight / sums, below, index)
            # How far each true class is responsible for the observed label, p(y = i | label), times its gradient.
            per_label = of_likelihood[items, :, pixels] * (scale - log_likelihood[items, :, pixels]).exp_()
            share = joint.mul_(per_label.unsqueeze(2))
            torch.sum(share, dim=1, out=grad_truth[items, :, pixels])
            # The slope of softplus is the sigmoid. All entries of a row share the gradient of the row's sum; the
            # observed column and the diagonal have one of their own.
            gradient = torch.sigmoid(rows, out=grad_scores[items, ..., pixels])
            on_column = column.sigmoid_().div_(weight).mul_(share)
            of_diagonal = (of_trace[items, :, None, pixels] * row_weight[items, None, :, pixels]).div_(sums)
            of_sum = share.addcmul_(of_diagonal, F.softplus(_diagonal(rows))).div_(sums).neg_()
            on_diagonal = of_diagonal.mul_(_diagonal(gradient))
            gradient.mul_(of_sum.unsqueeze(3))
            _diagonal(gradient).add_(on_diagonal)
            gradient.scatter_add_(3, index, on_column.unsqueeze(3))
        return grad_truth, grad_scores, None, None


def _rows(scores: Tensor, ordinary: bool) -> tuple[Tensor, Tensor | None]:
    """Scores in the range of softplus, and how far they lie below it, if anywhere."""
    return (scores, None) if ordinary else in_range(scores, dim=3)


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


def _column_index(labels: Tensor, classes: int) -> Tensor:
    """Where the observed column stands, to gather along the fourth axis of the scores; any column where missing."""
    observed = labels.clamp(max=classes - 1).long()
    return observed[:, :, None, None].expand(-1, -1, classes, 1, -1)


def _diagonal(matrices: Tensor) -> Tensor:
    """The diagonals (batch, raters, classes, pixels) of matrices (batch, raters, classes, classes, pixels), a view."""
    return matrices.diagonal(dim1=2, dim2=3).movedim(-1, 2)
