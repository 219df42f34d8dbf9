"""How an image goes through a network: window by window, and mirrored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, combinations

import torch
from monai.inferers import sliding_window_inference

TOGETHER = 2**16
"""Mirror images of so many pixels in all, or fewer, go through the network together, which is quicker."""

Predict = Callable[[torch.Tensor], torch.Tensor]
"""From images (batch, channels, *spatial) to something for each of their pixels, (batch, values, *spatial)."""


def by_windows(image: torch.Tensor, patch: Sequence[int] | None, predict: Predict) -> torch.Tensor:
    """What is predicted for an image (1, channels, *spatial); one larger than a patch goes window by window.

    Windows overlap by half, and count most in their middle (a Gaussian weight).

    Examples
    --------
    >>> by_windows(torch.ones(1, 1, 9, 9), (4, 4), lambda part: 2 * part).shape
    torch.Size([1, 1, 9, 9])
    """
    if patch is None or all(n <= p for n, p in zip(image.shape[2:], patch)):
        return predict(image)
    return sliding_window_inference(image, patch, sw_batch_size=4, predictor=predict, overlap=0.5, mode="gaussian")


def mirrored(predict: Predict, axes: Sequence[int]) -> Predict:
    """The mean of what is predicted for images and for their mirror images along some axes, and all of these together.

    With k axes, that is 2^k predictions.

    Parameters
    ----------
    axes : counted from 0, the first spatial one

    Examples
    --------
    >>> leftmost = lambda images: torch.cumsum(images, dim=2)
    >>> mirrored(leftmost, axes=(0,))(torch.tensor([[[1.0, 0.0, 3.0]]])).tolist()
    [[[2.5, 2.0, 3.5]]]
    """
    some = list(chain.from_iterable(combinations([axis + 2 for axis in axes], count) for count in range(len(axes) + 1)))

    def predict_all(images: torch.Tensor) -> torch.Tensor:
        views = [images.flip(axes) for axes in some]
        if images[:, 0].numel() * len(some) <= TOGETHER:
            predicted: Iterable[torch.Tensor] = predict(torch.cat(views)).chunk(len(some))
        else:
            predicted = map(predict, views)
        return sum(one.flip(axes) for axes, one in zip(some, predicted)) / len(some)  # type: ignore[return-value]

    return predict_all if axes else predict
