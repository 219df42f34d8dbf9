"""Attention inside windows of a picture: each looks at itself only, so that memory grows linearly with pixels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import prod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotruth.nn.backbones import pad_end

LONGEST_WINDOW = {2: 4, 3: 3}
"""Longest side of a window, by number of spatial axes: convolutions see further, attention need not."""
HEAD_CHANNELS = 16
"""Channels of one head of attention; more, where they cannot be shared out so."""


class Windows:
    """Cuts feature maps of one size into equal windows, and puts them together again.

    Windows are as even as can be: 6 places become two windows of 3. Where they do not fit, the far ends are padded,
    and nobody attends to the padding.

    Examples
    --------
    >>> windows = Windows((6, 5))
    >>> windows.lengths
    (3, 3)
    >>> places = windows.cut(torch.arange(6 * 5.0).view(1, 1, 6, 5))
    >>> places.shape, windows.join(places)[0, 0, 0]
    (torch.Size([4, 9, 1]), tensor([0., 1., 2., 3., 4.]))
    """

    def __init__(self, size: Sequence[int], longest: int | None = None) -> None:
        longest = longest or LONGEST_WINDOW[len(size)]
        self.size = tuple(size)
        self.counts = tuple(-(-length // longest) for length in size)
        self.lengths = tuple(-(-length // count) for length, count in zip(size, self.counts))

    def cut(self, features: Tensor) -> Tensor:
        """Turn (batch, channels, *size) into (batch · windows, places, channels)."""
        split = pad_end(features, self._padded).movedim(1, -1)
        split = split.reshape(len(features), *chain.from_iterable(zip(self.counts, self.lengths)), features.shape[1])
        dims = len(self.size)
        order = (0, *range(1, 1 + 2 * dims, 2), *range(2, 2 + 2 * dims, 2), 1 + 2 * dims)
        return split.permute(order).reshape(-1, prod(self.lengths), features.shape[1])

    def join(self, places: Tensor) -> Tensor:
        """Undo :meth:`cut`."""
        dims = len(self.size)
        split = places.reshape(-1, *self.counts, *self.lengths, places.shape[-1])
        order = (0, *chain.from_iterable((1 + axis, 1 + dims + axis) for axis in range(dims)), 1 + 2 * dims)
        whole = split.permute(order).reshape(len(split), *self._padded, places.shape[-1]).movedim(-1, 1)
        return whole[tuple([slice(None), slice(None)] + [slice(length) for length in self.size])]

    def seen(self, features: Tensor) -> Tensor | None:
        """Which places are not padding, for the attention: (batch · windows, 1, 1, places); None where all are."""
        if self._padded == self.size:
            return None
        inside = self.cut(features.new_ones(len(features), 1, *self.size))
        return (inside > 0).view(len(inside), 1, 1, -1)

    @property
    def _padded(self) -> tuple[int, ...]:
        return tuple(count * length for count, length in zip(self.counts, self.lengths))


def attend(query: Tensor, key: Tensor, value: Tensor, heads: int, seen: Tensor | None) -> Tensor:
    """Scaled dot-product attention of several heads, given queries, keys and values as (items, places, heads · width).

    Gives what each head found, (items, places, heads, width); attention maps are never stored.

    The maps that make queries, keys and values need no biases: places' positions have the queries', keys' would change
    nothing, and values' pass into the bias of what comes after.
    """
    q, k, v = (part.unflatten(2, (heads, -1)).transpose(1, 2) for part in (query, key, value))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen).transpose(1, 2)


def heads_for(channels: int) -> int:
    """How many heads of the same number of channels, 16 at least if there are so many.

    Examples
    --------
    >>> heads_for(64), heads_for(40), heads_for(8)
    (4, 2, 1)
    """
    most = max(channels // HEAD_CHANNELS, 1)
    return next(heads for heads in range(most, 0, -1) if channels % heads == 0)


class Positions(nn.Module):
    """A learnt vector for each place of a window."""

    def __init__(self, channels: int, dims: int) -> None:
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(*[LONGEST_WINDOW[dims]] * dims, channels))

    def forward(self, lengths: tuple[int, ...]) -> Tensor:
        """The vectors (places, channels) of a window of so many places along each axis."""
        return self.table[tuple(slice(length) for length in lengths)].reshape(-1, self.table.shape[-1])


class Mlp(nn.Sequential):
    """Two linear maps that keep the number of channels."""

    def __init__(self, channels: int) -> None:
        super().__init__(nn.Linear(channels, channels), nn.GELU(), nn.Linear(channels, channels))


class CrossAttention(nn.Module):
    """Features looked up by embedded confidences: those are the query, features are key and value (eq. 7).

    What is found is added to both, so that confidences tell not only where to look; layer norms and an MLP follow.

    Examples
    --------
    >>> attend = CrossAttention(channels=16, dims=2)
    >>> attend(torch.randn(2, 16, 10, 7), torch.randn(2, 16, 10, 7)).shape
    torch.Size([2, 16, 10, 7])
    """

    def __init__(self, channels: int, dims: int) -> None:
        super().__init__()
        self.of_confidences, self.of_features = Positions(channels, dims), Positions(channels, dims)
        self.query, self.key, self.value = (nn.Linear(channels, channels, bias=False) for _ in range(3))
        self.out = nn.Linear(channels, channels)
        self.mlp = Mlp(channels)
        self.norms = nn.ModuleList([nn.LayerNorm(channels) for _ in range(2)])

    def forward(self, features: Tensor, confidences: Tensor) -> Tensor:
        """Features and embedded confidences, both (batch, channels, *spatial), give features of the same shape."""
        windows = Windows(features.shape[2:])
        f, w = windows.cut(features), windows.cut(confidences)
        query = self.query(w + self.of_confidences(windows.lengths))
        key = self.key(f + self.of_features(windows.lengths))
        found = attend(query, key, self.value(f), heads_for(f.shape[2]), windows.seen(features))
        x = self.norms[0](f + w + self.out(found.flatten(2)))
        return windows.join(self.norms[1](x + self.mlp(x)))


class SelfAttention(nn.Module):
    """A block of self-attention over places (items, places, channels) of a window, with residuals, norms and MLP."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.query_key = nn.Linear(channels, 2 * channels, bias=False)
        self.value, self.out = nn.Linear(channels, channels, bias=False), nn.Linear(channels, channels)
        self.mlp = Mlp(channels)
        self.norms = nn.ModuleList([nn.LayerNorm(channels) for _ in range(2)])

    def forward(self, places: Tensor, positions: Tensor, seen: Tensor | None) -> Tensor:
        query, key = self.query_key(places + positions).chunk(2, dim=2)
        found = attend(query, key, self.value(places), heads_for(places.shape[2]), seen)
        x = self.norms[0](places + self.out(found.flatten(2)))
        return self.norms[1](x + self.mlp(x))


class RaterHeads(nn.Module):
    """The last block of self-attention: one head per rater, each with a residual, a norm and an MLP of its own width.

    Places (items, places, channels) become (items, places, raters, width).
    """

    def __init__(self, channels: int, raters: int, width: int) -> None:
        super().__init__()
        self.raters = raters
        self.query_key = nn.Linear(channels, 2 * raters * width, bias=False)
        self.value_kept = nn.Linear(channels, 2 * raters * width)
        self.norm, self.mlp = nn.LayerNorm(width), Mlp(width)

    def forward(self, places: Tensor, positions: Tensor, seen: Tensor | None) -> Tensor:
        query, key = self.query_key(places + positions).chunk(2, dim=2)
        value, kept = self.value_kept(places).chunk(2, dim=2)
        x = kept.unflatten(2, (self.raters, -1)) + attend(query, key, value, self.raters, seen)
        return x + self.mlp(self.norm(x))
