"""Whether two files lie on the same grid, and in what they differ if not."""

from __future__ import annotations

import numpy as np
from nibabel.orientations import aff2axcodes

from annotruth.errors import InputError
from annotruth.io.formats.header import Header
from annotruth.validation import same_grid

TOLERANCE = 1e-3
"""How far entries of two affines may lie apart: writers round differently."""


def same_place(mask: Header, reference: Header, name: str, where: str) -> None:
    """Refuse a mask whose size or place in space differs from the reference's.

    Parameters
    ----------
    mask, reference : headers with shape (*spatial); geometry is compared where both have one
    name : what the reference is, for the message ("the image")

    Examples
    --------
    >>> here, there = Header((4, 4, 4), np.eye(4)), Header((4, 4, 4), np.diag([1.0, 1.0, 3.0, 1.0]))
    >>> same_place(there, here, "the image", "a.nii")
    Traceback (most recent call last):
    annotruth.errors.InputError: a.nii: the mask does not lie where the image lies: spacing along axis 3 is 3 mm \
instead of 1 mm. Resample the mask to that grid, or correct its header.
    """
    same_grid(mask.shape, reference.shape, where, name)
    if mask.affine is None or reference.affine is None:
        return
    if not np.all(np.abs(mask.affine - reference.affine) <= TOLERANCE):
        differences = "; ".join(_differences(mask.affine, reference.affine))
        raise InputError(
            f"{where}: the mask does not lie where {name} lies: {differences}. "
            "Resample the mask to that grid, or correct its header."
        )


def _differences(ours: np.ndarray, theirs: np.ndarray) -> list[str]:
    if not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        return ["one of the affines is not finite"]
    found = []
    spacing, wanted = (np.linalg.norm(affine[:3, :3], axis=0) for affine in (ours, theirs))
    for axis in np.flatnonzero(np.abs(spacing - wanted) > TOLERANCE):
        found.append(f"spacing along axis {axis + 1} is {spacing[axis]:.6g} mm instead of {wanted[axis]:.6g} mm")
    letters, expected = ("".join(code or "?" for code in aff2axcodes(affine)) for affine in (ours, theirs))
    if letters != expected:
        found.append(f"orientation is {letters} instead of {expected}")
    else:
        with np.errstate(invalid="ignore", divide="ignore"):
            cosine = np.sum(ours[:3, :3] * theirs[:3, :3], axis=0) / (spacing * wanted)
        angles = np.degrees(np.arccos(np.clip(cosine, -1, 1)))
        for axis in np.flatnonzero(angles > np.degrees(TOLERANCE)):
            found.append(f"axis {axis + 1} is turned by {angles[axis]:.3g}°")
    if np.any(np.abs(ours[:3, 3] - theirs[:3, 3]) > TOLERANCE):
        apart = np.linalg.norm(ours[:3, 3] - theirs[:3, 3])
        found.append(f"origin is {_point(ours)} instead of {_point(theirs)}, {apart:.4g} mm apart")
    return found or [f"the affines differ by up to {np.max(np.abs(ours - theirs)):.3g}"]


def _point(affine: np.ndarray) -> str:
    return "(" + ", ".join(f"{coordinate:.6g}" for coordinate in affine[:3, 3]) + ")"
