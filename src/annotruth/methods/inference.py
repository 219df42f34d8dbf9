"""What a trained model is asked beyond its prediction: drawings, whom to believe, what labels at hand amount to.

A method that has a way of its own (``methods.protocols``) is asked for it; here is what holds for all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from annotruth.errors import InputError
from annotruth.methods.base import DataSpec, Method
from annotruth.methods.protocols import AnswersQuestions, FusesLabels, Samples
from annotruth.validation import MISSING_PIXEL


def predict_options(method: Method[Any], raters: Sequence[str], **asked: Any) -> dict[str, Any]:
    """What a user asks of a prediction, as arguments of the model's ``log_truth``; None = not asked.

    Parameters
    ----------
    raters : those the model was trained on
    asked : ``recurrence``, after which one, counted from 0; ``confidences``, how far to trust raters, by name or one
        number for each
    """
    given = {name: value for name, value in asked.items() if value is not None}
    known = method.questions if isinstance(method, AnswersQuestions) else ()
    for name in given:
        if name not in known:
            raise InputError(f"The method {method.name} knows nothing of {name}=; leave it out, or train mrprism.")
    return method.predict_options(raters, given) if isinstance(method, AnswersQuestions) else {}


def rater_confidences(method: Method[Any], model: Any, images: Tensor, raters: int, **options: Any) -> Tensor:
    """How probable each rater is to be right, Σ_k p_k·A[k, k], at every pixel: (batch, raters, *spatial)."""
    if isinstance(method, FusesLabels):
        return method.rater_confidences(model, images, raters, **options)
    log_truth = model.log_truth(images, **options)
    nothing = torch.full((len(images), raters, *images.shape[2:]), MISSING_PIXEL, dtype=torch.uint8)
    return method.confusion(model, images).likelihood(log_truth, nothing.to(images.device), log_truth.exp())[1]


def fuse_labels(method: Method[Any], model: Any, images: Tensor, labels: Tensor, **options: Any) -> Tensor:
    """Probabilities (batch, classes, *spatial) of the truth, given images and labels (batch, raters, *spatial)."""
    if isinstance(method, FusesLabels):
        return method.fuse_labels(model, images, labels, **options)
    log_truth, confusion = model.log_truth(images, **options), method.confusion(model, images)
    evidence = []
    for number in range(log_truth.shape[1]):  # how likely are the labels, if this is the truth?
        certain = torch.full_like(log_truth, -torch.inf)
        certain[:, number] = 0
        evidence.append(confusion.likelihood(certain, labels)[0].sum(dim=1))
    return (log_truth + torch.stack(evidence, dim=1)).softmax(dim=1)


def sample_drawings(
    method: Method[Any], model: Any, images: Tensor, n: int, generator: torch.Generator, spec: DataSpec
) -> Tensor:
    """What n people might draw: probabilities (n, batch, classes, *spatial), whose likeliest labels are a drawing.

    Each is one of the raters whose errors the method knows, in rounds of all of them in random order, and is drawn
    from the probabilities of that rater's labels: at every pixel the likeliest label, after each class was favoured
    by chance (by a Gumbel number, which gives labels with just their probabilities). Chance favours a class alike
    at all pixels, as a person draws generously or sparingly throughout, and for the whole batch, so that windows of
    one image fit together. Where a method knows no errors, everybody draws the estimated truth.
    """
    if isinstance(method, Samples):
        return method.sample(model, images, n, generator, spec)
    log_truth = model.log_truth(images)
    if not method.learns_annotators:
        return log_truth.exp().expand(n, *log_truth.shape)
    who = in_rounds(spec.raters, n, generator).to(images.device)
    confusion = method.confusion(model, images)
    size = (len(images), spec.raters, *images.shape[2:])
    # One label after the other: no matrix per pixel is formed, however many classes there are.
    labels = (torch.full(size, number, dtype=torch.uint8, device=images.device) for number in range(spec.classes))
    by_label = [confusion.likelihood(log_truth, label)[0][:, who] for label in labels]
    gumbel = -(-torch.rand(n, spec.classes, generator=generator).log()).log()
    gumbel = gumbel.view(n, 1, spec.classes, *[1] * spec.dims).to(images.device)
    return (torch.stack(by_label, dim=2).transpose(0, 1) + gumbel).softmax(dim=2)


def in_rounds(raters: int, n: int, generator: torch.Generator) -> Tensor:
    """Who makes each of n drawings: (n,). Everybody once in each round, in random order."""
    return torch.cat([torch.randperm(raters, generator=generator) for _ in range(-(-n // raters))])[:n]
