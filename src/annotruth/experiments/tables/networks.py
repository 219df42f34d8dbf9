"""Which network, and which recipe: the comparison that chose the defaults, and what the defaults reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from monai.networks.nets import BasicUNet, UNet
from torch import nn

from annotruth.data.annotations import Annotations
from annotruth.experiments.core.columns import DICE
from annotruth.experiments.core.experiment import Experiment, Row
from annotruth.experiments.core.task import Scale
from annotruth.experiments.data import baselines
from annotruth.methods import Task
from annotruth.nn import AnySize, NetworkPlan, plan_network, unet
from annotruth.training import Segmenter

SEEDS = (10, 11, 12)
"""No other table uses them, so that no table is made with what was chosen on its own test data."""


def _basic_unet(channels: int, classes: int, plan: NetworkPlan) -> nn.Module:
    features = (16, 32, 64, 128, 256, 16)
    return AnySize(BasicUNet(2, channels, classes, features, norm=("instance", {"affine": True})), stride=16)


def _first_unet(channels: int, classes: int, plan: NetworkPlan) -> nn.Module:
    network = UNet(2, channels, classes, channels=(16, 32, 64), strides=(2, 2), num_res_units=1, norm="batch")
    return AnySize(network, stride=4)


def _changed(**changes: Any) -> Callable[[int, int, NetworkPlan], nn.Module]:
    return lambda channels, classes, plan: unet(channels, classes, plan=replace(plan, **changes))


NETWORKS: Mapping[str, Callable[[int, int, NetworkPlan], nn.Module]] = {
    "batch norm": _changed(norm="batch"),
    "residual blocks": _changed(residual=True),
    "deep supervision": _changed(deep_supervision=True),
    "BasicUNet": _basic_unet,
    "UNet of 0.1": _first_unet,
}
"""What the default network is compared with, made from channels, classes and the plan for the images."""


@dataclass(frozen=True)
class WithNetwork:
    """A segmenter whose network may be one of :data:`NETWORKS`, which is made when the images are there."""

    task: ClassVar[Task] = "masks"

    network: str = ""
    arguments: tuple[tuple[str, Any], ...] = ()

    def __call__(self, *, network: str = "", **arguments: Any) -> WithNetwork:
        return WithNetwork(network, tuple(arguments.items()))

    def fit(self, annotations: Annotations) -> Segmenter:
        """Learn as ``Segmenter`` does."""
        arguments = dict(self.arguments)
        if not self.network:
            return Segmenter(**arguments).fit(annotations)
        channels, *size = annotations.item_image(0).shape
        with torch.random.fork_rng():
            torch.manual_seed(arguments["seed"])
            network = NETWORKS[self.network](channels, len(annotations.classes), plan_network(size))
        return Segmenter(network=network, **arguments).fit(annotations)


COMPARISON = Experiment(
    name="networks",
    title="Which network: a U-Net planned by the images' size, and what it could be instead",
    task=baselines.baseline_task,
    settings={name: {"of": name} for name in ("lidc", "hippocampus", "acdc")},
    rows=(
        Row("clean", name="small (the default)"),
        Row("clean", name="without augmentation", training={"augment": False}),
        Row("clean", name="batches of 16", training={"batch_size": 16}),
        *(Row("clean", name=name, training={"network": name}) for name in NETWORKS),
    ),
    metrics=(DICE,),
    full=Scale({"train": 200, "test": 150}, {"max_epochs": 12}),
    quick=Scale({"train": 60, "test": 30}, {"max_epochs": 1}),
    seeds=SEEDS,
    learner=WithNetwork(),
    notes=(
        *baselines.NOTES,
        "All rows learn from 200 slices for 12 epochs, fewer than by default, so that two cores can compare them; what "
        "is not named is as by default. All widths begin with 16 channels.",
        "UNet of 0.1 is the default network of annotruth 0.1: MONAI's UNet with three levels, whose first convolution "
        "halves the image.",
    ),
    stand_in=baselines.STAND_IN,
)
