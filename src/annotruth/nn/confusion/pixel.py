"""One confusion matrix per rater and pixel, and the loss they are learnt by.

The matrices are made from scores: softplus, row-normalised, exact however large or small the scores are. For truth
probabilities p, weights W = softplus(scores) and matrices A[i, j] = W[i, j] / Σ_k W[i, k], a rater who said j is
explained with probability Σ_i p_i · A[i, j]. That needs only the observed column of W and its row sums, so A is never
formed: time and memory stay far below one matrix product per pixel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from annotruth.nn.confusion.base import Confusion, blocks, full_weight, in_blocks, one_pixel_axis, pixel_blocks
from annotruth.nn.labels import class_index, is_labelled

MIN_SCORE = -60.0
"""Below this, softplus(x) is exp(x) to the last digit, and its logarithm is x itself."""


@dataclass
class PixelConfusion(Confusion):
    """One matrix per pixel: the row-normalised softplus of scores (batch, raters, classes, classes, *spatial).

    Examples
    --------
    >>> PixelConfusion(torch.zeros(1, 1, 2, 2, 3)).dense()[0, 0, :, :, 0]
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """

    scores: Tensor

    def dense(self) -> Tensor:
        return row_probabilities(self.scores, dim=3)

    def _explain(self, log_truth: Tensor, labels: Tensor, row_weight: Tensor) -> tuple[Tensor, Tensor]:
        return observed_log_likelihood(log_truth, one_pixel_axis(self.scores, 4), labels, row_weight)

    def loss(
        self, log_truth: Tensor, labels: Tensor, trace_weight: float = 0.0, row_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """As of any confusion, in less time and memory.

        Gradients are computed together with the loss, so ``backward`` can be called once.
        """
        row_weight = full_weight(log_truth) if row_weight is None else row_weight.detach()
        single = torch.promote_types(log_truth.dtype, torch.float32)  # networks may run in half precision
        return _PixelLoss.apply(
            one_pixel_axis(log_truth, 2).to(single),
            one_pixel_axis(self.scores, 4).to(single),
            one_pixel_axis(labels, 2),
            trace_weight,
            one_pixel_axis(row_weight, 2),
        )

    def _summed_rows(self, truth: Tensor) -> Tensor:
        rows = truth.new_zeros(self.scores.shape[:4])
        for weight, scores in pixel_blocks(truth, one_pixel_axis(self.scores, 4), per_pixel=rows.numel()):
            rows = rows + torch.einsum("bis,brijs->brij", weight, row_probabilities(scores, dim=3))
        return rows


def observed_log_likelihood(
    log_truth: Tensor, scores: Tensor, labels: Tensor, row_weight: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Log-probability of every annotator's labels, and the traces of their confusion matrices.

    The confusion matrices are ``softplus(scores)``, row-normalised. Works for pixels (any number of spatial axes) and,
    with no spatial axis, for whole images. Where only their mean is wanted, :func:`~annotruth.nn.noisy_label_loss`
    gives it in less time and memory.

    Parameters
    ----------
    log_truth : (batch, classes, *spatial) log-probabilities of the true class
    scores : (batch, raters, classes, classes, *spatial), [true, observed]
    labels : (batch, raters, *spatial) integers, observed classes; 255 or -1 = not labelled
    row_weight : (batch, classes, *spatial), how much each diagonal entry counts in the trace; all of them fully if not
        given

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
    classes = log_truth.shape[1]

    def explain(log_truth: Tensor, scores: Tensor, labels: Tensor, row_weight: Tensor) -> tuple[Tensor, Tensor]:
        log_matrices = log_row_probabilities(scores, dim=3)
        column = log_matrices.gather(3, column_index(labels, classes)).squeeze(3)
        log_likelihood = (log_truth.unsqueeze(1) + column).logsumexp(dim=2)
        trace = (row_weight.unsqueeze(1) * diagonal_of(log_matrices).exp()).sum(dim=2)
        return log_likelihood.masked_fill(~is_labelled(labels, classes), 0), trace

    row_weight = full_weight(log_truth) if row_weight is None else row_weight
    single = torch.promote_types(log_truth.dtype, torch.float32)  # networks may run in half precision
    log_likelihood, trace = in_blocks(
        explain,
        one_pixel_axis(log_truth, 2).to(single),
        one_pixel_axis(scores, 4).to(single),
        one_pixel_axis(labels, 2),
        one_pixel_axis(row_weight, 2),
        per_pixel=scores.shape[:4].numel(),
    )
    return log_likelihood.view(labels.shape), trace.view(labels.shape)


class _PixelLoss(torch.autograd.Function):
    """The mean loss, block by block: what is computed in between stays in the processor's cache and takes no memory.

    The sum over true classes is formed without logarithms where nothing can underflow, and in the log domain where
    scores are extreme. All tensors have one axis of pixels, the last.
    """

    @staticmethod
    def forward(
        ctx: Any, log_truth: Tensor, scores: Tensor, labels: Tensor, trace_weight: float, row_weight: Tensor
    ) -> tuple[Tensor, Tensor]:
        labelled = is_labelled(labels, scores.shape[2])
        count = torch.count_nonzero(labelled).clamp_min(1)
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
            counted = labelled[items, :, pixels] / count
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


def column_index(labels: Tensor, classes: int) -> Tensor:
    """Where the observed column stands, to gather along the fourth axis of matrices; any column where missing.

    Examples
    --------
    >>> labels = torch.tensor([1, 255], dtype=torch.uint8).view(1, 1, 2)  # one item, one rater, two pixels
    >>> column_index(labels, classes=3).shape, column_index(labels, classes=3)[0, 0, 0, 0]
    (torch.Size([1, 1, 3, 1, 2]), tensor([1, 2]))
    """
    return class_index(labels, classes)[:, :, None, None].expand(-1, -1, classes, 1, -1)


def diagonal_of(matrices: Tensor) -> Tensor:
    """The diagonals (batch, raters, classes, pixels) of matrices (batch, raters, classes, classes, pixels), a view."""
    return matrices.diagonal(dim1=2, dim2=3).movedim(-1, 2)


def identity_scores(classes: int) -> Tensor:
    """Scores (classes, classes) whose row-normalised softplus is close to the identity: 6·I − 5.

    Examples
    --------
    >>> identity_scores(2)
    tensor([[ 1., -5.],
            [-5.,  1.]])
    """
    return 6 * torch.eye(classes) - 5


def is_ordinary(scores: Tensor) -> bool:
    """Whether :func:`in_range` can be spared. On a GPU, waiting for the answer would cost more than it spares."""
    return scores.device.type == "cpu" and bool(scores.amin() > MIN_SCORE)


def in_range(scores: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Split scores into a part that softplus cannot underflow on, and how far they lie below it.

    Where all of a row lies far below 0, softplus is the exponential, and adding a constant to the row changes nothing
    once it is normalised: such rows are raised. What still lies below :data:`MIN_SCORE` is too little to show in its
    row's sum, but an observed label may need to know how little.

    Returns
    -------
    rows : scores of at least :data:`MIN_SCORE`, with the same row-normalised softplus
    below : 0 or less; an entry's probability is the one that ``rows`` gives, times exp(below)

    Examples
    --------
    >>> in_range(torch.tensor([[0.0, -100.0], [-200.0, -202.0]]), dim=1)
    (tensor([[  0., -60.],
            [-30., -32.]]), tensor([[  0., -40.],
            [  0.,   0.]]))
    """
    raised = scores - (scores.detach().amax(dim, keepdim=True) - MIN_SCORE / 2).clamp_max_(0)
    rows = raised.clamp_min(MIN_SCORE)
    return rows, raised - rows


def row_probabilities(scores: Tensor, dim: int) -> Tensor:
    """Row-normalised softplus: probabilities that sum to 1 along ``dim``.

    Examples
    --------
    >>> row_probabilities(torch.tensor([[0.0, 0.0], [-200.0, -200.0]]), dim=1)
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    return log_row_probabilities(scores, dim).exp()


def log_row_probabilities(scores: Tensor, dim: int) -> Tensor:
    """The logarithm of :func:`row_probabilities`, exact where that underflows.

    Examples
    --------
    >>> log_row_probabilities(torch.tensor([[20.0, -200.0]]), dim=1)
    tensor([[   0.0000, -202.9957]])
    """
    rows, below = in_range(scores, dim)
    weights = F.softplus(rows)
    return weights.log() - weights.sum(dim, keepdim=True).log() + below
