"""The model of methods that are told how far to trust each rater: encoder and ConP, DivP, and their recurrence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from annotruth.errors import InputError, shorten
from annotruth.methods.base import DataSpec, MethodModel
from annotruth.nn import UNetEncoder, decay_and_add_, identity_scores, pad_end, row_probabilities, sum_over_processes
from annotruth.nn.backbones import crop_end, whole_strides
from annotruth.nn.prism import ConP, DivP, confidences, patched, unpatched, whole_patches

MIN_CONFIDENCE, MAX_CONFIDENCE = 0.1, 0.9
"""Range of the confidences that training begins with (eq. 14)."""
MEAN_DECAY = 0.95
"""Share of the raters' mean matrices that a step of the training keeps."""
START_CONFIDENCE = 0.5
"""Confidence in everybody that prediction begins with."""


Confidences = Mapping[str, float] | Sequence[float]
"""How far to trust raters: by name, the others 1; or one number for each."""


class Step(NamedTuple):
    """One recurrence.

    Attributes
    ----------
    log_truth : (batch, classes, *spatial) ConP's mask, as log-probabilities
    mask : (batch · patches, classes, pixels) the mask as DivP sees it
    scores : (batch, raters, classes, classes, *patches) of DivP's matrices
    matrices : (batch · patches, raters, classes, classes) the matrices
    """

    log_truth: Tensor
    mask: Tensor
    scores: Tensor
    matrices: Tensor

    def right(self) -> Tensor:
        """How probable each rater is to be right: (batch · patches, raters, pixels)."""
        return confidences(self.mask, self.matrices.detach())

    def confidences(self, trust: Tensor) -> Tensor:
        """Confidences (batch, raters, *spatial) that follow, where raters are trusted (batch, raters) besides."""
        per_patch = trust.repeat_interleave(len(self.mask) // len(trust), dim=0)
        return unpatched(self.right() * per_patch.unsqueeze(2), self.log_truth.shape[2:])


class Prism(nn.Module):
    """The truth model: a U-Net's encoder, and ConP. A network of the user's own adds its class scores to the image."""

    def __init__(self, spec: DataSpec, integration: str, network: nn.Module | None) -> None:
        super().__init__()
        self.network = network
        channels = spec.channels + (spec.classes if network is not None else 0)
        self.encoder = UNetEncoder(channels, spec.plan)
        self.conp = ConP(spec.raters, spec.classes, spec.plan, integration)
        self.stride = whole_patches(spec.plan)

    def features(self, images: Tensor) -> list[Tensor]:
        """Features of images (batch, channels, *spatial), padded; as far as they do not depend on confidences."""
        if self.network is not None:
            images = torch.cat([images, self.network(images)], dim=1)
        return self.conp.coarse(self.encoder(self.padded(images)))

    def padded(self, values: Tensor, fill: float = 0.0) -> Tensor:
        """Values (batch, channels, *spatial), filled up at their far ends to whole strides and whole patches."""
        return pad_end(values, self.padded_size(values), fill)

    def padded_size(self, values: Tensor) -> list[int]:
        """The spatial size that values (batch, channels, *spatial) are padded to."""
        return whole_strides(values.shape[2:], self.stride)


class PrismModel(MethodModel):
    """ConP and DivP in turns.

    Attributes
    ----------
    sums, mass : (raters, true, observed), (true, 1) DivP's matrices, weighted by how much of the true class there is,
        and these weights, summed over the patches of the last steps of the training
    """

    truth: Prism
    annotators: DivP
    sums: Tensor
    mass: Tensor

    def __init__(self, truth: Prism, annotators: DivP, recurrences: int) -> None:
        super().__init__(truth, annotators)
        self.recurrences = recurrences
        raters, classes = annotators.raters, annotators.classes
        self.register_buffer("sums", row_probabilities(identity_scores(classes), dim=1).repeat(raters, 1, 1))
        self.register_buffer("mass", torch.ones(classes, 1))

    def typical(self) -> Tensor:
        """Each rater's mean matrix (raters, true, observed).

        Fusion goes by these. With a matrix for every patch, labels that err alike in one place would be right there.
        """
        return self.sums / self.mass

    @torch.no_grad()
    def remember(self, step: Step) -> None:
        """Take a step's matrices into the means."""
        here = step.mask.sum(dim=2)
        sums = sum_over_processes(torch.einsum("nk,nrkz->rkz", here, step.matrices))
        mass = sum_over_processes(here.sum(dim=0).unsqueeze(1))
        decay_and_add_(self.sums, sums, MEAN_DECAY)
        decay_and_add_(self.mass, mass, MEAN_DECAY)

    def step(self, features: list[Tensor], confidence: Tensor) -> Step:
        """One recurrence. What DivP learns does not reach ConP, nor one recurrence the one before."""
        log_truth = self.truth.conp(features, confidence).log_softmax(dim=1)
        mask = log_truth.detach().exp()
        scores, mask = self.annotators(mask), patched(mask)
        matrices = row_probabilities(scores, dim=3).flatten(4).movedim(4, 1).flatten(0, 1)
        return Step(log_truth, mask, scores, matrices)

    def estimate(self, images: Tensor, recurrence: int | None = None, trust: Tensor | None = None) -> Step:
        """The state after a recurrence, counted from 0; by default the last of the training.

        ``trust`` (raters,) says how much each counts, 1 = as much as the others. Of masks whose sides are no multiples
        of the stride, what is padded remains.
        """
        features = self.truth.features(images)
        trust = trusted(trust, self.annotators.raters, images)
        confidence = everywhere(START_CONFIDENCE * trust, images).expand(-1, -1, *self.truth.padded_size(images))
        last = self.recurrences - 1 if recurrence is None else recurrence
        for _ in range(last):
            confidence = self.step(features, confidence).confidences(trust)
        return self.step(features, confidence)

    def log_truth(self, images: Tensor, recurrence: int | None = None, trust: Tensor | None = None) -> Tensor:
        return cropped(self.estimate(images, recurrence, trust).log_truth, images)


def trust_of(confidences: Confidences, raters: Sequence[str]) -> Tensor:
    """Confidences that a user gives, as trust (raters,) of mean 1; raters who are not named keep 1.

    Examples
    --------
    >>> trust_of({"ann": 2}, ["ann", "bob", "cy"])
    tensor([1.5000, 0.7500, 0.7500])
    """
    if isinstance(confidences, Mapping):
        strangers = sorted(set(confidences) - set(raters))
        if strangers:
            raise InputError(
                f"Confidences are given for {shorten(strangers)}, but the model was trained on {shorten(list(raters))}."
            )
        confidences = [confidences.get(name, 1.0) for name in raters]
    if len(confidences) != len(raters):
        raise InputError(
            f"{len(confidences)} confidences are given, but the model was trained on {len(raters)} raters: "
            f"{shorten(list(raters))}. Give one for each, or name the raters: {{{raters[0]!r}: 2}}."
        )
    values = np.asarray(confidences, dtype=np.float64)
    if not np.isfinite(values).all() or (values < 0).any() or not values.any():
        raise InputError(f"Confidences must be numbers of 0 or more, and not all 0; found {values.tolist()}.")
    return torch.from_numpy(values / values.mean()).float()


def trusted(trust: Tensor | None, raters: int, images: Tensor) -> Tensor:
    """Trust (raters,) for each item of a batch: (batch, raters); 1 where none is given."""
    trust = images.new_ones(raters) if trust is None else trust.to(images)
    return trust.expand(len(images), -1)


def everywhere(values: Tensor, like: Tensor) -> Tensor:
    """Values (batch, raters) with an axis of length 1 for each spatial axis of another tensor."""
    return values.view(*values.shape, *[1] * (like.ndim - 2))


def cropped(values: Tensor, images: Tensor) -> Tensor:
    """Values (..., *spatial) without what was padded to the images."""
    return crop_end(values, images.shape[2:])
