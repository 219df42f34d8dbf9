"""The objective that gradient methods share: explain every rater's labels, with a trace term on their matrices."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from annotruth.nn.confusion import Confusion
from annotruth.validation import one_of


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
    likelihood : scalar, its likelihood part: the negative log-likelihood per label given, without gradient

    Both are averages over the labels given (over raters, items and pixels).

    Examples
    --------
    A plain PyTorch loop: a network for the truth, a model of the raters, and this loss between them.

    >>> import torch
    >>> from annotruth.nn import PixelAnnotators, noisy_label_loss, unet
    >>> images = torch.rand(2, 1, 16, 16)
    >>> labels = (images > torch.tensor([0.4, 0.5, 0.6]).view(3, 1, 1)).to(torch.uint8)  # three raters
    >>> network, raters = unet(1, out_channels=2), PixelAnnotators(1, raters=3, classes=2)
    >>> optimiser = torch.optim.Adam([*network.parameters(), *raters.parameters()], lr=0.01)
    >>> for step in range(3):
    ...     log_truth = network(images).log_softmax(dim=1)
    ...     loss, likelihood = noisy_label_loss(log_truth, raters(images), labels, trace_weight=0.01)
    ...     optimiser.zero_grad()
    ...     loss.backward()
    ...     optimiser.step()

    Any network from images to class logits will do, such as one of MONAI's.

    >>> from monai.networks.nets import SegResNet
    >>> from annotruth.nn import AnySize, GlobalAnnotators
    >>> network = AnySize(SegResNet(spatial_dims=2, init_filters=8, out_channels=2), stride=8)
    >>> raters = GlobalAnnotators(raters=3, classes=2)
    >>> loss, _ = noisy_label_loss(network(images).log_softmax(dim=1), raters(images), labels)
    >>> loss.backward()
    """
    one_of(trace, ("posterior", "plain"), "trace")
    row_weight = log_truth.detach().exp() if trace == "posterior" and trace_weight != 0 else None
    return confusion.loss(log_truth, labels, trace_weight, row_weight)
