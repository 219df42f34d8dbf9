"""A confusion matrix per rater and pixel, predicted from the image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from torch import Tensor, nn

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.methods.anchor import Anchored, Foretells
from annotruth.methods.base import Batch, DataSpec, MethodModel
from annotruth.methods.protocols import Prepares, Stages, TakesRaterFeatures
from annotruth.methods.rater_features import check_features, feature_names, tell_features
from annotruth.methods.registry import register
from annotruth.methods.warmup import CONSENSUS_SHARE, FIRST_WEIGHT, WarmUp, WarmUpModel, check_warmup
from annotruth.nn import (
    AnySize,
    Confusion,
    DrawingAnnotators,
    FeaturePixelAnnotators,
    PixelAnnotators,
    PixelHeads,
    UNetDecoder,
    noisy_label_loss,
    unet,
)
from annotruth.nn.backbones import UNet, crop_end
from annotruth.validation import one_of

SHARED_FEATURES = 16
"""Features at every pixel from which truth and errors are read, where both share one network."""
EARLY_PACE = 10.0
"""How much faster errors are learnt before truth and errors are learnt together: as long as the vote says what is true,
nothing is lost by haste."""


@dataclass(frozen=True)
class TraceFirst(Stages):
    """Zhang et al.'s own recipe: the trace is maximised at first, which holds matrices at the identity, then minimised.

    The annotator model learns as fast as the truth model.
    """

    trace_weight: float
    share: float = 1 / 8

    def annotator_pace(self, model: WarmUpModel, progress: float) -> float:
        return 1 / PixelCM.annotator_rate

    def loss(self, model: WarmUpModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        """The sum of the marginals and of the trace."""
        log_truth, confusion = model.truth_and_confusion(batch)
        weight = self.trace_weight if progress >= self.share else -self.trace_weight
        return noisy_label_loss(log_truth, confusion(), batch.labels, weight, "plain")


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

    def truth_and_confusion(self, batch: Batch) -> tuple[Tensor, Callable[[], Confusion]]:
        features = self.truth[0](batch.images)
        return self.truth[1](features).log_softmax(dim=1), lambda: self.annotators(features, batch.raters)


class SharedEncoderModel(WarmUpModel):
    """One encoder, whose features a decoder turns into the truth, and a second one into the raters' errors.

    The encoder learns from both, as the networks of Zhang et al. do that share one.
    """

    truth: AnySize

    def __init__(self, spec: DataSpec) -> None:
        super().__init__(unet(spec.channels, spec.classes, spec.dims, spec.network), DecoderAnnotators(spec), spec)

    def confusion(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        return self.annotators(self._unet.encoder(self.truth.padded(images)), raters, images.shape[2:])

    def truth_and_confusion(self, batch: Batch) -> tuple[Tensor, Callable[[], Confusion]]:
        size, features = batch.images.shape[2:], self._unet.encoder(self.truth.padded(batch.images))
        log_truth = crop_end(self._unet.decoder(features), size).log_softmax(dim=1)
        return log_truth, lambda: self.annotators(features, batch.raters, size)

    @property
    def _unet(self) -> UNet:
        return cast("UNet", self.truth.network)


class DecoderAnnotators(nn.Module):
    """One matrix per rater and pixel, read from an encoder's features of every stage by a decoder of its own."""

    def __init__(self, spec: DataSpec) -> None:
        super().__init__()
        features = max(SHARED_FEATURES, spec.raters * spec.classes)  # as many as of a network of its own
        self.decoder = nn.Sequential(UNetDecoder(features, spec.plan), nn.PReLU())
        self.heads = PixelHeads(features, spec.raters, spec.classes)

    def forward(self, features: list[Tensor], raters: Tensor | None, size: Sequence[int]) -> Confusion:
        """Matrices of all raters, or of some (their positions), for images of this size before they were padded."""
        return self.heads(crop_end(self.decoder(features), size), raters)


@register
@dataclass(frozen=True)
class PixelCM(Prepares, TakesRaterFeatures, Foretells):
    """Raters err differently at different places, and the image says where.

    Options
    -------
    trace_weight, trace, rater_features : as of global-cm
    warmup : "drawings" = learn to foretell everybody's drawings, then take for true those that foretell the others'
        best (``methods.anchor``); "trace" = Zhang et al.'s own start, matrices held at the identity; a number = as of
        global-cm, weighing raters by their consensus, which is also done with ``rater_features`` and with other
        ``features`` than "own"
    features : "own" gives the annotator model a small network of its own; "encoder" a decoder of its own, behind the
        encoder of the truth network; "shared" reads errors from the truth network's last features. The last two work
        only with annotruth's own network
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
    warmup: float | Literal["drawings", "trace"] = "drawings"
    rater_features: tuple[str, ...] = ()
    features: Literal["own", "encoder", "shared"] = "own"

    def __post_init__(self) -> None:
        if self.rater_features != ():
            object.__setattr__(self, "rater_features", feature_names(self.rater_features))
        one_of(self.trace, ("posterior", "plain"), "trace")
        check_warmup(self.name, self.warmup, ("drawings", "trace"))
        one_of(self.features, ("own", "encoder", "shared"), "features")
        if self.rater_features and self.features != "own":
            raise InputError("rater_features need features='own'.")

    def check(self, annotations: Annotations) -> None:
        if self.rater_features:
            check_features(annotations, self.rater_features)

    @property
    def foretells(self) -> bool:
        """Whether drawings are foretold first."""
        return self.warmup == "drawings" and self.features == "own" and not self.rater_features

    def annotator_model(self, spec: DataSpec) -> nn.Module:
        if self.foretells:
            return DrawingAnnotators(spec.channels, spec.raters, spec.classes, spec.dims, plan=spec.network)
        if self.rater_features:
            return FeaturePixelAnnotators(
                spec.channels, spec.raters, spec.classes, spec.rater_columns, spec.dims, plan=spec.network
            )
        return PixelAnnotators(spec.channels, spec.raters, spec.classes, spec.dims, plan=spec.network)

    def build(self, spec: DataSpec, network: nn.Module | None = None) -> Any:
        if self.features == "own":
            return super().build(spec, network)
        if network is not None:
            raise InputError(
                f"features={self.features!r} works only with annotruth's own network, not with another or one of your "
                "own; leave out one of them."
            )
        return SharedEncoderModel(spec) if self.features == "encoder" else SharedFeaturesModel(spec)

    def prepare(self, model: MethodModel, annotations: Annotations) -> None:
        if self.rater_features:
            tell_features(model.annotators, annotations, self.rater_features)

    @property
    def stages(self) -> Anchored | WarmUp | TraceFirst:
        if self.foretells:
            return Anchored(self.trace_weight, self.trace, self.annotator_rate)
        if self.warmup == "trace":
            return TraceFirst(FIRST_WEIGHT if self.trace_weight is None else self.trace_weight)
        share = CONSENSUS_SHARE if isinstance(self.warmup, str) else self.warmup
        return WarmUp(share, self.trace_weight, self.trace, pace=EARLY_PACE)

    def loss(self, model: Any, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        return self.stages.loss(model, batch, progress)
