"""Pionono: every rater's way of drawing is a Gaussian in a common space, and every drawing a point of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.methods.base import Batch, DataSpec, Method, MethodModel
from annotruth.methods.inference import in_rounds
from annotruth.methods.needs import need_several_raters
from annotruth.methods.options import check_at_least
from annotruth.methods.protocols import PredictsRaters, Samples
from annotruth.methods.registry import register
from annotruth.nn import class_index, dice_loss, is_labelled, one_pixel_axis, unet
from annotruth.nn.noise import even_noise

FEATURES = 16
"""Channels of the U-Net's last features, and of the layers behind them."""
FIRST_SPREAD = 0.5
"""Standard deviation of a rater's points before anything was learnt; between raters it is that of the prior."""
MIN_DEVIATION = 1e-3


class RaterGaussians(nn.Module):
    """The truth model: features of the image, a Gaussian per rater, and layers that turn a point into a drawing."""

    noise: Tensor

    def __init__(
        self, spec: DataSpec, latent: int, prior_deviation: float, draws: int, network: nn.Module | None
    ) -> None:
        super().__init__()
        self.classes, self.prior_deviation = spec.classes, prior_deviation
        self.features: nn.Module = network if network is not None else nn.Sequential(
            unet(spec.channels, FEATURES, spec.dims, spec.network), nn.LeakyReLU()
        )  # fmt: skip
        self.means = nn.Parameter(prior_deviation * torch.randn(spec.raters, latent))
        self.spreads = nn.Parameter(torch.full((spec.raters, latent), math.log(math.expm1(FIRST_SPREAD))))
        self.from_features = nn.Conv1d(spec.classes if network is not None else FEATURES, FEATURES, kernel_size=1)
        self.from_latent = nn.Linear(latent, FEATURES, bias=False)
        self.head = nn.Sequential(
            nn.LeakyReLU(),
            nn.Conv1d(FEATURES, FEATURES, kernel_size=1),
            nn.LeakyReLU(),
            nn.Conv1d(FEATURES, spec.classes, 1),
        )
        self.register_buffer("noise", even_noise(draws, latent))

    def gaussians(self) -> Normal:
        """Where raters' points lie: (raters, latent)."""
        return Normal(self.means, F.softplus(self.spreads) + MIN_DEVIATION, validate_args=False)

    def joint(self, images: Tensor) -> Tensor:
        """What the features contribute where they meet a point: (batch, FEATURES, pixels)."""
        return self.from_features(one_pixel_axis(self.features(images), 2))

    def log_drawing(self, joint: Tensor, points: Tensor) -> Tensor:
        """Log-probabilities (batch, classes, pixels) of drawings from points (batch or 1, latent)."""
        return self.head(joint + self.from_latent(points)[:, :, None]).log_softmax(dim=1)

    def log_raters(self, images: Tensor) -> Iterator[Tensor]:
        """Log-probabilities (batch, classes, *spatial) of what each rater says, one rater after the other."""
        joint, raters = self.joint(images), self.gaussians()
        for mean, deviation in zip(raters.mean, raters.stddev):
            drawn = (self.log_drawing(joint, (mean + deviation * row)[None]) for row in self.noise)
            mixed = reduce(torch.logaddexp, drawn) - math.log(len(self.noise))
            yield mixed.view(len(images), self.classes, *images.shape[2:])

    def loss(self, images: Tensor, labels: Tensor, beta: float) -> tuple[Tensor, Tensor]:
        """The loss to minimise, and the negative log-likelihood of the drawings at points drawn for them.

        Each is per label given. One minus the drawings' Dice is part of the loss, too: by likelihood alone, small
        structures are learnt late or never. The divergence of the Gaussians from their prior counts ``beta`` times,
        once for every drawing, as each has a point of its own.
        """
        item, rater = is_labelled(labels, self.classes).flatten(2).any(dim=2).nonzero(as_tuple=True)
        drawn = one_pixel_axis(labels[item, rater], 1)
        raters = self.gaussians()
        own = Normal(raters.mean[rater], raters.stddev[rater], validate_args=False)
        log_drawn = self.log_drawing(self.joint(images)[item], own.rsample())
        given = is_labelled(drawn, self.classes)
        count = given.sum().clamp_min(1)
        said = log_drawn.gather(1, class_index(drawn, self.classes)[:, None])[:, 0]
        negative = -(said * given).sum() / count
        prior = Normal(torch.zeros_like(own.mean), self.prior_deviation, validate_args=False)
        loss = negative + dice_loss(log_drawn, drawn) + beta * kl_divergence(own, prior).sum() / count
        return loss, negative.detach()


class PiononoModel(MethodModel):
    """Raters' Gaussians; the truth is the mean of what all raters would draw."""

    truth: RaterGaussians

    def log_truth(self, images: Tensor) -> Tensor:
        logs = list(self.truth.log_raters(images))
        return reduce(torch.logaddexp, logs) - math.log(len(logs))


@register
@dataclass(frozen=True)
class Pionono(Samples, PredictsRaters, Method[PiononoModel]):
    """Raters draw from a Gaussian each, so that both how they differ and how far each varies are known.

    Nobody's drawings are thought better than another's: the prediction is the mean over all raters.

    Options
    -------
    latent : how many hidden numbers tell drawings apart
    beta : how much the divergence of raters' Gaussians from their prior counts; 1 is the evidence lower bound
    prior_deviation : how far apart raters are thought to be beforehand
    samples : how many points of a rater's Gaussian are taken for what the rater would draw
    """

    name = "pionono"
    paper = "Schmidt et al. 2023"
    summary = "a Gaussian latent per rater: what each would draw, and how that varies, averaged"
    tasks = ("masks",)

    latent: int = 8
    beta: float = 1.0
    prior_deviation: float = 2.0
    samples: int = 8

    def __post_init__(self) -> None:
        check_at_least(1, latent=self.latent, samples=self.samples)
        if self.beta < 0 or self.prior_deviation <= 0:
            raise InputError(
                f"beta must not be negative and prior_deviation must be above 0, not {self.beta} and "
                f"{self.prior_deviation}."
            )

    def check(self, annotations: Annotations) -> None:
        need_several_raters(annotations, self.name, "tells raters apart by what they draw", "prob-unet or majority")

    def build(self, spec: DataSpec, network: nn.Module | None = None) -> PiononoModel:
        truth = RaterGaussians(spec, self.latent, self.prior_deviation, self.samples, network)
        return PiononoModel(truth, self.annotator_model(spec))

    def loss(self, model: PiononoModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        return model.truth.loss(batch.images, batch.labels, self.beta)

    def rater_probabilities(self, model: PiononoModel, images: Tensor) -> Tensor:
        return torch.stack(list(model.truth.log_raters(images)), dim=1).exp()

    def sample(self, model: PiononoModel, images: Tensor, n: int, generator: torch.Generator, spec: DataSpec) -> Tensor:
        who = in_rounds(spec.raters, n, generator).to(images.device)
        raters, noise = model.truth.gaussians(), torch.randn(n, self.latent, generator=generator).to(images)
        points, joint = raters.mean[who] + raters.stddev[who] * noise, model.truth.joint(images)
        drawn = torch.stack([model.truth.log_drawing(joint, point[None]) for point in points])
        return drawn.exp().view(n, len(images), spec.classes, *images.shape[2:])
