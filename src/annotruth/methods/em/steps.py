"""The steps of ``annotruth.fusion.em`` for a batch of tensors, of masks or of answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from annotruth.data.answers import Answers
from annotruth.fusion.em import expected_counts, log_of, truth_posterior
from annotruth.methods.base import Batch
from annotruth.nn import class_index, is_labelled, one_pixel_axis


def label_posterior(log_prior: Tensor, labels: Tensor, matrices: Tensor) -> tuple[Tensor, Tensor]:
    """E-step: how probable each class is, given a prior, the labels, and how each rater errs.

    Parameters
    ----------
    log_prior : (batch, classes, *spatial)
    labels : (batch, raters, *spatial)
    matrices : (raters, classes, classes) of the same raters

    Returns
    -------
    posterior : (batch, classes, *spatial)
    log_evidence : (batch, *spatial) log-probability of the labels; the posterior is its gradient by ``log_prior``

    Examples
    --------
    >>> prior = torch.tensor([[0.5, 0.5]]).log()
    >>> matrices = torch.tensor([[[0.9, 0.1], [0.2, 0.8]]]).repeat(2, 1, 1)
    >>> posterior, _ = label_posterior(prior, torch.tensor([[1, 1]]), matrices)
    >>> posterior
    tensor([[0.0154, 0.9846]])
    """
    rows = one_pixel_axis(log_prior.detach(), 2).movedim(1, 2).flatten(0, 1)
    confusion = log_of(matrices.double().cpu().numpy())
    posterior, evidence = truth_posterior(_answers(labels, rows.shape[1]), rows.double().cpu().numpy(), confusion)
    pixels = torch.from_numpy(posterior).to(log_prior).unflatten(0, (len(log_prior), -1)).movedim(2, 1)
    log_evidence = torch.from_numpy(evidence).to(log_prior).view(len(log_prior), *log_prior.shape[2:])
    return pixels.reshape(log_prior.shape), log_evidence


def add_counts(counts: np.ndarray, batch: Batch, truth: Tensor) -> None:
    """First half of the M-step: count a batch's labels against the truth (batch, classes, *spatial).

    ``counts`` (all raters, classes, classes), [true, observed], is added to.
    """
    rows = one_pixel_axis(truth, 2).movedim(1, 2).flatten(0, 1).double().cpu().numpy()
    raters = slice(None) if batch.raters is None else batch.raters.cpu().numpy()
    counts[raters] += expected_counts(_answers(batch.labels, rows.shape[1]), rows, batch.labels.shape[1])


def label_shares(labels: Tensor, classes: int) -> Tensor:
    """The share of each class among the labels: (batch, classes, *spatial); even where there is none.

    Examples
    --------
    >>> label_shares(torch.tensor([[0, 1, 1], [-1, -1, -1]]), classes=2)
    tensor([[0.3333, 0.6667],
            [0.5000, 0.5000]])
    """
    given = is_labelled(labels, classes).float()
    shares = torch.zeros(len(labels), classes, *labels.shape[2:], device=labels.device)
    shares.scatter_add_(1, class_index(labels, classes), given)
    total = given.sum(dim=1, keepdim=True)
    return torch.where(total > 0, shares / total.clamp_min(1), 1 / classes)


def cross_entropy(log_truth: Tensor, target: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of a soft target (batch, classes, *spatial), averaged where anybody labelled anything."""
    anybody = is_labelled(labels, log_truth.shape[1]).any(dim=1)
    return -((target * log_truth).sum(dim=1) * anybody).sum() / anybody.sum().clamp_min(1)


def _answers(labels: Tensor, classes: int) -> Answers:
    """Labels (batch, raters, *spatial) as answers, each pixel an item, raters numbered as they stand."""
    flat = one_pixel_axis(labels, 2).movedim(1, 2).flatten(0, 1)
    item, rater = is_labelled(flat, classes).nonzero(as_tuple=True)
    return Answers(
        item.cpu().numpy().astype(np.int32), rater.cpu().numpy().astype(np.int32),
        flat[item, rater].cpu().numpy().astype(np.int16),
    )  # fmt: skip
