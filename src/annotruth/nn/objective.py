"""The objective that gradient methods share: explain every rater's labels, with a trace term on their matrices."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from annotruth.nn.confusion import Confusion
from annotruth.validation import MISSING_PIXEL, one_of


def noisy_label_loss(
    log_truth: Tensor,
    confusion: Confusion,
    labels: Tensor,
    trace_weight: float = 0.0,
    trace: Literal["posterior", "plain"] = "posterior",
) -> tuple[Tensor, Tensor]:
    """Negative log-likelihood of the raters' labels, plus ``trace_weight`` times the trace of their matrices.

    Parameters
    ----------
    log_truth : (batch, classes, *spatial) log-probabilities of the true class
    labels : (batch, raters, *spatial) uint8, 255 = not labelled
    trace_weight : positive makes raters as unreliable as the labels allow, negative as reliable
    trace : "posterior" counts a row only as far as the pixel belongs to its class, so that rows about which the labels
        say nothing stay where they are; "plain" sums the whole diagonal, as Zhang et al. 2020 do

    Returns
    -------
    loss : scalar to minimise
    likelihood : scalar, its likelihood part: the negative log-likelihood per label given

    Both are averages over the labels given (over raters, items and pixels).
    """
    one_of(trace, ("posterior", "plain"), "trace")
    given = labels != MISSING_PIXEL
    count = given.sum().clamp_min(1)
    log_likelihood, diagonal = confusion.likelihood(log_truth, labels)
    negative = -log_likelihood.sum() / count
    if trace_weight == 0:
        return negative, negative
    weight = log_truth.detach().exp()[:, None] if trace == "posterior" else 1.0
    reliability = ((weight * diagonal).sum(dim=2) * given).sum() / count
    return negative + trace_weight * reliability, negative
