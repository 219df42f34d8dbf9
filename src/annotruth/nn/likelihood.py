"""How likely is what an annotator said? Gather-based, in the log domain, with hand-written gradients.

For truth probabilities p, non-negative weights W and a row-normalised confusion matrix A[i, j] = W[i, j] / Σ_k W[i, k],
an annotator who said j is explained with probability Σ_i p_i · A[i, j]. That needs only the observed column of W and
its row sums, so A is never formed: time and memory stay far below one matrix product per pixel.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from annotruth.validation import MISSING_PIXEL

# Below this, softplus(x) and its slope equal exp(x) to float precision, so that log softplus(x) = x exactly enough.
_EXPONENTIAL_BELOW = -15.0


def observed_log_likelihood(log_truth: Tensor, scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probability of every annotator's labels, and the diagonals of their confusion matrices.

    The confusion matrices are ``softplus(scores)``, row-normalised. Works for pixels (any number of spatial axes) and,
    with no spatial axis, for whole images.

    Parameters
    ----------
    log_truth : (batch, classes, *spatial) log-probabilities of the true class
    scores : (batch, raters, classes, classes, *spatial), [true, observed]
    labels : (batch, raters, *spatial) uint8, observed classes, 255 = not labelled

    Returns
    -------
    log_likelihood : (batch, raters, *spatial), 0 where not labelled
    diagonal : (batch, raters, classes, *spatial), the probability of being right given each true class

    Examples
    --------
    >>> log_truth = torch.tensor([[0.9, 0.1]]).log()
    >>> always_right = torch.tensor([[[[30.0, -30.0], [-30.0, 30.0]]]])
    >>> log_likelihood, _ = observed_log_likelihood(log_truth, always_right, torch.tensor([[0]], dtype=torch.uint8))
    >>> round(log_likelihood.exp().item(), 4)
    0.9
    """
    return _ObservedLogLikelihood.apply(log_truth, scores, labels)


class _ObservedLogLikelihood(torch.autograd.Function):
    """Rater by rater, keeping only the inputs for the backward pass: peak memory is about one copy of the scores."""

    @staticmethod
    def forward(ctx: Any, log_truth: Tensor, scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        log_likelihood = log_truth.new_empty(labels.shape)
        diagonal = torch.empty_like(scores[:, :, :, 0])
        for rater in range(labels.shape[1]):
            weights = F.softplus(scores[:, rater])
            row_sum = weights.sum(dim=2)
            diagonal[:, rater] = weights.diagonal(dim1=1, dim2=2).movedim(-1, 1) / row_sum
            observed, given = _observed(labels[:, rater])
            column = _column(scores[:, rater], observed)
            joint = log_truth + _log_softplus(column) - row_sum.log()
            log_likelihood[:, rater] = joint.logsumexp(dim=1) * given
        ctx.save_for_backward(log_truth, scores, labels, log_likelihood)
        return log_likelihood, diagonal

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        log_truth, scores, labels, log_likelihood = ctx.saved_tensors
        grad_likelihood, grad_diagonal = gradients
        grad_truth = torch.zeros_like(log_truth)
        grad_scores = torch.empty_like(scores)
        for rater in range(labels.shape[1]):
            weights = F.softplus(scores[:, rater])
            row_sum = weights.sum(dim=2)
            diagonal = weights.diagonal(dim1=1, dim2=2).movedim(-1, 1)
            observed, given = _observed(labels[:, rater])
            column = _column(scores[:, rater], observed)
            # How far each true class is responsible for the observed label: p(y = i | label).
            joint = log_truth + _log_softplus(column) - row_sum.log()
            responsibility = (joint - log_likelihood[:, rater].unsqueeze(1)).exp()
            responsibility = responsibility * (grad_likelihood[:, rater] * given).unsqueeze(1)
            grad_truth += responsibility
            # d/dW[i, k] of the row-normalised entries: the same -1/rowsum part for every k of a row …
            of_diagonal = grad_diagonal[:, rater] / row_sum
            common = -responsibility / row_sum - of_diagonal * diagonal / row_sum
            gradient = torch.sigmoid(scores[:, rater]) * common.unsqueeze(2)
            # … plus what only the diagonal and only the observed column receive.
            slope = torch.sigmoid(scores[:, rater].diagonal(dim1=1, dim2=2).movedim(-1, 1))
            gradient.diagonal(dim1=1, dim2=2).add_((of_diagonal * slope).movedim(1, -1))
            index = observed[:, None, None].expand(-1, scores.shape[2], 1, *observed.shape[1:])
            gradient.scatter_add_(2, index, (responsibility * _slope_of_log_softplus(column)).unsqueeze(2))
            grad_scores[:, rater] = gradient
        return grad_truth, grad_scores, None


def _observed(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Labels as indices (0 where missing), and where they were given."""
    given = labels != MISSING_PIXEL
    return labels.long() * given, given


def _column(scores: Tensor, observed: Tensor) -> Tensor:
    """Pick [:, i, observed] for every true class i: (batch, classes, *spatial)."""
    index = observed[:, None, None].expand(-1, scores.shape[1], 1, *observed.shape[1:])
    return scores.gather(2, index).squeeze(2)


def _log_softplus(scores: Tensor) -> Tensor:
    exponential = scores < _EXPONENTIAL_BELOW
    return torch.where(exponential, scores, F.softplus(scores.clamp_min(_EXPONENTIAL_BELOW)).log())


def _slope_of_log_softplus(scores: Tensor) -> Tensor:
    above = scores.clamp_min(_EXPONENTIAL_BELOW)
    return torch.sigmoid(above) / F.softplus(above)
