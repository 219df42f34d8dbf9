"""One confusion matrix per rater, learnt together with the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor, nn

from annotruth.data.annotations import Annotations
from annotruth.methods.anchor import Anchored, Foretells
from annotruth.methods.base import Batch, DataSpec, MethodModel
from annotruth.methods.protocols import Prepares, TakesRaterFeatures
from annotruth.methods.rater_features import check_features, feature_names, tell_features
from annotruth.methods.registry import register
from annotruth.methods.warmup import CONSENSUS_SHARE, WarmUp, WarmUpModel, check_warmup
from annotruth.nn import DrawingAnnotators, FeatureAnnotators, GlobalAnnotators
from annotruth.validation import one_of


@register
@dataclass(frozen=True)
class GlobalCM(Prepares, TakesRaterFeatures, Foretells):
    """Each rater errs the same way everywhere.

    Options
    -------
    trace_weight : how strongly raters are made out to be as unreliable as the labels allow; None = as strongly as the
        likelihood of held-out labels allows (``methods.warmup.TraceRule``)
    trace : which diagonal entries count, "posterior" or "plain" (see ``nn.noisy_label_loss``)
    warmup : "drawings" = learn to foretell everybody's drawings, then take for true those that foretell the others'
        best (``methods.anchor``); a number = weigh raters by their consensus for this share of the training, before
        errors are learnt together with the truth, which is also done with ``rater_features``
    rater_features : names of what is known of every rater (``rater_info``, or raters in dataset.json), a number or a
        word each, that may foretell errors: ("years", "site") or "years,site". Then a new rater has an expected matrix
    """

    name = "global-cm"
    paper = "Tanno et al. 2019; Zhang et al. 2020, rebuttal"
    summary = "a network, and one confusion matrix per rater"
    tasks = ("masks",)
    model_class = WarmUpModel
    learns_annotators = True
    shrinks_trace = True
    annotator_rate = 3.0  # a matrix has few parameters and must keep pace with the network

    trace_weight: float | None = None
    trace: Literal["posterior", "plain"] = "posterior"
    warmup: float | Literal["drawings"] = "drawings"
    rater_features: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.rater_features != ():
            object.__setattr__(self, "rater_features", feature_names(self.rater_features))
        one_of(self.trace, ("posterior", "plain"), "trace")
        check_warmup(self.name, self.warmup, ("drawings",))

    def check(self, annotations: Annotations) -> None:
        if self.rater_features:
            check_features(annotations, self.rater_features)

    @property
    def foretells(self) -> bool:
        """Whether drawings are foretold first."""
        return self.warmup == "drawings" and not self.rater_features

    def annotator_model(self, spec: DataSpec) -> nn.Module:
        if self.foretells:
            return DrawingAnnotators(
                spec.channels, spec.raters, spec.classes, spec.dims, plan=spec.network, per_pixel=False
            )
        if self.rater_features:
            return FeatureAnnotators(spec.raters, spec.classes, spec.rater_columns)
        return GlobalAnnotators(spec.raters, spec.classes)

    def prepare(self, model: MethodModel, annotations: Annotations) -> None:
        if self.rater_features:
            tell_features(model.annotators, annotations, self.rater_features)

    @property
    def stages(self) -> Anchored | WarmUp:
        if self.foretells:
            return Anchored(self.trace_weight, self.trace, self.annotator_rate)
        share = CONSENSUS_SHARE if isinstance(self.warmup, str) else self.warmup
        return WarmUp(share, self.trace_weight, self.trace)

    def loss(self, model: Any, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        return self.stages.loss(model, batch, progress)
