"""How likely is what an annotator said, where every pixel has a confusion matrix of its own?"""

from __future__ import annotations

import torch
from torch import Tensor

from annotruth.nn.blocks import in_blocks, one_pixel_axis
from annotruth.nn.confusion.rows import log_row_probabilities
from annotruth.nn.labels import class_index, is_labelled


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


def full_weight(log_truth: Tensor) -> Tensor:
    """Row weights that count the whole diagonal: ones, which take no memory."""
    return log_truth.new_ones(()).expand(log_truth.shape)


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
