"""Which network, and which recipe: the comparison that chose the defaults, and what the defaults reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from monai.networks.nets import BasicUNet, UNet
from torch import nn

from annotruth.data.annotations import Annotations
from annotruth.experiments.core.columns import CM_RMSE, DICE, ECE, HD95_PIXELS, LOWEST_DICE, SURFACE_DICE_PIXELS, Column
from annotruth.experiments.core.experiment import Experiment, Row
from annotruth.experiments.core.findings import at_least
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


NOTES = (
    "lidc: nodules in CT crops of 64×64 pixels, the truth is the readers' consensus (at least half of them); "
    "hippocampus: MR slices of 64×48 pixels, two parts; acdc: three structures of the heart in MR slices, their middle "
    "at half resolution, 56×56 pixels. Held-out slices are of other patients.",
)

COMPARISON = Experiment(
    name="networks",
    title="Which network: a U-Net planned by the images' size, and what it could be instead",
    task=baselines.baseline_task,
    settings={name: {"of": name} for name in ("lidc", "hippocampus", "acdc")},
    rows=(
        Row("clean", name="small (the default)"),
        Row("clean", name="in 32 bits", training={"precision": "full"}),
        Row("clean", name="without augmentation", training={"augment": False}),
        *(Row("clean", name=name, training={"network": name}) for name in NETWORKS),
    ),
    metrics=(DICE,),
    full=Scale({"train": 120, "test": 100}, {"max_epochs": 12}),
    quick=Scale({"train": 60, "test": 30}, {"max_epochs": 1}),
    seeds=SEEDS,
    learner=WithNetwork(),
    notes=(
        *NOTES,
        "All rows learn from 120 slices for 12 epochs, fewer than by default, so that two cores can compare them; what "
        "is not named is as by default. All widths begin with 16 channels.",
        "The default computes in bfloat16 where the processor is quick at it. Its seconds, and those in 32 bits, are "
        "of 2026-11-20, beside other work and with pauses; `python -m benchmarks.training` compares them.",
        "UNet of 0.1 is the default network of annotruth 0.1: MONAI's UNet with three levels, whose first convolution "
        "halves the image.",
    ),
    stand_in=baselines.STAND_IN,
)


ANNOTATORS = Experiment(
    name="networks-annotators",
    title="Which network for the raters' errors: one of its own, or the truth network's encoder or features",
    task=baselines.baseline_task,
    settings={name: {"of": name} for name in ("lidc", "hippocampus")},
    rows=(
        Row("pixel-cm", name="own network, foretells drawings (the default)"),
        Row("pixel-cm", {"warmup": 0.4}, name="own network"),
        Row("pixel-cm", {"features": "encoder"}, name="the truth network's encoder, own decoder"),
        Row("pixel-cm", {"features": "shared"}, name="the truth network's last features"),
    ),
    metrics=(DICE, CM_RMSE),
    full=Scale({"train": 120, "test": 100}, {"max_epochs": 12}),
    quick=Scale({"train": 60, "test": 30}, {"max_epochs": 1}),
    seeds=SEEDS,
    notes=(
        *NOTES,
        "120 slices, 12 epochs. Hippocampus: four simulated raters (good, over, under, wrong) draw every slice. "
        "All but the first row take raters at their consensus for the first 40 % of the training, which all three ways "
        "allow; the first is the default, which needs a network of its own.",
    ),
    stand_in=baselines.STAND_IN,
)


def _defaults(
    name: str,
    title: str,
    method: str,
    of: tuple[str, ...],
    also: tuple[Column, ...] = (),
    beside: tuple[Row, ...] = (),
    **more: Any,
) -> Experiment:
    """What a plain network reaches on some data sets when nothing but the method is named."""
    return Experiment(
        name=name,
        title=title,
        task=baselines.baseline_task,
        settings={each: {"of": each} for each in of},
        rows=(Row(method), *beside),
        metrics=(DICE, SURFACE_DICE_PIXELS, HD95_PIXELS, ECE, *also),
        full=Scale(),
        quick=Scale({"train": 10}, {"max_epochs": 1}),
        seeds=SEEDS,
        stand_in=baselines.STAND_IN,
        **more,
    )


BY_TRUTH = _defaults(
    "baselines-truth",
    "A plain network with all defaults, taught the truth of slices",
    "clean",
    ("hippocampus", "acdc"),
    beside=(Row("clean", name="with deep supervision", training={"deep_supervision": True}),),
    findings=(at_least("clean", "dice", {"hippocampus": 0.86, "acdc": 0.85}),),
    notes=NOTES,
)
VOLUMES = _defaults(
    "baselines-volumes",
    "A plain network with all defaults, taught the truth of volumes",
    "clean",
    ("hippocampus volumes",),
    also=(LOWEST_DICE,),
    findings=(
        at_least("clean", "dice", {"hippocampus volumes": 0.86}, every_seed=True),
        at_least("clean", "lowest_dice", {"hippocampus volumes": 0.5}, every_seed=True),
    ),
    paper={"hippocampus volumes": {"clean": {"dice": 0.895}}},
    notes=(
        "40 volumes of 48×64×48 voxels to learn from, 39 held out. The figure beside it is nnU-Net's on the "
        "Decathlon's own test volumes (0.90 and 0.89), learnt from 260 volumes.",
        "The lowest Dice of a part in any of the held-out volumes tells whether the two parts were ever taken for each "
        "other: it would be near 0.",
    ),
)
PHOTOGRAPHS = _defaults(
    "baselines-photographs",
    "A plain network with all defaults, taught the first observer's vessels",
    "clean",
    ("drive",),
    paper={"drive": {"clean": {"dice": 0.8157}}},
    notes=(
        "14 photographs of 584×565 pixels to learn from, 6 held out, all of DRIVE's test set; the first observer is "
        "the truth. The figure beside it is of a U-Net on DRIVE's own split, 20 and 20 photographs.",
    ),
)
BY_VOTE = _defaults(
    "baselines-vote",
    "A plain network with all defaults, taught the majority vote of radiologists",
    "majority",
    ("lidc", "lidc, 300 slices"),
    findings=(at_least("majority", "dice", {"lidc": 0.74}),),
    notes=(
        *NOTES,
        "lidc: all slices of three quarters of the patients, some 630; 300 slices are what other tables learn from. "
        "Where readers are tied, the vote says nothing and the reference nodule.",
    ),
)
FEW = _defaults(
    "baselines-few",
    "A plain network with all defaults, taught the majority vote on few large pictures",
    "majority",
    ("cfos", "kidney"),
    notes=(
        "cfos: tiles of 128×128 pixels of microscope pictures by five experts; the reference is the authors' own "
        "estimate by STAPLE from the same masks, against which the experts' own have a Dice of 0.41 to 0.82. No figure "
        "of a plain network on such tiles is known to us.",
        "kidney: 16 CT slices of 497×497 pixels by three raters to learn from, 4 held out of the same four people, the "
        "reference is what two of three drew. Wu et al. 2022 report soft Dice of 0.71 to 0.77 on cases and references "
        "that are not public.",
    ),
)
