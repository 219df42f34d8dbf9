"""A dense conditional random field after prediction: every pixel listens to all others near it, most to those alike.

Mean-field inference of Krähenbühl and Koltun (2011), in 2D and 3D, in NumPy and SciPy alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import ndimage

from annotruth.errors import InputError
from annotruth.training.resample import Spacings, spacings
from annotruth.validation import voxel_spacing

REACH = 3.5
"""Deviations beyond which a pixel is not heard."""
MOST_PATTERNS, ACCURACY = 48, 1e-3
"""Patterns of intensity at most, and how far the sum of their products may be from the kernel at a pixel."""
MIN_PROBABILITY = 1e-6


@dataclass(frozen=True)
class DenseCRF:
    """How much pixels listen to each other.

    Two pixels at distance d of each other, whose intensities differ by Δ, pull each other to one class by
    ``smoothness`` · exp(−d² / 2·near²) + ``appearance`` · exp(−d² / 2·far² − Δ² / 2·alike²), each kernel normalised
    by how many a pixel hears: k_ij / √(Σ_l k_il · Σ_l k_lj). So weights mean the same for every size of image.

    It smooths: specks go, and structures of a few pixels' width, which are mostly border, become thinner.

    Parameters
    ----------
    smoothness, appearance : weights of neighbours, and of neighbours that look alike
    near, far : deviations in pixels; where the spacing is known, along the axis on which pixels are closest
    alike : deviation in intensity, as a share of the image's own standard deviation in each channel
    steps : of mean-field inference

    Examples
    --------
    A bright square, of which a network misses a corner and finds a pixel too many:

    >>> image = np.zeros((1, 12, 12))
    >>> image[0, 3:9, 3:9] = 1
    >>> inside = 0.1 + 0.8 * image[0]
    >>> inside[3, 3], inside[10, 10] = 0.4, 0.6
    >>> refined = DenseCRF().refine(np.stack([1 - inside, inside]), image)
    >>> bool((refined.argmax(axis=0) == image[0]).all())
    True
    """

    smoothness: float = 0.5
    appearance: float = 1.0
    near: float = 1.0
    far: float = 3.0
    alike: float = 0.5
    steps: int = 5

    def __post_init__(self) -> None:
        for name in ("smoothness", "appearance"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} must not be negative, as {getattr(self, name)} is.")
        for name in ("near", "far", "alike"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be greater than 0, not {getattr(self, name)}.")
        if self.steps < 1:
            raise InputError(f"steps must be at least 1, not {self.steps}.")

    def refine(
        self, probabilities: np.ndarray, image: np.ndarray, spacing: Sequence[float] | None = None
    ) -> np.ndarray:
        """Probabilities (classes, *spatial) float32 of one image, each pixel having listened to the others.

        Parameters
        ----------
        probabilities : (classes, *spatial) as a network gives them
        image : (channels, *spatial)
        spacing : millimetres from pixel to pixel along each axis; None = the same along all
        """
        probabilities, image = np.asarray(probabilities, dtype=np.float64), np.asarray(image, dtype=np.float64)
        if probabilities.shape[1:] != image.shape[1:]:
            raise InputError(
                f"Probabilities have size {probabilities.shape[1:]}, but the image has {image.shape[1:]}; a dense CRF "
                "needs both of the same size."
            )
        dims = image.ndim - 1
        steps = np.ones(dims) if spacing is None else np.asarray(voxel_spacing(spacing, dims, "The image"))
        steps = steps / steps.min()
        kernels = [
            (self.smoothness, _Kernel(np.ones((1, *image.shape[1:])), self.near / steps)),
            (self.appearance, _Kernel(intensity_patterns(image, self.alike), self.far / steps)),
        ]
        unary = np.log(np.maximum(probabilities, MIN_PROBABILITY))
        belief = probabilities
        for _ in range(self.steps):
            heard = sum(weight * np.stack([kernel(one) for one in belief]) for weight, kernel in kernels if weight)
            scores = unary + heard
            belief = np.exp(scores - scores.max(axis=0))
            belief /= belief.sum(axis=0)
        return belief.astype(np.float32)


class _Kernel:
    """Sums over all other pixels, weighted by their distance and by patterns (patterns, *spatial), normalised.

    The weight of two pixels is a Gaussian of their distance times the product of their patterns, summed over patterns:
    each needs but a Gaussian filter.
    """

    def __init__(self, patterns: np.ndarray, deviations: np.ndarray) -> None:
        self.patterns = patterns
        self.taps = [_taps(deviation, length) for deviation, length in zip(deviations, patterns.shape[1:])]
        self.own = (patterns**2).sum(axis=0)  # of a pixel with itself, which is not to be heard
        self.scale = np.ones(patterns.shape[1:])
        heard = self(self.scale)
        self.scale = 1 / np.sqrt(np.maximum(heard, MIN_PROBABILITY))

    def __call__(self, values: np.ndarray) -> np.ndarray:
        values = values * self.scale
        total = -self.own * values
        for pattern in self.patterns:
            filtered = pattern * values
            for axis, taps in enumerate(self.taps):
                filtered = ndimage.correlate1d(filtered, taps, axis=axis, mode="constant")
            total += pattern * filtered
        return total * self.scale


def _taps(deviation: float, length: int) -> np.ndarray:
    """A Gaussian that is 1 in the middle, as far as it matters along an axis of this length."""
    reach = min(int(np.ceil(REACH * deviation)), length - 1)
    return np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * deviation**2))


def intensity_patterns(image: np.ndarray, alike: float) -> np.ndarray:
    """Patterns (patterns, *spatial) whose products, summed, tell how alike any two pixels look: exp(−Δ² / 2·alike²).

    They are the columns of a pivoted Cholesky factor of that matrix of all pixels by all pixels, of which few suffice:
    pixels of one intensity have the same row. Intensities are divided by each channel's standard deviation.

    Examples
    --------
    >>> image = np.random.default_rng(0).normal(size=(1, 4, 4))
    >>> patterns = intensity_patterns(image, alike=0.5).reshape(-1, 16)
    >>> apart = np.subtract.outer(image.ravel(), image.ravel()) / image.std()
    >>> bool(np.allclose(patterns.T @ patterns, np.exp(-(apart**2) / (2 * 0.5**2)), atol=1e-3))
    True
    """
    spread = image.std(axis=tuple(range(1, image.ndim)), keepdims=True)
    pixels = (image / np.where(spread > 0, spread * alike, 1)).reshape(len(image), -1)
    left = np.ones(pixels.shape[1])  # what the patterns so far lack of each pixel's likeness to itself, which is 1
    patterns: list[np.ndarray] = []
    while len(patterns) < MOST_PATTERNS and left.max() > ACCURACY:
        pivot = int(left.argmax())
        column = np.exp(-((pixels - pixels[:, [pivot]]) ** 2).sum(axis=0) / 2)
        for pattern in patterns:
            column -= pattern[pivot] * pattern
        patterns.append(column / np.sqrt(left[pivot]))
        left = np.maximum(left - patterns[-1] ** 2, 0)
    return np.stack(patterns).reshape(-1, *image.shape[1:])


CRF = DenseCRF | bool
"""Whether probabilities are refined: True with all weights as by default."""


def refine_all(crf: CRF, probabilities: Any, images: Any, spacing: Spacings) -> Any:
    """Probabilities of some images, refined if that is asked for; otherwise as they are.

    ``spacing`` is one for all images, or one for each, or None.
    """
    if not isinstance(crf, (bool, DenseCRF)):
        raise InputError(f"crf must be True, False or a DenseCRF, not {crf!r}.")
    if not crf:
        return probabilities
    field = DenseCRF() if crf is True else crf
    every = spacings(spacing, len(images))
    return [field.refine(one, np.asarray(image), mm) for one, image, mm in zip(probabilities, images, every)]
