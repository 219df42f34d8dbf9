"""A confusion matrix per rater and pixel, predicted from the image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.methods.base import Batch, DataSpec, Method
from annotruth.methods.protocols import Prepares, TakesRaterFeatures
from annotruth.methods.rater_features import check_features, feature_names, tell_features
from annotruth.methods.registry import register
from annotruth.methods.warmup import WarmUp, WarmUpModel, check_share
from annotruth.nn import Confusion, FeaturePixelAnnotators, PixelAnnotators, PixelHeads, unet
from annotruth.validation import one_of

SHARED_FEATURES = 16
"""Features at every pixel from which truth and errors are read, where both share one network."""
EARLY_PACE = 10.0
"""How much faster errors are learnt before truth and errors are learnt together: as long as the vote says what is true,
nothing is lost by haste."""


class SharedFeaturesModel(WarmUpModel):
    """Truth and raters' errors are read from the same features, by a linear map each."""

    truth: nn.Sequential

    def __init__(self, spec: DataSpec) -> None:
        features = nn.Sequential(unet(spec.channels, SHARED_FEATURES, spec.dims, spec.network), nn.PReLU())
        head = (nn.Conv2d if spec.dims == 2 else nn.Conv3d)(SHARED_FEATURES, spec.classes, kernel_size=1)
        annotators = PixelHeads(SHARED_FEATURES, spec.raters, spec.classes)
        super().__init__(nn.Sequential(features, head), annotators, spec)

    def confusion(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        return self.annotators(self.truth[0](images), raters)


@register
@dataclass(frozen=True)
class PixelCM(Prepares, TakesRaterFeatures, Method[WarmUpModel]):
    """Raters err differently at different places, and the image says where.

    Options
    -------
    trace_weight, trace, warmup, rater_features : as of global-cm
    features : "own" gives the annotator model a network of its own; "shared" reads errors from the truth network's last
        features, which is smaller and works only with annotruth's own network
    """

    name = "pixel-cm"
    paper = "Zhang et al. 2020"
    summary = "a network, and a confusion matrix per rater and pixel from the image"
    tasks = ("masks",)
    model_class = WarmUpModel
    learns_annotators = True
    shrinks_trace = True
    annotator_rate = 0.1  # slower than the truth model, or it explains ambiguous borders before the truth settles

    trace_weight: float | None = None
    trace: Literal["posterior", "plain"] = "posterior"
    warmup: float = 0.4
    rater_features: tuple[str, ...] = ()
    features: Literal["own", "shared"] = "own"

    def __post_init__(self) -> None:
        if self.rater_features != ():
            object.__setattr__(self, "rater_features", feature_names(self.rater_features))
        one_of(self.trace, ("posterior", "plain"), "trace")
        check_share("warmup", self.warmup)
        one_of(self.features, ("own", "shared"), "features")
        if self.rater_features and self.features == "shared":
            raise InputError("rater_features need features='own'.")

    def check(self, annotations: Annotations) -> None:
        if self.rater_features:
            check_features(annotations, self.rater_features)

    def annotator_model(self, spec: DataSpec) -> nn.Module:
        if self.rater_features:
            return FeaturePixelAnnotators(
                spec.channels, spec.raters, spec.classes, spec.rater_columns, spec.dims, plan=spec.network
            )
        return PixelAnnotators(spec.channels, spec.raters, spec.classes, spec.dims, plan=spec.network)

    def build(self, spec: DataSpec, network: nn.Module | None = None) -> WarmUpModel:
        if self.features == "own":
            return super().build(spec, network)
        if network is not None:
            raise InputError("features='shared' works only without a network of your own; leave out one of them.")
        return SharedFeaturesModel(spec)

    def prepare(self, model: WarmUpModel, annotations: Annotations) -> None:
        if self.rater_features:
            tell_features(model.annotators, annotations, self.rater_features)

    @property
    def stages(self) -> WarmUp:
        return WarmUp(self.warmup, self.trace_weight, self.trace, pace=EARLY_PACE)

    def loss(self, model: WarmUpModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        return self.stages.loss(model, batch, progress)
