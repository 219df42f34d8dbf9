"""What a segmentation network looks like, decided by the size and the spacing of the images: a record to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from annotruth.errors import InputError
from annotruth.validation import one_of

MIN_SIDE = 4
"""An axis is halved until it would fall below so many pixels, as nnU-Net does."""
MIN_STRIDES = 2
"""An axis that is halved is at least so many strides long, so that the coarsest resolution has more than the one value
that norms refuse."""
MAX_STAGES = 6
"""Resolutions at most: more see hardly farther, and cost weights."""
WIDTHS = {"small": 16, "standard": 32, "residual": 32}
"""Channels at full resolution, by the network's name."""
OWN, MONAI = "own", "monai:"
"""The name of a network that was given as a module, and how names of MONAI's begin."""
MAX_WIDTH = {2: 256, 3: 160}
"""Channels at the coarsest resolution at most, by number of axes, of a network that begins with 16; in proportion for
others."""
THICK = 2.0
"""An axis whose spacing is more than so many times the finest is neither halved nor looked along, until it is not."""


@dataclass(frozen=True)
class NetworkPlan:
    """A U-Net, stage by stage: the first at full resolution, each with two convolutions.

    Attributes
    ----------
    name : "small", "standard" or "residual"; or "monai:<ClassName>" or "own" (a module that was given): the stages are
        then those of what a method puts beside that network
    widths : channels of each stage
    strides : by how much each stage is coarser than the one before, one number per axis; all 1 in the first
    kernels : size of each stage's convolutions, one number per axis
    norm : "instance" or "batch"
    residual : whether the blocks of the encoder are residual
    deep_supervision : whether coarse stages give class scores, too, which are added up (Kayalibay et al. 2017)
    """

    name: str
    widths: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]
    kernels: tuple[tuple[int, ...], ...]
    norm: str = "instance"
    residual: bool = False
    deep_supervision: bool = False

    def __post_init__(self) -> None:
        for name in ("strides", "kernels"):  # lists, where the record was read from a file
            object.__setattr__(self, name, tuple(tuple(int(n) for n in stage) for stage in getattr(self, name)))
        object.__setattr__(self, "widths", tuple(int(width) for width in self.widths))
        check_name(self.name)
        one_of(self.norm, ("instance", "batch"), "norm")
        if not len(self.widths) == len(self.strides) == len(self.kernels):
            raise InputError(
                f"A network plan needs widths, strides and kernels for each stage; there are {len(self.widths)}, "
                f"{len(self.strides)} and {len(self.kernels)}."
            )
        if len({len(stage) for stage in (*self.strides, *self.kernels)}) != 1:
            raise InputError("The strides and kernels of a network plan need one number per axis, in every stage.")
        if len(self.widths) < 2:
            raise InputError("A network plan needs two stages at least.")
        if min(self.widths) < 1 or any(n < 1 for stage in self.strides for n in stage):
            raise InputError("The widths and strides of a network plan are positive whole numbers.")
        if any(n < 1 or n % 2 == 0 for stage in self.kernels for n in stage):
            raise InputError("The kernels of a network plan are odd numbers: 1, 3, 5 …")
        if set(self.strides[0]) != {1}:
            raise InputError(f"The first stage works at full resolution: its strides are 1, not {self.strides[0]}.")

    @property
    def dims(self) -> int:
        """How many spatial axes it is for."""
        return len(self.strides[0])

    @property
    def stride(self) -> tuple[int, ...]:
        """By how much the coarsest stage is coarser than the image, along each axis."""
        return tuple(prod(stage) for stage in zip(*self.strides))

    def begun_with(self, width: int) -> NetworkPlan:
        """The same stages, with so many channels at full resolution, others in proportion.

        Examples
        --------
        >>> plan_network((64, 64)).begun_with(8).widths
        (8, 16, 32, 64, 128)
        """
        return replace(self, widths=tuple(max(each * width // self.widths[0], 1) for each in self.widths))

    @property
    def least(self) -> tuple[int, ...]:
        """The smallest lengths of images that are not padded for being too short."""
        return least_lengths(self.stride)


def plan_network(
    size: Sequence[int],
    spacing: Sequence[float] | None = None,
    name: str = "small",
    deep_supervision: bool = False,
) -> NetworkPlan:
    """Stages for images (or patches) of this size.

    Every axis is halved until it would fall below :data:`MIN_SIDE` pixels. Along an axis whose pixels are far thicker
    than the finest, nothing is halved, and kernels have length 1, until the others have become as coarse.

    Parameters
    ----------
    size : pixels along each axis
    spacing : millimetres from pixel to pixel along each axis; None = the same along all
    name : "small" (16 channels at full resolution), "standard" (32) or "residual" (32, with residual blocks); for other
        networks, see :class:`NetworkPlan`, stages are those of "small"

    Examples
    --------
    >>> plan = plan_network((64, 48))
    >>> plan.widths
    (16, 32, 64, 128, 256)
    >>> plan.strides
    ((1, 1), (2, 2), (2, 2), (2, 2), (2, 1))

    Thick slices stay apart at first:

    >>> plan_network((128, 128, 16), spacing=(1, 1, 5)).strides
    ((1, 1, 1), (2, 2, 1), (2, 2, 1), (2, 2, 2), (2, 2, 2), (2, 2, 1))
    """
    lengths = np.array(size, dtype=float)
    apart = np.ones(len(lengths)) if spacing is None else np.array(spacing, dtype=float)
    strides, kernels = [(1,) * len(lengths)], [_kernel(apart)]
    while len(strides) < MAX_STAGES:
        may = lengths / 2 >= MIN_SIDE
        near = apart <= THICK * apart[may].min() if may.any() else may
        halved = np.where(may & near, 2, 1)
        if (halved == 1).all():
            break
        lengths, apart = np.ceil(lengths / halved), apart * halved
        strides.append(tuple(halved.tolist()))
        kernels.append(_kernel(apart, kernels[-1]))
    if len(strides) == 1:  # tiny pictures still get a second look from farther off
        strides.append((2,) * len(lengths))
        kernels.append(_kernel(apart, kernels[-1]))
    first = WIDTHS.get(name, WIDTHS["small"])
    most = MAX_WIDTH[len(lengths)] * first // WIDTHS["small"]
    widths = tuple(min(first * 2**stage, most) for stage in range(len(strides)))
    return NetworkPlan(name, widths, tuple(strides), tuple(kernels), "instance", name == "residual", deep_supervision)


def least_lengths(stride: Sequence[int]) -> tuple[int, ...]:
    """The smallest lengths of axes that become coarser by these strides: two pixels must be left, or norms refuse them.

    Examples
    --------
    >>> least_lengths((16, 1))
    (32, 1)
    """
    return tuple(MIN_STRIDES * step if step > 1 else 1 for step in stride)


def check_name(name: str) -> None:
    """Refuse a network that there is not."""
    if name != OWN and not name.startswith(MONAI):
        one_of(name, (*WIDTHS, f"{MONAI}<ClassName>"), "network")


def _kernel(spacing: np.ndarray, before: tuple[int, ...] = (1,)) -> tuple[int, ...]:
    """Three pixels along each axis, one along those that are thick beside the finest, and were so in all stages."""
    return tuple(np.maximum(np.where(spacing <= THICK * spacing.min(), 3, 1), before).tolist())
