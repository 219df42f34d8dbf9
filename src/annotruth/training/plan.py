"""The plan of a training on masks: how images are treated and which network learns. A record to read and to change."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError, shorten
from annotruth.io.reading import read_json
from annotruth.nn import NetworkPlan, plan_network
from annotruth.training.fingerprint import Fingerprint, clip_values, mirror_axes
from annotruth.training.resample import grid_size, plan_spacing

LARGEST_WHOLE = {2: 512, 3: 64}
"""Side up to which images are trained on whole, by number of axes: slices of computed tomography are, so that left can
be told from right."""
PATCH_SIDE = {2: 256, 3: 64}
"""Larger images are cut into patches of this side."""
BATCH_PIXELS = 2**20
"""A batch holds at most this many pixels or voxels, unless batch_size says otherwise; see also below."""
BATCH_ITEMS, FEWEST_STEPS = 16, 64
"""It holds at most so many items, and so few that an epoch has this many steps: small data sets need steps, too."""
FOREGROUND = 1 / 3
"""Share of the patches that are laid around a pixel that somebody labelled as no background."""


@dataclass(frozen=True)
class Plan:
    """How images become batches, and what the network looks like.

    Attributes
    ----------
    spacing : millimetres from pixel to pixel along each axis, to which images are resampled; None = as they are
    clip : lowest and highest value of each channel that are told apart; None = all
    mirror : axes, counted from 0, along which images may be mirrored, in training and in prediction
    patch_size : pixels of the patches that are learnt from, along each axis; None = whole images
    foreground : share of the patches that are laid around a pixel that somebody labelled as no background
    patches : how many patches of each image an epoch takes; 1 where images are whole
    batch_size : images or patches per step
    network : the stages of the network

    Examples
    --------
    >>> from annotruth.simulate import noisy_digits, simulate_masks
    >>> images, truth, _ = noisy_digits(70)
    >>> plan = plan_sizes(simulate_masks(truth).annotations(images=images))
    >>> plan.network.strides
    ((1, 1), (2, 2), (2, 2))
    >>> Plan.read(json.loads(plan.to_json())) == plan
    True
    """

    spacing: tuple[float, ...] | None
    clip: tuple[tuple[float, float], ...] | None
    mirror: tuple[int, ...]
    patch_size: tuple[int, ...] | None
    foreground: float
    patches: int
    batch_size: int
    network: NetworkPlan

    @classmethod
    def read(cls, source: Plan | Mapping[str, Any] | str | Path) -> Plan:
        """Take a plan, a mapping of its fields, or a JSON file that ``annotruth plan`` wrote and somebody changed."""
        if isinstance(source, Plan):
            return source
        where = "The plan"
        if not isinstance(source, Mapping):
            where = str(source)
            if not isinstance(source, (str, Path)):
                raise InputError(f"A plan is a file, a mapping of its fields or a Plan, not {source!r}.")
            source = read_json(Path(source))
        if not isinstance(source, Mapping) or not isinstance(source.get("network"), Mapping):
            raise InputError(f"{where} is no plan of annotruth; `annotruth plan CASES -o FILE` writes one.")
        of_network = source["network"]
        if not isinstance(of_network.get("name", ""), str):
            raise InputError(f"{where}, network: its name must be a word, not {of_network['name']!r}.")
        _check_fields(where, cls, source)
        _check_fields(f"{where}, network", NetworkPlan, of_network)
        try:
            return cls(**{**source, "network": NetworkPlan(**of_network)})
        except (TypeError, ValueError) as error:
            raise InputError(f"{where} cannot be used: {error}") from error

    def __post_init__(self) -> None:
        for name in ("spacing", "patch_size", "mirror"):  # lists, where the record was read from a file
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else tuple(value))
        object.__setattr__(self, "batch_size", int(self.batch_size))  # which may be a number of NumPy's
        if self.clip is not None:
            object.__setattr__(self, "clip", tuple((float(low), float(high)) for low, high in self.clip))
        self._check()

    def _check(self) -> None:
        axes = self.network.dims
        for name, value in (("spacing", self.spacing), ("patch_size", self.patch_size)):
            if value is not None and (len(value) != axes or not all(np.isfinite(n) and n > 0 for n in value)):
                raise InputError(f"{name} needs a positive number for each of the {axes} axes, not {list(value)}.")
        if self.clip is not None and any(not low < high for low, high in self.clip):
            raise InputError(f"clip needs a lowest and a higher highest value for each channel, not {self.clip}.")
        if not set(self.mirror) <= set(range(axes)) or len(set(self.mirror)) < len(self.mirror):
            raise InputError(f"mirror lists axes from 0 to {axes - 1}, each once, not {list(self.mirror)}.")
        if not 0 <= self.foreground <= 1:
            raise InputError(f"foreground is a share of the patches, from 0 to 1, not {self.foreground}.")
        for name, number in (("batch_size", self.batch_size), ("patches", self.patches)):
            if not isinstance(number, Integral) or number < 1:
                raise InputError(f"{name} must be a positive whole number, not {number}.")
        least = self.network.least
        if self.patch_size is not None and any(length < fewest for length, fewest in zip(self.patch_size, least)):
            raise InputError(
                f"The network is too deep for patches of {_times(self.patch_size)}: its coarsest stage is "
                f"{_times(self.network.stride)} times coarser, so that patches need at least {_times(least)} pixels. "
                "Take larger patches, or leave stages out."
            )

    def to_json(self) -> str:
        """The record as JSON, one line per entry."""
        record = asdict(self)
        network = {name: json.dumps(value) for name, value in record.pop("network").items()}
        lines = [f'  "{name}": {json.dumps(value)}' for name, value in record.items()]
        stages = ",\n".join(f'    "{name}": {value}' for name, value in network.items())
        return "{\n" + ",\n".join(lines) + ',\n  "network": {\n' + stages + "\n  }\n}\n"


def plan_sizes(
    annotations: Annotations,
    network: str = "small",
    patch_size: Sequence[int] | None = None,
    batch_size: int | None = None,
    deep_supervision: bool = False,
) -> Plan:
    """As much of the plan as sizes and spacings tell, without a look at the images; the rest as if all were allowed."""
    shapes = image_shapes(annotations)
    target, spacing = plan_spacing(annotations)
    shapes = [grid_size(shape, annotations.spacing(index), target) for index, shape in enumerate(shapes)]
    patch = _patch(shapes, patch_size)
    largest = np.max(shapes, axis=0)
    size = largest if patch is None else np.minimum(patch, largest)
    stages = plan_network([int(length) for length in size], spacing, network, deep_supervision)
    pixels = int(np.prod(size))
    batch = batch_size or max(1, min(BATCH_PIXELS // pixels, BATCH_ITEMS, len(shapes) // FEWEST_STEPS))
    mirror = tuple(range(len(size)))
    if patch is None:
        return Plan(target, None, mirror, None, 0.0, 1, batch, stages)
    # As many as it takes to see every pixel once, on average, but no more than a small data set needs to get its steps.
    to_see_all = np.mean([np.prod(shape) for shape in shapes]) / pixels
    patches = max(1, min(round(to_see_all), -(-FEWEST_STEPS * batch // len(shapes))))
    return Plan(target, None, mirror, patch, FOREGROUND, patches, batch, stages)


def complete_plan(plan: Plan, items: Iterable[Fingerprint]) -> Plan:
    """A plan with what depends on the images and labels themselves: see :mod:`annotruth.training.fingerprint`."""
    seen = list(items)
    return replace(plan, mirror=mirror_axes(seen, plan.network.dims), clip=clip_values(seen))


def image_shapes(annotations: Annotations) -> list[tuple[int, ...]]:
    """The spatial sizes of all images, of 2 or of 3 axes."""
    shapes = [annotations.shape(index) for index in range(len(annotations))]
    axes = {len(shape) for shape in shapes}
    if len(axes) > 1 or not axes <= set(LARGEST_WHOLE):
        raise InputError(f"Images need 2 or 3 spatial axes, all the same; these have {sorted(axes)}.")
    return shapes


def _patch(shapes: Sequence[tuple[int, ...]], asked: Sequence[int] | None) -> tuple[int, ...] | None:
    """The patch size: the one asked for, or None = whole images, where they are small enough."""
    axes, largest = len(shapes[0]), np.max(shapes, axis=0)
    if asked is not None:
        patch = tuple(int(length) for length in np.atleast_1d(asked))
        if len(patch) != axes or min(patch) < 1:
            raise InputError(f"patch_size needs a positive number for each of the {axes} axes, not {asked}.")
        if (np.array(patch) > largest).any():
            raise InputError(
                f"A patch of {_times(patch)} is larger than the largest image, {_times(largest)}; leave patch_size "
                "out to train on whole images."
            )
        return patch
    if (largest <= LARGEST_WHOLE[axes]).all():
        return None
    return tuple(int(min(PATCH_SIDE[axes], length)) for length in largest)


def _check_fields(where: str, record: type, given: Mapping[str, Any]) -> None:
    names = {field.name for field in fields(record)}
    unknown, missing = sorted(set(given) - names), sorted(names - set(given))
    if unknown or missing:
        said = [f"{word} {shorten(each)}" for word, each in (("unknown:", unknown), ("missing:", missing)) if each]
        raise InputError(f"{where} does not hold the entries of a plan ({'; '.join(said)}).")


def _times(size: Sequence[int] | np.ndarray) -> str:
    return "×".join(str(int(length)) for length in size)
