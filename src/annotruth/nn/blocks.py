"""Pixels in blocks, so that what a formula needs in between never exists for all pixels at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

# Numbers in one block: few enough for a processor's cache, enough to keep a GPU busy.
_NUMBERS_ON_CPU, _NUMBERS_ON_GPU = 2**19, 2**25


def one_pixel_axis(tensor: Tensor, leading: int) -> Tensor:
    """Merge all axes after the ``leading`` ones into one; where there are none, make one of length 1.

    Examples
    --------
    >>> one_pixel_axis(torch.empty(5, 3, 4, 6), 2).shape, one_pixel_axis(torch.empty(5, 3), 2).shape
    (torch.Size([5, 3, 24]), torch.Size([5, 3, 1]))
    """
    return tensor.reshape(*tensor.shape[:leading], tensor.shape[leading:].numel())


def blocks(tensor: Tensor) -> Iterator[tuple[slice, slice]]:
    """Cut a tensor (items, ..., pixels) into blocks of items and pixels.

    Examples
    --------
    >>> list(blocks(torch.empty(2, 2**10, 2**9)))
    [(slice(0, 1, None), slice(0, 512, None)), (slice(1, 2, None), slice(0, 512, None))]
    """
    items, pixels = tensor.shape[0], tensor.shape[-1]
    per_pixel = tensor.shape[1:-1].numel()
    wide = min(pixels, _most(tensor, per_pixel))
    high = _most(tensor, per_pixel * wide)
    for top in range(0, items, high):
        for left in range(0, pixels, wide):
            yield slice(top, min(top + high, items)), slice(left, min(left + wide, pixels))


def pixel_blocks(*tensors: Tensor, per_pixel: int) -> list[tuple[Tensor, ...]]:
    """Cut tensors (..., pixels) into blocks of pixels, given how many numbers the work on one pixel needs.

    Examples
    --------
    >>> [block.shape for (block,) in pixel_blocks(torch.empty(3, 10), per_pixel=2**17)]
    [torch.Size([3, 4]), torch.Size([3, 4]), torch.Size([3, 2])]
    """
    wide = _most(tensors[0], per_pixel)
    return list(zip(*(tensor.split(wide, dim=-1) for tensor in tensors)))


def in_blocks(work: Callable[..., tuple[Tensor, Tensor]], *tensors: Tensor, per_pixel: int) -> tuple[Tensor, Tensor]:
    """Apply work that treats each pixel by itself to tensors (..., pixels), block by block.

    Of what is computed in between, nothing is kept: it is computed once more where gradients need it.

    Examples
    --------
    >>> in_blocks(lambda x: (x + 1, x * x), torch.arange(3.0), per_pixel=2**18)
    (tensor([1., 2., 3.]), tensor([0., 1., 4.]))
    """
    parts = pixel_blocks(*tensors, per_pixel=per_pixel)
    if len(parts) == 1:
        return work(*tensors)
    done = [checkpoint(work, *part, use_reentrant=False, preserve_rng_state=False) for part in parts]
    first, second = zip(*done)
    return torch.cat(first, dim=-1), torch.cat(second, dim=-1)


def _most(tensor: Tensor, numbers: int) -> int:
    """How many things of so many numbers make one block: at least one."""
    most = _NUMBERS_ON_CPU if tensor.device.type == "cpu" else _NUMBERS_ON_GPU
    return max(1, most // numbers)
