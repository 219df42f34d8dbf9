"""The second part of the warm-up: raters weighed by how well they agree with what the network takes for true."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from annotruth.nn.labels import is_given

MEMORY = 0.95
"""How much of what was counted remains when another batch is counted."""
VOICES = 5
"""Where few of many raters label an item, their labels weigh as much as those of this many raters at most."""
DOUBT = 0.02
"""Chance of any label of any rater besides what was counted, so that nobody's word is taken as certain."""


class Consensus(nn.Module):
    """Dawid and Skene's model with the network in place of a table of posteriors.

    Each rater has one matrix, counted against what the network takes for true. The network learns the truth that
    explains all labels of a pixel *together*: the loss is the negative evidence lower bound

        Σ_k q_k · (log q_k − log prior_k − Σ_r log A_r[k, label_r])

    of the network's output q. It is linear in the labels, so that raters who never label the same item are weighed
    against each other as well as raters who do. Somebody who says the same everywhere has no say; somebody who is
    nearly always right overrules several who often are not.

    Examples
    --------
    >>> consensus = Consensus(raters=2, classes=2)
    >>> labels = torch.tensor([[[0, 1, 1], [0, 0, 0]]])  # the first is right, the second says 0 to everything
    >>> consensus.count(torch.tensor([[[0.9, 0.1, 0.1], [0.1, 0.9, 0.9]]]).log(), labels)
    >>> consensus.matrices()[0]
    tensor([[0.9800, 0.0200],
            [0.0200, 0.9800]])
    >>> consensus.evidence(labels)[0, 1] > consensus.evidence(labels)[0, 0]  # class 1 rather than 0?
    tensor([False,  True,  True])
    """

    counts: Tensor

    def __init__(self, raters: int, classes: int) -> None:
        super().__init__()
        self.register_buffer("counts", torch.zeros(raters, classes, classes))

    @torch.no_grad()
    def count(self, log_truth: Tensor, labels: Tensor, raters: Tensor | None = None) -> None:
        """Count labels (batch, raters, *spatial) against the likeliest classes of (batch, classes, *spatial)."""
        truth, labels = likeliest(log_truth).flatten(2), labels.flatten(2)
        seen = [torch.einsum("bis,brs->ri", truth, (labels == j).to(truth.dtype)) for j in range(truth.shape[1])]
        who = slice(None) if raters is None else raters
        self.counts[who] = MEMORY * self.counts[who] + torch.stack(seen, dim=2)

    def matrices(self) -> Tensor:
        """Each rater's matrix (raters, classes, classes); a class nobody met has a row that tells nothing."""
        counts = self.counts + 1e-6
        share = counts / counts.sum(dim=2, keepdim=True)
        return share * (1 - DOUBT * share.shape[2]) + DOUBT

    def evidence(self, labels: Tensor, raters: Tensor | None = None) -> Tensor:
        """How much a pixel's labels and the classes' frequency speak for each class: (batch, classes, *spatial).

        A logarithm, up to a constant.
        """
        logs = self.matrices().log()
        logs = logs if raters is None else logs[raters]
        classes = logs.shape[1]
        said = torch.stack(
            [torch.einsum("ri,br...->bi...", logs[:, :, j], (labels == j).to(logs.dtype)) for j in range(classes)]
        ).sum(dim=0)
        given = is_given(labels, classes).sum(dim=1, keepdim=True).clamp_min(1)
        frequency = self.counts.sum(dim=(0, 2)) + 1
        prior = (frequency / frequency.sum()).log().view(1, -1, *[1] * (labels.ndim - 2))
        return said * (min(len(self.counts), VOICES) / given).clamp_min(1) + prior

    def loss(self, log_truth: Tensor, labels: Tensor, raters: Tensor | None = None) -> Tensor:
        """The negative evidence lower bound, averaged over the pixels that anybody labelled."""
        anybody = is_given(labels, log_truth.shape[1]).any(dim=1)
        bound = (log_truth.exp() * (self.evidence(labels, raters) - log_truth)).sum(dim=1)
        return -(bound * anybody).sum() / anybody.sum().clamp_min(1)


def likeliest(log_truth: Tensor) -> Tensor:
    """1 for the likeliest class of every pixel, 0 for the others: (batch, classes, *spatial), without gradient."""
    scores = log_truth.detach()
    return torch.zeros_like(scores).scatter_(1, scores.argmax(dim=1, keepdim=True), 1.0)
