"""What models of masks ask of annotations, refused in words that say what to use instead; and counts over pixels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.stores import Case


def need_masks(annotations: Annotations, model: str, instead: str) -> None:
    """Refuse a label table, and masks of one rater."""
    if annotations.kind != "masks":
        raise InputError(f"{model} needs masks; for a label table use {instead}.")
    if len(annotations.raters) < 2:
        raise InputError(
            f"{model} compares raters, and there is one, {annotations.raters[0]}: take their masks as they are, or add "
            "a second rater's."
        )


def need_images(annotations: Annotations, model: str, instead: str) -> None:
    """Refuse masks without the images that they were drawn on."""
    if not annotations.has_images:
        raise InputError(
            f"{model} needs the images: give them with images=, or put them into images/. Without images use {instead}."
        )


def check_window(window: int | Sequence[int], annotations: Annotations) -> None:
    """Refuse sides of a window that are not odd, or of which there are not as many as dimensions."""
    sides = np.atleast_1d(window)
    if sides.ndim != 1 or not np.issubdtype(sides.dtype, np.integer) or (sides < 1).any() or (sides % 2 == 0).any():
        raise InputError(f"window must be odd whole numbers of at least 1, found {window!r}.")
    dimensions = {len(annotations.shape(i)) for i in range(len(annotations))}
    if len(sides) > 1 and dimensions != {len(sides)}:
        raise InputError(f"window has {len(sides)} sides but the masks have {sorted(dimensions)} dimensions.")


def target_and_atlases(case: Case, model: str, instead: str) -> tuple[np.ndarray, np.ndarray]:
    """The target's image (1, pixels) and the raters' own (raters of the batch, pixels), the channels of a case's image.

    Channel 0 is the target's, the others are the raters' own images, registered to it, in the raters' order.
    """
    image = case.image.reshape(len(case.image), -1)
    n_raters = len(case.masks)
    if len(image) != n_raters + 1:
        raise InputError(
            f"{model} with atlases needs an image of {n_raters + 1} channels: the target's, then each of the "
            f"{n_raters} raters' own, registered to the target. Found {len(image)}. Where all raters drew on one "
            f"image, use {instead}."
        )
    return image[:1], image[1:]


def pixel_counts(masks: np.ndarray, posterior: np.ndarray) -> np.ndarray:
    """Expected counts (raters, classes, classes), [true, observed], of masks (raters, pixels) under a posterior.

    Examples
    --------
    >>> pixel_counts(np.array([[0, 1, 255]], dtype=np.uint8), np.array([[0.75, 0.5, 1.0], [0.25, 0.5, 0.0]]))
    array([[[0.75, 0.5 ],
            [0.25, 0.5 ]]])
    """
    n = len(posterior)
    return np.stack([[np.bincount(mask, weights=share, minlength=n)[:n] for share in posterior] for mask in masks])
