"""What MrPrism learns from: structural similarity of masks, and fusions that must agree under any confidences."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from annotruth.nn.losses.dice import soft_dice_loss
from annotruth.nn.prism.fusion import MIN_PROBABILITY, SLIPS, Rule, fuse, opinions

WINDOW_SIDE, WINDOW_DEVIATION = 7, 1.5
"""Of the Gaussian window in which masks are compared."""
SSIM_CONSTANT = 0.1
"""What keeps SSIM's quotients steady where means, or variances, are near 0. For pictures, Wang et al. (2004) have far
less: everything that is not near 0 is then about equally unlike 0, which draws the mask of a rare class to 0."""
MIN_LABEL_PROBABILITY = 1e-9
"""Labels that are less probable than this are taken for this probable."""


def mask_loss(log_mask: Tensor, target: Tensor, counted: Tensor) -> Tensor:
    """How unlike a mask is to its target: 1 − SSIM and 1 − soft Dice of the foreground classes, and cross-entropy.

    The paper has the first alone. Without the second, a class of which pictures hold little is lost.

    Parameters
    ----------
    log_mask : (batch, classes, *spatial) log-probabilities
    target : (batch, classes, *spatial) probabilities, a constant
    counted : (batch, *spatial) where to compare

    Examples
    --------
    >>> target, everywhere = torch.rand(1, 2, 16, 16).softmax(dim=1), torch.ones(1, 16, 16, dtype=torch.bool)
    >>> mask_loss(target.log(), target, everywhere) < mask_loss(target.flip(1).log(), target, everywhere)
    tensor(True)
    """
    target, mask = target.detach(), log_mask.exp()
    entropy = -((target * log_mask).sum(dim=1) * counted).sum() / counted.sum().clamp_min(1)
    overlap = soft_dice_loss(mask * counted.unsqueeze(1), target * counted.unsqueeze(1))
    return ssim_loss(mask[:, 1:], target[:, 1:], counted) + overlap + entropy


def ssim_loss(mask: Tensor, target: Tensor, counted: Tensor) -> Tensor:
    """1 − SSIM of two masks (batch, classes, *spatial) of probabilities, averaged where ``counted`` (batch, *spatial).

    A Gaussian window lies around every pixel, the border repeated outwards. The target is a constant; where it does not
    count, it is taken to be the mask itself. 0 where nothing counts.

    SSIM is the mean of a class's and of the rest's, so that it does not matter which of two is called the foreground.

    Examples
    --------
    >>> mask = torch.rand(1, 2, 16, 16)
    >>> everywhere = torch.ones(1, 16, 16, dtype=torch.bool)
    >>> ssim_loss(mask, mask, everywhere).item() < 1e-6, ssim_loss(mask, 1 - mask, everywhere).item() > 1
    (True, True)
    """
    target = torch.where(counted[:, None], target, mask).detach()
    off = mask - target
    off, other, squares, squares_off = blurred(torch.stack([off, target, mask**2 + target**2, off**2]))
    # One minus each of SSIM's quotients: (one − other)² and the variance of the difference come over the same sums.
    one, apart = other + off, off**2
    both = one**2 + other**2
    steady = both + SSIM_CONSTANT
    # The second is of 1 − mask and 1 − target, whose deviations are those of mask and target.
    unlike = apart / steady + apart / (steady + 2 * (1 - one - other))
    vary_unlike = (squares_off - apart) / (squares - both + SSIM_CONSTANT)
    similar = (1 - unlike / 2) * (1 - vary_unlike)
    return ((1 - similar.mean(dim=1)) * counted).sum() / counted.sum().clamp_min(1)


def blurred(maps: Tensor) -> Tensor:
    """Means of maps (kinds, batch, classes, *spatial) in the Gaussian window around every pixel.

    Each axis is multiplied by a matrix that is 0 but for a band: at these sizes far quicker, backward above all, than
    convolutions of one channel.
    """
    for axis in range(3, maps.ndim):
        maps = (maps.transpose(axis, -1) @ _window_means(maps.shape[axis]).to(maps)).transpose(axis, -1)
    return maps


@cache
def _window_means(length: int) -> Tensor:
    """The matrix (length, length) whose columns weigh the places of an axis; beyond its ends, the last is repeated."""
    offsets = torch.arange(WINDOW_SIDE) - WINDOW_SIDE // 2
    weights = (-(offsets**2) / (2 * WINDOW_DEVIATION**2)).softmax(dim=0)
    places = torch.arange(length)
    seen = (places[:, None] + offsets).clamp(0, length - 1)
    return torch.zeros(length, length).index_put_(
        (seen, places[:, None].expand_as(seen)), weights.expand(length, -1), accumulate=True
    )


def shuffle_loss(
    rule: Rule, given: Tensor, matrices: Tensor, truth: Tensor, shuffles: int = 3, slips: float = SLIPS
) -> Tensor:
    """How far DivP's raters are from the real ones under confidences that belong to others (eqs. 10 to 12).

    Confidences are dealt out anew among the raters, ``shuffles`` times. Whatever they are, what raters are thought to
    say must fuse to the same as what they said: so heads learn their rater's labels, while their confidences cannot
    learn to make up for wrong ones. The loss is the cross-entropy of the two fusions, averaged over the pixels
    labelled; gradients flow through what raters are thought to say alone.

    Parameters are as in :func:`~annotruth.nn.prism.fusion.fuse`.

    Examples
    --------
    >>> from annotruth.nn.prism.fusion import said
    >>> matrices = torch.tensor([[[[0.9, 0.1], [0.1, 0.9]]] * 2])
    >>> truth = torch.tensor([[[1.0], [0.0]]])
    >>> right, wrong = (said(torch.tensor([[[k], [k]]]), classes=2) for k in (0, 1))
    >>> shuffle_loss("bayes", right, matrices, truth) < shuffle_loss("bayes", wrong, matrices, truth)
    tensor(True)
    """
    labelled = given.sum(dim=2, keepdim=True)
    counted = labelled.any(dim=1)[:, 0]
    thought = opinions(truth, matrices) * labelled
    total = thought.new_zeros(())
    for _ in range(shuffles):
        dealt = matrices.detach()[:, torch.randperm(given.shape[1], device=given.device)]
        of_labels, of_heads = (fuse(rule, z, dealt, truth, prior=False, slips=slips) for z in (given, thought))
        total = total - ((of_labels * of_heads.clamp_min(MIN_PROBABILITY).log()).sum(dim=1) * counted).sum()
    return total / (shuffles * counted.sum().clamp_min(1))


def multi_head_loss(given: Tensor, matrices: Tensor, truth: Tensor) -> Tensor:
    """Negative log-likelihood of the labels under what each rater is thought to say, per label given (eq. 9).

    Parameters are as in :func:`~annotruth.nn.prism.fusion.fuse`. The paper sums over raters; a mean does not depend on
    how many of them labelled. Gradients flow into the matrices alone.

    Examples
    --------
    >>> from annotruth.nn.prism.fusion import said
    >>> matrices, truth = torch.tensor([[[[0.9, 0.1], [0.2, 0.8]]]]), torch.tensor([[[0.5], [0.5]]])
    >>> multi_head_loss(said(torch.tensor([[[0]]]), classes=2), matrices, truth).exp()  # 1 / (0.45 + 0.1)
    tensor(1.8182)
    """
    with torch.no_grad():
        probability = (opinions(truth, matrices).clamp_min_(MIN_LABEL_PROBABILITY) * given).sum(dim=2)
        labelled = probability > 0
        probability = torch.where(labelled, probability, 1)
        slope = (given / probability.unsqueeze(2)).flatten(1, 2) @ truth.transpose(1, 2)
    # Its gradient in the matrices is that of the loss, without a graph of every label's probability.
    explained = (slope.unflatten(1, given.shape[1:3]).transpose(2, 3) * matrices).sum()
    return (explained.detach() - explained - probability.log().sum()) / labelled.sum().clamp_min(1)
