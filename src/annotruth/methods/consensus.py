"""The second part of the warm-up: raters weighed by how well they agree with what the network takes for true."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from annotruth.nn import is_labelled, sum_over_processes

MEMORY = 0.95
"""How much of what was counted remains when another batch is counted."""
VOICES = 5
"""Where few of many raters label an item, their labels weigh as much as those of this many raters at most."""
DOUBT = 0.02
"""Chance of any label of any rater besides what was counted, so that nobody's word is taken as certain."""
ENOUGH = 3
"""Where so many people labelled a pixel, their labels say what is taken for true there; elsewhere the network does."""
MOSTLY = 0.8
"""Share of the labelled pixels where so many people labelled them, for the network to have little part in it."""
STEP = 0.5
"""How far one batch moves what is taken for true towards the expected size of each class."""


class Consensus(nn.Module):
    """Dawid and Skene's model with the network in place of a table of posteriors.

    Each rater has one matrix. The network, with output q, learns the truth that explains all labels of a pixel
    *together*. Where at least three people labelled a pixel, the loss is their negative log-likelihood

        −log Σ_k q_k · Π_r A_r[k, label_r],

    whose gradient draws q to its posterior. Elsewhere it is the negative evidence lower bound

        Σ_k q_k · (log q_k − log prior_k − Σ_r log A_r[k, label_r]),

    which is linear in the labels, so that raters who never label the same item are weighed against each other too; but
    it seeks the likeliest class, and a rare one that the network is not yet sure of could vanish, so it is used only
    where there is no choice. Somebody who says the same everywhere has no say; somebody who is nearly always right
    overrules several who often are not.

    The matrices are counted against the vote where at least three people labelled a pixel. Elsewhere a rater would be
    judged by little more than their own labels, and the network decides alone. A young network gives a rare class less
    than one half everywhere; so classes are favoured such that each gets as many pixels as the network expects of it,
    the sum of its probabilities.

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
    expected: Tensor
    favour: Tensor
    agreed: Tensor
    voted: Tensor

    def __init__(self, raters: int, classes: int) -> None:
        super().__init__()
        self.register_buffer("counts", torch.eye(classes).repeat(raters, 1, 1))
        self.register_buffer("expected", torch.ones(classes))
        self.register_buffer("favour", torch.zeros(classes))
        self.register_buffer("agreed", torch.zeros(2, raters, classes))
        self.register_buffer("voted", torch.zeros(2))

    @torch.no_grad()
    def balance(self, log_truth: Tensor) -> None:
        """Look at how large each class is expected to be in a batch, and how large it is taken for."""
        pixels = (0, *range(2, log_truth.ndim))
        taken = _likeliest(self._favoured(log_truth))
        expected, taken = sum_over_processes(torch.stack([log_truth.exp().sum(dim=pixels), taken.sum(dim=pixels)]))
        self.expected.mul_(MEMORY).add_(expected)
        self.favour.add_(STEP * ((expected + 1) / (taken + 1)).log().clamp(-1, 1))
        self.favour.sub_(self.favour.mean())

    @torch.no_grad()
    def taken(self, log_truth: Tensor, labels: Tensor, raters: Tensor | None = None) -> Tensor:
        """1 for the class that is taken for true at every pixel, 0 for the others: (batch, classes, *spatial)."""
        enough = is_labelled(labels, log_truth.shape[1]).sum(dim=1, keepdim=True) >= ENOUGH
        together = log_truth + self._said(labels, raters)
        return _likeliest(torch.where(enough, together, self._favoured(log_truth)))

    def _favoured(self, log_truth: Tensor) -> Tensor:
        return log_truth + self.favour.view(1, -1, *[1] * (log_truth.ndim - 2))

    def _said(self, labels: Tensor, raters: Tensor | None) -> Tensor:
        """How much a pixel's labels speak for each class: (batch, classes, *spatial), a logarithm up to a constant."""
        logs = self.matrices().log()
        logs = logs if raters is None else logs[raters]
        said = [
            torch.einsum("ri,br...->bi...", logs[:, :, j], (labels == j).to(logs.dtype)) for j in range(logs.shape[1])
        ]
        return torch.stack(said).sum(dim=0)

    @torch.no_grad()
    def count(self, log_truth: Tensor, labels: Tensor, raters: Tensor | None = None) -> None:
        """Count labels (batch, raters, *spatial) against the vote, or the network's (batch, classes, *spatial)."""
        classes, who = log_truth.shape[1], slice(None) if raters is None else raters
        expected = log_truth.exp()
        # Against the vote and not against what is taken for true, which follows these very counts: raters who draw too
        # much would lend each other weight until they are right. The network only breaks ties.
        votes = torch.stack([(labels == number).sum(dim=1) for number in range(classes)], dim=1)
        people = votes.sum(dim=1, keepdim=True)
        enough = people >= ENOUGH
        self.voted.mul_(MEMORY).add_(sum_over_processes(torch.stack([enough.sum(), (people > 0).sum()]).float()))
        taken = _likeliest(torch.where(enough, votes + expected, self._favoured(log_truth))).flatten(2)
        expected = expected.flatten(2)
        labels = labels.flatten(2)
        said = [(labels == number).to(taken.dtype) for number in range(classes)]
        met = torch.stack([torch.einsum("bis,brs->ri", taken, each) for each in said], dim=2)
        self.counts[who] = MEMORY * self.counts[who] + sum_over_processes(met)
        right = torch.stack([torch.einsum("bs,brs->r", expected[:, k], said[k]) for k in range(classes)], dim=1)
        given = torch.einsum("bks,brs->rk", expected, is_labelled(labels, classes).to(taken.dtype))
        self.agreed[:, who] = MEMORY * self.agreed[:, who] + sum_over_processes(torch.stack([right, given]))

    def matrices(self) -> Tensor:
        """Each rater's matrix (raters, classes, classes); a class nobody met has a row that tells nothing."""
        counts = self.counts + 1e-6
        share = counts / counts.sum(dim=2, keepdim=True)
        return share * (1 - DOUBT * share.shape[2]) + DOUBT

    def told_apart(self) -> float:
        """How sure one may be of the class the network knows least, by the rater it agrees with best: 0 to 1.

        Of the network its probabilities count, not what is taken for true: it must know, and not only guess.
        """
        right, given = self.agreed
        used = self.counts.sum(dim=(0, 1)) > 0.5  # pixels; nobody can tell a class that nobody ever named
        return float((right / given.clamp_min(1e-6))[:, used].amin(dim=1).max())

    def by_vote(self) -> bool:
        """Whether labels say what is taken for true nearly everywhere, and not the network."""
        return bool(self.voted[0] >= MOSTLY * self.voted[1])

    def evidence(self, labels: Tensor, raters: Tensor | None = None) -> Tensor:
        """How much a pixel's labels and the classes' frequency speak for each class: (batch, classes, *spatial).

        A logarithm, up to a constant.
        """
        given = is_labelled(labels, self.counts.shape[1]).sum(dim=1, keepdim=True).clamp_min(1)
        prior = (self.expected / self.expected.sum()).log().view(1, -1, *[1] * (labels.ndim - 2))
        return self._said(labels, raters) * (min(len(self.counts), VOICES) / given).clamp_min(1) + prior

    def loss(self, log_truth: Tensor, labels: Tensor, raters: Tensor | None = None) -> Tensor:
        """The loss, averaged over the pixels that anybody labelled."""
        people = is_labelled(labels, log_truth.shape[1]).sum(dim=1)
        together = (log_truth + self._said(labels, raters)).logsumexp(dim=1)
        bound = (log_truth.exp() * (self.evidence(labels, raters) - log_truth)).sum(dim=1)
        gain = torch.where(people >= ENOUGH, together, bound)
        return -(gain * (people > 0)).sum() / (people > 0).sum().clamp_min(1)


def _likeliest(scores: Tensor) -> Tensor:
    """1 for the class with the largest score, 0 for the others."""
    return torch.zeros_like(scores).scatter_(1, scores.argmax(dim=1, keepdim=True), 1.0)
