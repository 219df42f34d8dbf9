"""Labels fused by how each rater errs.

The pixels of a patch share one matrix per rater, and all patches may. What raters said (0 or 1 for each class, or what
they are thought to say) and these matrices give probabilities of the truth, by one of three rules. ``bayes`` and
``weights`` are sound; ``literal`` is kept for the record.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from annotruth.nn.labels import one_hot
from annotruth.validation import one_of

Rule = Literal["bayes", "weights", "literal"]
RULES = ("bayes", "weights", "literal")
SLIPS = 0.1
"""Share of the labels that "bayes" takes for slips, which may be any class, unless told otherwise. It bounds what one
label can say, so that raters who err alike do not talk each other into being always right."""
MASK_SLIPS = 0.2
"""The same for the mask: it does not outvote everybody where it is sure of itself, nor confirm itself when it is
trained on what is fused; where it has missed something, a few labels are enough."""
MIN_PROBABILITY = 1e-6
"""Probabilities below this are taken for this, so that logarithms stay finite."""


def said(labels: Tensor, classes: int) -> Tensor:
    """Labels (batch, raters, *spatial) as 0 and 1: (batch, raters, classes, *spatial), all 0 where not labelled.

    Examples
    --------
    >>> said(torch.tensor([[1, 255]], dtype=torch.uint8), classes=2)
    tensor([[[0., 1.],
             [0., 0.]]])
    """
    return one_hot(labels, classes, dim=2)


def opinions(truth: Tensor, matrices: Tensor) -> Tensor:
    """What each rater is thought to say, z̃ = ỹ·A: (patches, raters, classes, pixels).

    ``truth`` is (patches, classes, pixels), ``matrices`` (patches, raters, true, observed).
    """
    together = matrices.transpose(2, 3).flatten(1, 2)
    return (together @ truth).unflatten(1, matrices.shape[1:3])


def confidences(truth: Tensor, matrices: Tensor) -> Tensor:
    """How probable it is that a rater is right, Σ_k ỹ_k·A[k, k]: (patches, raters, pixels)."""
    return matrices.diagonal(dim1=2, dim2=3) @ truth


def fuse(
    rule: Rule,
    given: Tensor,
    matrices: Tensor,
    truth: Tensor,
    trust: Tensor | None = None,
    prior: bool = True,
    slips: float = SLIPS,
) -> Tensor:
    """The truth that labels speak for: probabilities (patches, classes, pixels).

    Parameters
    ----------
    rule : one of

        - "bayes": y_k ∝ ỹ_k · Π_m A_m[k, z_m], every class a hypothesis under which labels are more or less likely,
          where labels, and the mask as one of them (:data:`MASK_SLIPS`), may be slips
        - "weights": y = Σ_m w_m·z_m / Σ_m w_m, where w_m is the probability z̃_m of what the rater did say
        - "literal": y = softmax(Σ_m log z̃_m · z_m), equation 4 of Wu et al. as it stands. A class that nobody chose
          scores 0, the most there is: it prefers what raters did not say
    given : (patches, raters, classes, pixels) what raters said, from :func:`said`
    matrices : (patches, raters, true, observed)
    truth : (patches, classes, pixels) the mask ỹ that DivP saw
    trust : (patches, raters) how much each rater counts besides, 1 = as the others; an exponent in "bayes"
    prior : whether ỹ is the prior of "bayes", or all classes are alike
    slips : share of the labels that "bayes" takes for slips

    Examples
    --------
    Two raters of whom the first is nearly always right, and a pixel on which they differ:

    >>> matrices = torch.tensor([[[[0.95, 0.05], [0.05, 0.95]], [[0.6, 0.4], [0.4, 0.6]]]])
    >>> given = said(torch.tensor([[[0], [1]]]), classes=2)
    >>> even = torch.full((1, 2, 1), 0.5)
    >>> fuse("bayes", given, matrices, even)[0, :, 0]
    tensor([0.8688, 0.1312])
    >>> fuse("weights", given, matrices, torch.tensor([[[0.9], [0.1]]]))[0, :, 0]
    tensor([0.6719, 0.3281])
    """
    one_of(rule, RULES, "fusion")
    count = given if trust is None else given * trust[:, :, None, None]
    if rule == "bayes":
        logs = _with_slips(matrices, slips, dim=3).log()
        logits = logs.transpose(1, 2).flatten(2) @ count.flatten(1, 2)
        return (logits + _with_slips(truth, MASK_SLIPS, dim=1).log() if prior else logits).softmax(dim=1)
    thought = opinions(truth, matrices)
    if rule == "weights":
        return shares(count, (thought * given).sum(dim=2))
    return (count * thought.clamp_min(MIN_PROBABILITY).log()).sum(dim=1).softmax(dim=1)


def _with_slips(probabilities: Tensor, share: float, dim: int) -> Tensor:
    return (1 - share) * probabilities + share / probabilities.shape[dim]


def shares(given: Tensor, weights: Tensor) -> Tensor:
    """Each class's share of the labels (batch, raters, classes, *spatial), weighted (batch, raters, *spatial).

    Even where nobody labelled.

    Examples
    --------
    >>> shares(said(torch.tensor([[[0], [1]]]), classes=2), torch.tensor([[[3.0], [1.0]]]))[0, :, 0]
    tensor([0.7500, 0.2500])
    """
    votes = (given * weights.unsqueeze(2)).sum(dim=1)
    total = votes.sum(dim=1, keepdim=True)
    return torch.where(total > 0, votes / total.clamp_min(1e-9), 1 / given.shape[2])


def decided(fused: Tensor) -> Tensor:
    """1 for the likeliest class of what is fused (batch, classes, *spatial), 0 for the others; ties are shared.

    A mask that learns how likely a class is, and not which one is likeliest, adds its own doubt to the raters', and
    with every recurrence again: borders blur, those who draw too much seem right, and the mask grows.

    Examples
    --------
    >>> decided(torch.tensor([[[0.9, 0.4, 0.5], [0.1, 0.6, 0.5]]]))
    tensor([[[1.0000, 0.0000, 0.5000],
             [0.0000, 1.0000, 0.5000]]])
    """
    likeliest = (fused == fused.amax(dim=1, keepdim=True)).float()
    return likeliest / likeliest.sum(dim=1, keepdim=True)
