"""MrPrism: a mask from confidences in the raters, confidences from the mask, again and again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotruth.annotations import Annotations
from annotruth.errors import InputError, shorten
from annotruth.methods.base import Batch, Method, Parts, Shape, register
from annotruth.nn import Confusion, PixelConfusion, is_given
from annotruth.nn.prism import PATCH, ConP, DivP, PrismEncoder, padded, patched, unpatched
from annotruth.nn.prism_fusion import RULES, Rule, confidences, fuse, opinions, said, shares
from annotruth.nn.prism_integration import INTEGRATIONS
from annotruth.nn.prism_losses import multi_head_loss, shuffle_loss, ssim_loss
from annotruth.nn.rows import row_probabilities
from annotruth.validation import MISSING_PIXEL, one_of

LOWEST, HIGHEST, NOISE = 0.1, 0.9, 0.2
"""Range of the confidences that training begins with, and the deviation of what is added at each pixel (eq. 14)."""
START = 0.5
"""Confidence in everybody that prediction begins with."""
CUT = 0.5
"""What a head finds more probable than this, its rater is thought to say."""
EVEN = 0.5
"""Share of the items on which training, too, begins with even confidences."""


Confidences = Mapping[str, float] | Sequence[float]
"""How far to trust raters: by name, the others 1; or one number for each."""


class Step(NamedTuple):
    """One recurrence.

    Attributes
    ----------
    log_truth : (batch, classes, *spatial) ConP's mask, as log-probabilities
    scores : (batch, raters, classes, classes, *patches) of DivP's matrices
    matrices : (batch · patches, raters, classes, classes) the matrices
    confidences : (batch, raters, *spatial) that follow for each rater
    """

    log_truth: Tensor
    scores: Tensor
    matrices: Tensor
    confidences: Tensor


class Prism(nn.Module):
    """The truth model: an encoder, and ConP. A network of the user's own adds its class scores to the image."""

    def __init__(self, shape: Shape, integration: str, network: nn.Module | None) -> None:
        super().__init__()
        self.network = network
        channels = shape.channels + (shape.classes if network is not None else 0)
        self.encoder = PrismEncoder(channels, shape.dims)
        self.conp = ConP(shape.raters, shape.classes, shape.dims, integration)

    def features(self, images: Tensor) -> list[Tensor]:
        """Features of images (batch, channels, *spatial), padded to a multiple of the stride."""
        if self.network is not None:
            images = torch.cat([images, self.network(images)], dim=1)
        return self.encoder(padded(images, 0.0))


class PrismParts(Parts):
    """ConP and DivP in turns."""

    truth: Prism
    annotators: DivP

    def __init__(self, truth: Prism, annotators: DivP, recurrences: int) -> None:
        super().__init__(truth, annotators)
        self.recurrences = recurrences

    def step(self, features: list[Tensor], confidence: Tensor, trust: Tensor) -> Step:
        """One recurrence. What DivP learns does not reach ConP, nor one recurrence the one before."""
        log_truth = self.truth.conp(features, confidence).log_softmax(dim=1)
        mask = log_truth.detach().exp()
        scores = self.annotators(mask)
        matrices = row_probabilities(scores, dim=3).flatten(4).movedim(4, 1).flatten(0, 1)
        right = unpatched(confidences(patched(mask), matrices.detach()), mask.shape[2:])
        return Step(log_truth, scores, matrices, right * everywhere(trust, right))

    def estimate(self, images: Tensor, recurrence: int | None = None, trust: Tensor | None = None) -> Step:
        """The state after a recurrence, counted from 0; by default the last of the training.

        ``trust`` (raters,) says how much each counts, 1 = as much as the others. Of masks whose sides are no multiples
        of the stride, what is padded remains.
        """
        features = self.truth.features(images)
        trust = trusted(trust, self.annotators.raters, images)
        confidence = everywhere(START * trust, images).expand(-1, -1, *padded(images, 0.0).shape[2:])
        last = self.recurrences - 1 if recurrence is None else recurrence
        for _ in range(last):
            confidence = self.step(features, confidence, trust).confidences
        return self.step(features, confidence, trust)

    def log_truth(self, images: Tensor, recurrence: int | None = None, trust: Tensor | None = None) -> Tensor:
        return cropped(self.estimate(images, recurrence, trust).log_truth, images)


@dataclass(frozen=True)
class Confident(Method):
    """Base of the methods that can be told whom to trust when they predict."""

    def asked(
        self, raters: Sequence[str], recurrence: int | None = None, confidences: Confidences | None = None
    ) -> dict[str, Any]:
        how = super().asked(raters, recurrence)
        return how if confidences is None else {**how, "trust": trust_of(confidences, raters)}


@register
@dataclass(frozen=True)
class MrPrism(Confident):
    """Confidences in the raters give a mask of the image, the mask gives confidences, and so on.

    Options
    -------
    recurrences : how many times, in training and in prediction
    fusion : how labels are fused by confidences: "bayes", "weights", or "literal", the paper's equation as it stands,
        which inverts them (see ``nn.prism_fusion``)
    integration : how confidences come into the decoder: "attention", "concat" or "convlstm"
    head_loss : what DivP learns from: "multi-head", how likely its heads find their own raters' labels; "shuffle", the
        paper's, how like the mask the fusion of its own raters is, and how like the labels' under shuffled confidences;
        or "both". Only the first makes a matrix say how often a rater errs
    shuffle_weight, shuffles : how much shuffled fusions count, and how often confidences are dealt out anew
    """

    name = "mrprism"
    paper = "Wu et al. 2022"
    summary = "a mask from confidences in raters, confidences from the mask, recurrently"
    tasks = ("masks",)
    learns_annotators = True

    recurrences: int = 3
    fusion: Rule = "bayes"
    integration: Literal["attention", "concat", "convlstm"] = "attention"
    head_loss: Literal["multi-head", "shuffle", "both"] = "multi-head"
    shuffle_weight: float = 0.3
    shuffles: int = 3

    def __post_init__(self) -> None:
        one_of(self.fusion, RULES, "fusion")
        one_of(self.integration, tuple(INTEGRATIONS), "integration")
        for option in ("recurrences", "shuffles"):
            if getattr(self, option) < 1:
                raise InputError(f"{option} must be at least 1, not {getattr(self, option)}.")
        one_of(self.head_loss, ("multi-head", "shuffle", "both"), "head_loss")
        if self.shuffle_weight < 0:
            raise InputError(f"shuffle_weight must not be negative, as {self.shuffle_weight} is.")

    def check(self, annotations: Annotations) -> None:
        if len(annotations.raters) < 2:
            raise InputError(
                f"The method mrprism weighs raters against each other, and there is only {annotations.raters[0]}. "
                "Use majority for the labels of one rater."
            )

    def asked(
        self, raters: Sequence[str], recurrence: int | None = None, confidences: Confidences | None = None
    ) -> dict[str, Any]:
        if recurrence is not None and recurrence < 0:
            raise InputError(
                f"Recurrences are counted from 0, and the last is {self.recurrences - 1}; not {recurrence}."
            )
        how = super().asked(raters, confidences=confidences)
        return how if recurrence is None else {**how, "recurrence": recurrence}

    def build(self, shape: Shape, network: nn.Module | None = None) -> Parts:
        truth = Prism(shape, self.integration, network)
        return PrismParts(truth, DivP(shape.raters, shape.classes, shape.dims), self.recurrences)

    def loss(self, parts: Parts, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        """Every item takes part in one recurrence, in turns.

        Gradients of a recurrence do not reach the one before, so that the loss of all is the sum of each: to take one
        of them per item costs a third and is right on average.
        """
        assert isinstance(parts, PrismParts)
        labels = padded(batch.labels, MISSING_PIXEL)
        given = said(labels, parts.annotators.classes)
        trust, confidence, due = self._begin(parts, labels)
        features, target = parts.truth.features(batch.images), shares(given, confidence)
        parts.truth.conp.eval()  # what is normalised on the way to a recurrence must be as in prediction
        with torch.no_grad():
            for before in range(self.recurrences - 1):
                deeper = due > before
                if deeper.any():
                    step = parts.step([stage[deeper] for stage in features], confidence[deeper], trust[deeper])
                    confidence[deeper] = step.confidences
                    target[deeper] = self._fused(given[deeper], step, trust[deeper])
        parts.truth.conp.train(parts.training)
        step = parts.step(features, confidence, trust)
        mask = step.log_truth.exp()
        anybody = is_given(labels, given.shape[2]).any(dim=1)
        of_patches, of_mask = patched(given.flatten(1, 2)).unflatten(1, given.shape[1:3]), patched(mask.detach())
        likelihood = multi_head_loss(of_patches, step.matrices, of_mask)
        loss = ssim_loss(mask, target, anybody)
        if self.head_loss != "shuffle":
            loss = loss + likelihood
        if self.head_loss != "multi-head":
            thought = (opinions(of_mask, step.matrices.detach()) > CUT).float()
            of_heads = unpatched(fuse(self.fusion, thought, step.matrices, of_mask, prior=False), mask.shape[2:])
            shuffled = shuffle_loss(self.fusion, of_patches, step.matrices, of_mask, self.shuffles)
            loss = loss + ssim_loss(of_heads, mask, anybody) + self.shuffle_weight * shuffled
        return loss, likelihood.detach()

    def _begin(self, parts: PrismParts, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Trust (items, raters), confidences to begin with (items, raters, *spatial), and each item's recurrence."""
        items, raters = labels.shape[:2]
        if not parts.training:
            trust = torch.ones(items, raters, device=labels.device)
            due = torch.full((items,), self.recurrences - 1, device=labels.device)
            return trust, everywhere(START * trust, labels).repeat(1, 1, *labels.shape[2:]), due
        drawn = LOWEST + (HIGHEST - LOWEST) * torch.rand(items, raters, device=labels.device)
        even = torch.rand(items, 1, device=labels.device) < EVEN
        trust = torch.where(even, 1, drawn / drawn.mean(dim=1, keepdim=True))
        noise = NOISE * torch.randn(labels.shape, device=labels.device) * everywhere(~even, labels)
        confidence = (START * everywhere(trust, labels) + noise).clamp(0, 1)
        due = (
            torch.arange(items, device=labels.device) + torch.randint(self.recurrences, (1,)).item()
        ) % self.recurrences
        return trust, confidence, due

    def rater_confidences(self, parts: Parts, images: Tensor, raters: int, **how: Any) -> Tensor:
        assert isinstance(parts, PrismParts)
        step = parts.estimate(images, **how)
        mask = step.log_truth.exp()
        return cropped(unpatched(confidences(patched(mask), step.matrices), mask.shape[2:]), images)

    def fused(self, parts: Parts, images: Tensor, labels: Tensor, **how: Any) -> Tensor:
        assert isinstance(parts, PrismParts)
        step = parts.estimate(images, **how)
        given = said(padded(labels, MISSING_PIXEL), parts.annotators.classes)
        trust = trusted(how.get("trust"), parts.annotators.raters, images)
        return cropped(self._fused(given, step, trust), images)

    def _fused(self, given: Tensor, step: Step, trust: Tensor) -> Tensor:
        """What raters said (batch, raters, classes, *spatial), fused after a recurrence."""
        mask = step.log_truth.detach().exp()
        of_patches = patched(given.flatten(1, 2)).unflatten(1, given.shape[1:3])
        trust = trust.repeat_interleave(len(of_patches) // len(given), dim=0)
        return unpatched(fuse(self.fusion, of_patches, step.matrices.detach(), patched(mask), trust), mask.shape[2:])

    def confusion(self, parts: Parts, images: Tensor) -> Confusion:
        assert isinstance(parts, PrismParts)
        scores = parts.estimate(images).scores
        every = F.interpolate(scores.flatten(1, 3), scale_factor=float(PATCH)).unflatten(1, scores.shape[1:4])
        return PixelConfusion(cropped(every, images))


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
    return values[(..., *[slice(length) for length in images.shape[2:]])]
