"""MONAI's networks by their names, ``monai:SegResNet``, fitted to the data: channels, classes, axes, sizes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from difflib import get_close_matches
from typing import Any, Literal

import torch
from monai.networks import nets
from monai.utils import OptionalImportError
from torch import nn

from annotruth.errors import InputError
from annotruth.nn.backbones import AnySize, whole_strides
from annotruth.nn.plan import MONAI as PREFIX

MEANINGS = {
    "dims": ("spatial_dims",),
    "channels": ("in_channels", "n_input_channels"),
    "classes": ("out_channels", "num_classes", "n_classes", "classes"),
    "size": ("img_size", "input_image_size"),
    "shape": ("in_shape",),
}
"""What MONAI's classes call the same thing."""
REQUIRED: dict[str, Any] = {
    "model_name": "efficientnet-b0", "backbone": "efficientnet-b0",
    "channels": (16, 32, 64, 128), "strides": (2, 2, 2),
}  # fmt: skip
"""Arguments that some classes have no default for, and what they are given."""
STRIDES = (1, 2, 4, 8, 16, 32)
"""Multiples of which a segmentation network may want all lengths to be."""
ANY_LENGTH = 64
"""Along each axis, where a network is to be tried and nobody says how large images are."""


def is_monai(name: object) -> bool:
    """Whether a network's name is one of MONAI's: "monai:UNet".

    Examples
    --------
    >>> is_monai("monai:UNet"), is_monai("cnn")
    (True, False)
    """
    return isinstance(name, str) and name.startswith(PREFIX)


def monai_network(
    name: str,
    *,
    dims: int,
    in_channels: int,
    out_channels: int,
    size: Sequence[int] | None = None,
    task: Literal["masks", "labels"] = "masks",
) -> nn.Module:
    """One of MONAI's networks, with its own defaults, untrained: weights are never downloaded.

    It is tried on blank images before it is given. Networks for masks take images of any size: those that want
    multiples of some number are wrapped in :class:`AnySize`.

    Parameters
    ----------
    name : "monai:" and a class of ``monai.networks.nets``, or one of its functions that make a ResNet: "monai:resnet18"
    dims : 2 or 3 spatial axes
    in_channels : of the images
    out_channels : classes
    size : of the images, one number per axis; None = they differ
    task : "masks" = class scores at every pixel (batch, classes, *spatial), "labels" = of images (batch, classes)

    Examples
    --------
    >>> import torch
    >>> network = monai_network("monai:SegResNet", dims=2, in_channels=1, out_channels=3)
    >>> network(torch.zeros(2, 1, 13, 30)).shape
    torch.Size([2, 3, 13, 30])
    """
    build = _find(name)
    parameters = _parameters(build)
    given: dict[str, Any] = {"dims": dims, "channels": in_channels, "classes": out_channels}

    def make(built_for: Sequence[int] | None) -> nn.Module:
        sizes = {} if built_for is None else {"size": tuple(built_for), "shape": (in_channels, *built_for)}
        return _made(name, build, parameters, {**given, **sizes})

    if task == "masks":
        fixed = any(each in parameters for each in (*MEANINGS["size"], *MEANINGS["shape"]))
        return _any_size(name, make, fixed, (in_channels, out_channels), dims, size)
    size = tuple(size or [ANY_LENGTH] * dims)
    network = make(size)
    wrong = _what_fails(name, network, (in_channels, *size), (out_channels,))
    if wrong:
        raise InputError(
            f"{name} does not classify images of {_times(size)} pixels and {in_channels} channel(s): {wrong}. Take "
            "another network or larger images."
        )
    return network


def _find(name: str) -> Callable[..., nn.Module]:
    """A network's class, or the function that makes it."""
    known = {each: made for each, made in vars(nets).items() if _makes(made) is not None}
    short = name.removeprefix(PREFIX)
    if short not in known:
        small = {each.lower(): made.__name__ for each, made in known.items()}  # aliases give the name itself
        close = dict.fromkeys(PREFIX + small[each] for each in get_close_matches(short.lower(), small, n=3))
        hint = f"Did you mean {' or '.join(close)}?" if close else "See monai.networks.nets."
        raise InputError(f"MONAI has no network {short!r}. {hint}")
    return known[short]


def _makes(thing: Any) -> type[nn.Module] | None:
    """The class of network that something makes; None = it is no maker of networks."""
    if inspect.isfunction(thing):
        # Its annotation, "ResNet", is text.
        thing = getattr(nets, str(thing.__annotations__.get("return")), None)
    return thing if inspect.isclass(thing) and issubclass(thing, nn.Module) else None


def _parameters(build: Callable[..., nn.Module]) -> dict[str, inspect.Parameter]:
    """All arguments, also those that are passed on as ``**kwargs`` to the class behind."""
    made = _makes(build)
    assert made is not None
    parameters: dict[str, inspect.Parameter] = {}
    makers: list[Callable[..., Any]] = [build, *made.__mro__]
    for maker in makers:
        own = inspect.signature(maker).parameters.values()
        parameters = {each.name: each for each in own if each.kind is not each.VAR_KEYWORD} | parameters
        if all(each.kind is not each.VAR_KEYWORD for each in own):
            break
    # What a class behind requires is what the function or class before it gives.
    first = inspect.signature(build).parameters
    return {
        name: each if name in first else each.replace(default=None) for name, each in parameters.items()
    }  # fmt: skip


def _made(
    name: str,
    build: Callable[..., nn.Module],
    parameters: Mapping[str, inspect.Parameter],
    given: Mapping[str, Any],
) -> nn.Module:
    """Build a network from what its arguments mean."""
    arguments: dict[str, Any] = {"pretrained": False} if "pretrained" in parameters else {}
    for meaning, value in given.items():
        # Of several names, "channels" say, a class has one: its own argument "channels" means something else.
        arguments |= {word: value for word in MEANINGS[meaning] if word in parameters}
    required = [each.name for each in parameters.values() if each.default is each.empty and each.name not in arguments]
    arguments |= {each: REQUIRED[each] for each in required if each in REQUIRED}
    missing = [each for each in required if each not in REQUIRED]
    if missing:
        raise InputError(
            f"{name} needs the argument(s) {', '.join(missing)}, which do not follow from the data. Build it yourself "
            f"(from monai.networks.nets import {name.removeprefix(PREFIX)}) and pass it: network=module."
        )
    try:
        return build(**arguments)
    except OptionalImportError as error:
        raise _lacks_package(name, error) from error
    except Exception as error:
        shown = ", ".join(f"{each}={value!r}" for each, value in arguments.items())
        raise InputError(
            f"MONAI cannot build {name.removeprefix(PREFIX)}({shown}): {_first_line(error)}. Build it yourself and "
            "pass it: network=module."
        ) from error


def _any_size(
    name: str,
    make: Callable[[Sequence[int] | None], nn.Module],
    fixed: bool,
    channels: tuple[int, int],
    dims: int,
    size: Sequence[int] | None,
) -> nn.Module:
    """A segmentation network that takes images of any size; of a ``fixed`` size, if it is built for one."""
    if fixed and size is None:
        raise InputError(f"{name} is built for images of one size; these differ. Take another network.")
    network = None if fixed else make(None)
    for stride in STRIDES:
        if size is not None and fixed:
            lengths = whole_strides(size, stride)
            network = make(lengths)
        else:
            # The shortest that there will be, and an odd number of strides, which half the stride would not do for.
            lengths = [(3 if axis == 1 else 2) * stride for axis in range(dims)]
        assert network is not None
        wrong = _what_fails(name, network, (channels[0], *lengths), (channels[1], *lengths))
        if not wrong:
            return network if stride == 1 else AnySize(network, stride)
    raise InputError(
        f"{name} does not segment images of {channels[0]} channel(s), {dims} axes: {wrong}. Take another network, or "
        "build one and pass it: network=module."
    )


def _what_fails(name: str, network: nn.Module, shape: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    """Why a network does not turn images of this shape into that; empty = it does.

    It is tried in both modes, since norms refuse single pixels in training only, and in a copy, whose norms may follow
    what they see.
    """
    # Volumes are often learnt from one at a time, labels never.
    images = torch.zeros(2 if len(wanted) == 1 else 1, *shape)
    tried = deepcopy(network)
    for training in (False, True):
        try:
            with torch.no_grad(), torch.random.fork_rng():
                output = tried.train(training)(images)
        except OptionalImportError as error:
            raise _lacks_package(name, error) from error
        except Exception as error:
            return _first_line(error)
        if not isinstance(output, torch.Tensor):
            raise InputError(
                f"{name} gives a {type(output).__name__}, not class scores alone. Build a module that gives these, and "
                "pass it: network=module."
            )
        if tuple(output.shape) != (len(images), *wanted):
            return f"it gives {_times(output.shape[1:])} numbers, where {_times(wanted)} are needed"
    return ""


def _lacks_package(name: str, error: Exception) -> InputError:
    return InputError(f"{name} needs a package that is not installed: {_first_line(error)}. Install it with pip.")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _times(lengths: Sequence[int]) -> str:
    return "×".join(map(str, lengths))
