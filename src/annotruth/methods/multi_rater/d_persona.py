"""D-Persona: first a latent that covers all raters' drawings, then one query per rater that finds the rater's in it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from annotruth.data.annotations import Annotations
from annotruth.methods.base import Batch, DataSpec, Method, MethodModel
from annotruth.methods.needs import need_several_raters
from annotruth.methods.options import check_at_least, check_not_negative
from annotruth.methods.protocols import PredictsRaters, Samples, Stages
from annotruth.methods.registry import register
from annotruth.methods.warmup import check_share
from annotruth.nn import ProbabilisticUNet, class_index, is_labelled, one_pixel_axis
from annotruth.nn.labels import one_hot
from annotruth.nn.prob_unet import FEATURES

BOUND_SAMPLES = 10
"""Points of the prior whose drawings are held to the bounds in each step, as in the paper."""
MIN_PROBABILITY = 1e-6
"""Floor under probabilities, so that logarithms stay finite."""
QUERY_GAIN = 10.0
"""Factor of the queries, which makes them learn faster: they come late, when the learning rate falls already."""


class PersonalUNet(ProbabilisticUNet):
    """The truth model: a Probabilistic U-Net, and for every rater a query of the points of its prior."""

    def __init__(self, spec: DataSpec, latent: int, samples: int, network: nn.Module | None) -> None:
        super().__init__(spec.channels, spec.classes, spec.dims, latent, samples, network, spec.network)
        self.queries = nn.ModuleList(rater_query(latent) for _ in range(spec.raters))

    def forward(self, images: Tensor) -> Tensor:
        """Log-probabilities (batch, classes, *spatial) of the label that a rater picked at random would give."""
        return reduce(torch.logaddexp, self.log_raters(images)) - math.log(len(self.queries))

    def log_raters(self, images: Tensor) -> Iterator[Tensor]:
        """Log-probabilities (batch, classes, *spatial) of what each rater says, one rater after the other."""
        joint = self._joint(images)
        for points in self.personal_points(images, joint, self.noise).unbind(dim=1):
            yield self._log_drawing(joint, points).view(len(images), self.classes, *images.shape[2:])

    def personal_points(self, images: Tensor, joint: Tensor, noise: Tensor) -> Tensor:
        """Every rater's point (batch, raters, latent): a mean of points of the prior, weighed by the rater's query.

        Queries are compared with the ``noise`` (points, latent) that points are made from: axes along which the prior
        is wide would otherwise decide alone.
        """
        with torch.no_grad():
            prior = self.prior(images)
        queries = QUERY_GAIN * torch.stack([query(joint) for query in self.queries], dim=1)
        chosen = (queries @ noise.T).softmax(dim=2) @ noise
        return prior.mean[:, None] + prior.stddev[:, None] * chosen

    def bound_loss(self, images: Tensor, labels: Tensor) -> Tensor:
        """How far drawings from the prior, taken together, are from all raters' (batch, raters, *spatial)."""
        noise = torch.randn(BOUND_SAMPLES, self.noise.shape[1], device=images.device, dtype=images.dtype)
        drawn = torch.stack(list(self._log_drawings(images, noise))).exp()
        return bound_loss(one_pixel_axis(drawn, 3), one_pixel_axis(labels, 2))

    def personal_loss(self, images: Tensor, labels: Tensor) -> Tensor:
        """Negative log-likelihood of every rater's own drawings, per label given; it teaches the queries alone."""
        item, rater = is_labelled(labels, self.classes).flatten(2).any(dim=2).nonzero(as_tuple=True)
        drawn = one_pixel_axis(labels[item, rater], 1)
        with torch.no_grad():
            joint = self._joint(images)
        noise = torch.randn_like(self.noise) if self.training else self.noise
        points = self.personal_points(images, joint, noise)[item, rater]
        moved = joint[item] + F.linear(points, self.from_latent.weight.detach())[:, :, None]
        weights = {name: weight.detach() for name, weight in self.head.named_parameters()}
        log_drawn = functional_call(self.head, weights, moved).log_softmax(dim=1)
        said = log_drawn.gather(1, class_index(drawn, self.classes)[:, None])[:, 0]
        given = is_labelled(drawn, self.classes)
        return -(said * given).sum() / given.sum().clamp_min(1)


def rater_query(latent: int) -> nn.Module:
    """From features (batch, FEATURES, pixels) to a query (batch, latent): at first, of all points alike."""
    last = nn.Linear(FEATURES, latent)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    features = nn.Conv1d(FEATURES, FEATURES, kernel_size=1)
    return nn.Sequential(features, nn.LeakyReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), last)


def bound_loss(drawn: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the drawings' pixelwise most and least with union and intersection of the raters' masks.

    Where somebody did not label a pixel, the union may be larger and the intersection smaller than is known: then
    drawings must reach what is known of them, and may go beyond.

    Parameters
    ----------
    drawn : (samples, batch, classes, pixels) probabilities
    labels : (batch, raters, pixels), 255 = not labelled

    Returns
    -------
    scalar, the mean over both bounds, all classes, and the pixels that somebody labelled

    Examples
    --------
    Two raters disagree on a pixel: two drawings that do so are right, two that both are unsure are not.

    >>> labels = torch.tensor([[[0], [1]]])
    >>> disagreeing, unsure = torch.eye(2).view(2, 1, 2, 1), torch.full((2, 1, 2, 1), 0.5)
    >>> bound_loss(disagreeing, labels) == 0, bound_loss(unsure, labels)
    (tensor(True), tensor(0.6931))
    """
    classes = drawn.shape[2]
    given = is_labelled(labels, classes)
    marked = one_hot(labels, classes, dim=2)
    by_some, not_by_some = marked.amax(dim=1), (given[:, :, None].to(marked) - marked).amax(dim=1)
    by_all = given.all(dim=1)[:, None].to(drawn)
    most, least = drawn.amax(dim=0), drawn.amin(dim=0)
    said = by_some * _log(most) + by_all * (1 - by_some) * _log(1 - most)
    said = said + not_by_some * _log(1 - least) + by_all * (1 - not_by_some) * _log(least)
    return -said.sum() / (2 * classes * given.any(dim=1).sum().clamp_min(1))


def _log(probabilities: Tensor) -> Tensor:
    return probabilities.clamp_min(MIN_PROBABILITY).log()


class DPersonaModel(MethodModel):
    """A latent for all drawings and every rater's query; the truth is the mean of what all raters would draw."""

    truth: PersonalUNet


@register
@dataclass(frozen=True)
class DPersona(Stages, Samples, PredictsRaters, Method[DPersonaModel]):
    """All raters' drawings lie in one latent, and each rater's own can be found there.

    Nobody's drawings are thought better than another's: the prediction is the mean over all raters.

    Simplified: the paper's posterior is shown all raters' masks at once, its losses are of Dice, and its queries are
    networks of several layers. Here a posterior is that of one drawing, so that raters may be missing.

    It gains where raters differ in habit: what each would draw is told better than by one mask for all. Drawings at
    random, rater unknown, were no nearer to the raters' on digits than those of prob-unet.

    Options
    -------
    latent : how many hidden numbers tell drawings apart
    beta : how much the divergence of the posterior from the prior counts; 1 is the evidence lower bound
    bound : how much it counts that drawings together reach from the raters' intersection to their union
    stage_one : share of the training in which the latent is learnt; raters' queries are learnt afterwards
    samples : how many points of the prior a rater's own is found among
    """

    name = "d-persona"
    paper = "Wu et al. 2024"
    summary = "one latent that covers all drawings, then a query of it for every rater: what each would draw, averaged"
    tasks = ("masks",)

    latent: int = 6
    beta: float = 1.0
    bound: float = 0.5
    stage_one: float = 0.6
    samples: int = 100

    def __post_init__(self) -> None:
        check_at_least(1, latent=self.latent, samples=self.samples)
        check_not_negative(beta=self.beta, bound=self.bound)
        check_share("stage_one", self.stage_one)

    def check(self, annotations: Annotations) -> None:
        need_several_raters(annotations, self.name, "tells raters apart by what they draw", "prob-unet or majority")

    def build(self, spec: DataSpec, network: nn.Module | None = None) -> DPersonaModel:
        return DPersonaModel(PersonalUNet(spec, self.latent, self.samples, network), self.annotator_model(spec))

    def objective_is_final(self, model: DPersonaModel, progress: float) -> bool:
        return progress >= self.stage_one

    def loss(self, model: DPersonaModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        if progress >= self.stage_one:
            loss = model.truth.personal_loss(batch.images, batch.labels)
            return loss, loss.detach()
        loss, likelihood = model.truth.loss(batch.images, batch.labels, self.beta)
        return loss + self.bound * model.truth.bound_loss(batch.images, batch.labels), likelihood

    def rater_probabilities(self, model: DPersonaModel, images: Tensor) -> Tensor:
        return torch.stack(list(model.truth.log_raters(images)), dim=1).exp()

    def sample(
        self, model: DPersonaModel, images: Tensor, n: int, generator: torch.Generator, spec: DataSpec
    ) -> Tensor:
        noise = torch.randn(n, self.latent, generator=generator).to(images)
        return model.truth.drawings(images, noise)
