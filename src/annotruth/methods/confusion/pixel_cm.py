"""A confusion matrix per rater and pixel, predicted from the image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from annotruth.errors import InputError
from annotruth.methods.base import Batch, DataSpec, MethodModel, register
from annotruth.methods.confusion.global_cm import GlobalCM, WarmUpModel
from annotruth.nn import Confusion, FeaturePixelAnnotators, LowRankAnnotators, PixelAnnotators, PixelHeads, unet
from annotruth.validation import one_of

SHARED = 16
"""Features at every pixel from which truth and errors are read, where both share one network."""


class SharedFeaturesModel(WarmUpModel):
    """Truth and raters' errors are read from the same features, by a linear map each."""

    def __init__(self, shape: DataSpec) -> None:
        features = nn.Sequential(unet(shape.channels, SHARED, dims=shape.dims), nn.PReLU())
        head = (nn.Conv2d if shape.dims == 2 else nn.Conv3d)(SHARED, shape.classes, kernel_size=1)
        super().__init__(nn.Sequential(features, head), PixelHeads(SHARED, shape.raters, shape.classes), shape)

    def confusion(self, images: Tensor) -> Confusion:
        assert isinstance(self.truth, nn.Sequential)
        return self.annotators(self.truth[0](images))

    def rater_confusion(self, batch: Batch) -> Confusion:
        return self.confusion(batch.images)


@register
@dataclass(frozen=True)
class PixelCM(GlobalCM):
    """Raters err differently at different places, and the image says where.

    Options
    -------
    features : "own" gives the annotator model a network of its own; "shared" reads errors from the truth network's last
        features, which is smaller and works only with annotruth's own network
    others as global-cm
    """

    name = "pixel-cm"
    paper = "Zhang et al. 2020"
    summary = "a confusion matrix per rater and pixel, from the image"
    tasks = ("masks",)
    annotator_rate = 0.1  # slower than the truth model, or it explains ambiguous borders before the truth settles
    early_pace = 10.0  # as long as the vote says what is true, nothing is lost by haste

    features: Literal["own", "shared"] = "own"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.features, ("own", "shared"), "features")
        if self.rater_features and self.features == "shared":
            raise InputError("rater_features need features='own'.")

    def annotator_model(self, shape: DataSpec) -> nn.Module:
        if self.rater_features:
            return FeaturePixelAnnotators(
                shape.channels, shape.raters, shape.classes, shape.rater_columns, dims=shape.dims
            )  # fmt: skip
        return PixelAnnotators(shape.channels, shape.raters, shape.classes, dims=shape.dims)

    def build(self, shape: DataSpec, network: nn.Module | None = None) -> MethodModel:
        if self.features == "own":
            return super().build(shape, network)
        if network is not None:
            raise InputError("features='shared' works only without a network of your own; leave out one of them.")
        return SharedFeaturesModel(shape)

    def confusion(self, parts: MethodModel, images: Tensor) -> Confusion:
        return parts.confusion(images) if isinstance(parts, SharedFeaturesModel) else super().confusion(parts, images)


@register
@dataclass(frozen=True)
class PixelCMLowRank(GlobalCM):
    """As pixel-cm, with matrices of low rank, so that many classes fit into memory."""

    name = "pixel-cm-lowrank"
    paper = "Zhang et al. 2020, supplement"
    summary = "pixel-cm with low-rank matrices, for many classes"
    tasks = ("masks",)
    annotator_rate = 0.1
    early_pace = 10.0

    rank: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rank < 1:
            raise InputError(f"rank must be at least 1, not {self.rank}.")
        if self.rater_features:
            raise InputError("pixel-cm-lowrank takes no rater_features; pixel-cm and global-cm do.")

    def annotator_model(self, shape: DataSpec) -> nn.Module:
        return LowRankAnnotators(shape.channels, shape.raters, shape.classes, dims=shape.dims, rank=self.rank)
