"""Values of images as networks like them: clipped, if need be, and standardised by channel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from annotruth.errors import InputError


@dataclass(frozen=True)
class Standard:
    """Mean and deviation of every channel, by which images are standardised (z-scores).

    Attributes
    ----------
    clip : lowest and highest value of each channel, to which others are set first; None = all stay as they are
    """

    mean: list[float]
    deviation: list[float]
    clip: list[list[float]] | None = None

    @classmethod
    def of(
        cls, images: Iterable[np.ndarray], items: Sequence[str], clip: Sequence[Sequence[float]] | None = None
    ) -> Standard:
        """Measure images (channels, *spatial) of some items, one at a time, after they are clipped."""
        total = square = count = np.zeros(())
        for item, image in zip(items, images):
            image = image.astype(np.float64)
            if count:
                check_channels(image, len(total), item)
            if clip is not None:
                if len(clip) != len(image):
                    raise InputError(
                        f"clip has values for {len(clip)} channels, but item {item} has {len(image)}: the plan needs a "
                        "lowest and a highest value for each channel."
                    )
                image = _clipped(image, clip)
            flat = image.reshape(len(image), -1)
            total, square, count = total + flat.sum(axis=1), square + (flat**2).sum(axis=1), count + flat.shape[1]
        mean = total / count
        deviation = np.sqrt(np.maximum(square / count - mean**2, 0))
        kept = None if clip is None else [list(values) for values in clip]
        return cls(np.atleast_1d(mean).tolist(), np.where(deviation > 0, deviation, 1.0).tolist(), kept)

    def __call__(self, image: np.ndarray) -> Tensor:
        """Standardise one image (channels, *spatial)."""
        shape = (-1, *[1] * (image.ndim - 1))
        mean, deviation = (np.array(of, dtype=np.float32).reshape(shape) for of in (self.mean, self.deviation))
        if self.clip is not None:
            image = _clipped(image, self.clip)
        return torch.from_numpy((image - mean) / deviation)


def _clipped(image: np.ndarray, clip: Sequence[Sequence[float]]) -> np.ndarray:
    """An image (channels, *spatial), each channel within its lowest and highest value."""
    low, high = (np.array(bound, image.dtype).reshape(-1, *[1] * (image.ndim - 1)) for bound in zip(*clip))
    return np.clip(image, low, high)


def check_channels(image: np.ndarray, channels: int, item: str) -> None:
    """Refuse an image of other channels than the others have."""
    if len(image) != channels:
        raise InputError(
            f"Item {item} has {len(image)} channels, but other items {channels}: every image needs the same channels."
        )
