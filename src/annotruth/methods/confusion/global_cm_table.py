"""Global matrices on label tables: counted between the epochs, where masks are too many to go through once more."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from scipy.special import entr
from torch import Tensor, nn

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.copying import find_copies
from annotruth.fusion.em import confusion_from_counts
from annotruth.methods.base import Batch, DataSpec, Method
from annotruth.methods.em.alternating import AlternatingModel
from annotruth.methods.em.steps import add_counts, cross_entropy, label_posterior, label_shares
from annotruth.methods.protocols import Prepares, Stages
from annotruth.methods.registry import register
from annotruth.methods.warmup import check_share, loss_at_their_word
from annotruth.metrics import fleiss_kappa
from annotruth.nn import KnownAnnotators
from annotruth.validation import MISSING_LABEL

RIGHT_PSEUDO_COUNT, ANY_PSEUDO_COUNT = 0.1, 0.01
"""Right answers of each class, and answers of each kind, that every rater is taken to have given before."""
POOLED_PSEUDO_COUNT = 1.0
"""Answers to each class that every rater is taken to have given before as all raters do on average."""
EMA_SPAN = 30
"""The average network reaches back over one of so many parts of the steps so far."""
CLEAREST_SHARE = 0.25
"""Share of the items of each class, those most clearly of it, by which raters are first judged: of the others, too many
are something else."""
COUNT_ROUNDS = 3
"""How often raters are counted anew against the same network: what the labels say of an item follows the matrices."""
MIN_GAIN, MAX_LAST_GAIN = 0.02, 0.03
"""The network has learnt what the labels say at their word when it explains each by so much more than the classes'
frequency does, in nats, and the last epoch brought no more than this share of it."""
COUNTS_AT_LATEST = 0.5
"""Share of the training by which matrices are counted in any case."""
MANY_LABELS, MIN_KAPPA, EARLY_COUNTS_FROM = 3, 0.07, 0.1
"""Where items have so many labels on average, and these agree by so much more than by chance (Fleiss' kappa), those of
an item already tell its class when put together: matrices are counted after this share of the training."""
CHOOSE_FROM = 0.7
"""Share of the training before which no weights are chosen: matrices still move, and the learning rate is high."""


class CountedModel(AlternatingModel):
    """A network and matrices counted against it.

    Attributes
    ----------
    average : the network whose weights are the mean of those of late, which says what is taken for true. A network
        that learns from labels of which half are wrong changes its mind from step to step; the mean does not
    steps : how many are in that mean
    explained : negative log-likelihood of a label, in nats: by the classes' frequency alone, and after the last epoch
    ready : whether the network has learnt what labels say at their word
    many : whether items have so many labels that these tell their class when put together
    answered : (classes,) whether anybody ever gave this answer
    copies : (raters,) a number, the same for raters who give the same answers; of these, one counts
    """

    steps: Tensor
    explained: Tensor
    ready: Tensor
    many: Tensor
    answered: Tensor
    copies: Tensor

    def __init__(self, truth: nn.Module, annotators: nn.Module, spec: DataSpec) -> None:
        super().__init__(truth, annotators, spec)
        self.average = copy.deepcopy(truth).requires_grad_(False)
        self.register_buffer("steps", torch.tensor(0))
        self.register_buffer("explained", torch.full((2,), math.log(spec.classes)))
        self.register_buffer("ready", torch.tensor(False))
        self.register_buffer("many", torch.tensor(False))
        self.register_buffer("answered", torch.ones(spec.classes, dtype=torch.bool))
        self.register_buffer("copies", torch.arange(spec.raters), persistent=False)  # found anew from the same answers

    def log_truth(self, images: Tensor) -> Tensor:
        """Log-probabilities of the true class, by the network that learns; by the average wherever they are used."""
        return F.log_softmax(self.truth(images), dim=1) if self.training else self.log_average(images)

    @torch.no_grad()
    def log_average(self, images: Tensor) -> Tensor:
        """Log-probabilities of the true class by the average network, which answers even while the other one learns."""
        return F.log_softmax(self.average.eval()(images), dim=1)

    def once(self, batch: Batch) -> Tensor:
        """The batch's labels (batch, raters), of copies' labels of an item the first alone."""
        copies = self.copies if batch.raters is None else self.copies[batch.raters]
        if len(copies.unique()) == len(copies):
            return batch.labels
        before = torch.tril(copies[:, None] == copies, diagonal=-1).float()  # [a rater, a copy further left]
        given = batch.labels != MISSING_LABEL
        return batch.labels.masked_fill(given.float() @ before.T > 0, MISSING_LABEL)

    @torch.no_grad()
    def follow(self) -> None:
        """Take the network as it is into the average, which reaches back over a small part of the steps so far."""
        share = EMA_SPAN / (EMA_SPAN + int(self.steps))
        for kept, now in zip(self.average.state_dict().values(), self.truth.state_dict().values()):
            kept.lerp_(now, share) if kept.is_floating_point() else kept.copy_(now)
        self.steps.add_(1)


@register
@dataclass(frozen=True)
class CountedCM(Stages, Prepares, Method[CountedModel]):
    """Each rater errs in one way.

    The network first learns from labels taken at their word. Each rater's labels are then counted on the items that it
    finds to be most clearly of each class, which are the class's own wherever the raters' mean matrix is diagonally
    dominant; where items have three labels or more that agree, these have a say in it, and the network need not have
    learnt much. From then on they are counted anew before every epoch, against the posterior of the truth: the network
    and all labels of an item together. The network learns from that posterior, which follows its average at every step;
    this maximises the likelihood of all labels of an item, given the image.

    Raters who give the same answers, wrong ones too, are copies: they count as one, or three of them would outvote two
    who are right.

    The matrices are the best there are for a posterior. So there is no learning rate to find for them, and raters by
    the thousand cost nothing between two counts.

    Options
    -------
    trace_weight : how strongly raters are made out to be as unreliable as the labels allow, per label and diagonal
        entry; with ten classes and one label an item, 0.1 is what the paper calls 0.01
    warmup : share of the training in which labels are taken at their word; it goes on until the network has learnt
        what they say, half of the training at most; where items have three labels or more that agree, a tenth
    """

    name = "global-cm"
    paper = "Tanno et al. 2019"
    summary = "a network, and one confusion matrix per rater"
    tasks = ("labels",)
    model_class = CountedModel
    learns_annotators = True
    counts_copies_once = True

    trace_weight: float = 0.1
    warmup: float = 0.3

    def __post_init__(self) -> None:
        if not 0 <= self.trace_weight < 1:
            raise InputError(f"trace_weight must lie between 0 and 1, not {self.trace_weight}.")
        check_share("warmup", self.warmup)

    def annotator_model(self, spec: DataSpec) -> nn.Module:
        return KnownAnnotators(spec.raters, spec.classes)

    def prepare(self, model: CountedModel, annotations: Annotations) -> None:
        share = np.bincount(annotations.answers.label, minlength=len(annotations.classes)) / len(annotations.answers)
        model.explained.fill_(float(entr(share).sum()))
        model.many.fill_(
            len(annotations.answers) >= MANY_LABELS * len(annotations) and fleiss_kappa(annotations) >= MIN_KAPPA
        )
        model.answered.copy_(torch.from_numpy(share > 0))
        model.copies.copy_(torch.from_numpy(find_copies(annotations)))

    def objective_is_final(self, model: CountedModel, progress: float) -> bool:
        return bool(model.stage > 0) and progress >= CHOOSE_FROM

    def begin_epoch(self, model: CountedModel, batches: Iterable[Batch], progress: float) -> None:
        if progress > 0 and self._past_their_word(model, progress):
            self._count(model, batches, self.trace_weight)

    def _past_their_word(self, model: CountedModel, progress: float) -> bool:
        """Whether labels are no longer taken at their word, but raters are counted."""
        if model.many:
            return progress >= min(self.warmup, EARLY_COUNTS_FROM)
        return progress >= self.warmup and (bool(model.ready) or progress >= COUNTS_AT_LATEST)

    def after_epoch(self, model: CountedModel, likelihood: float, progress: float) -> None:
        if model.stage == 0:
            by_frequency, before = model.explained.tolist()
            gain = by_frequency - likelihood
            model.ready.fill_(gain > MIN_GAIN and before - likelihood < MAX_LAST_GAIN * gain)
            model.explained[1] = likelihood

    def finish(self, model: CountedModel, batches: Iterable[Batch]) -> None:
        self._count(model, batches, trace_weight=0.0)  # the trace is to find the matrices, it is no part of them

    def _count(self, model: CountedModel, batches: Iterable[Batch], trace_weight: float) -> None:
        matrices = model.annotators.matrices
        seen = [(batch, model.log_truth(batch.images)) for batch in batches]
        if model.stage == 0:
            found = torch.cat([self._found(model, batch, log) for batch, log in seen])
            clear = clearest(found, CLEAREST_SHARE).split([len(log) for _, log in seen])
            matrices.copy_(self._counted(matrices, zip((batch for batch, _ in seen), clear), trace_weight))
        if model.stage > 0 or model.many:
            for _ in range(COUNT_ROUNDS):
                truth = (label_posterior(log, model.once(batch), matrices[batch.raters])[0] for batch, log in seen)
                matrices.copy_(self._counted(matrices, zip((batch for batch, _ in seen), truth), trace_weight))
        model.stage.add_(1)

    def _found(self, model: CountedModel, batch: Batch, log_truth: Tensor) -> Tensor:
        """How probable the classes of a batch's items are before anything is known of the raters: (batch, classes).

        What nobody ever answered is no item's class, whatever a network that has learnt little makes of it.
        """
        by_network = log_truth.exp() * model.answered
        return (by_network + label_shares(model.once(batch), by_network.shape[1])) / 2 if model.many else by_network

    def _counted(self, matrices: Tensor, items: Iterable[tuple[Batch, Tensor]], trace_weight: float) -> Tensor:
        """Matrices from batches, and what is taken for true of their items: (batch, classes)."""
        counts = np.zeros(matrices.shape)
        for batch, truth in items:
            add_counts(counts, batch, truth)
        before = RIGHT_PSEUDO_COUNT * np.eye(matrices.shape[1]) + ANY_PSEUDO_COUNT
        pooled = confusion_from_counts(counts.sum(axis=0, keepdims=True), before)
        shares = confusion_from_counts(counts, before + POOLED_PSEUDO_COUNT * pooled)
        return torch.from_numpy(with_least_trace(shares, trace_weight))

    def loss(self, model: CountedModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        if model.training:
            model.follow()
        log_truth, labels = model.log_truth(batch.images), model.once(batch)
        if model.stage == 0:
            return loss_at_their_word(log_truth, labels)
        prior = model.log_average(batch.images)  # the network itself would learn what it has just come to believe
        target, evidence = label_posterior(prior, labels, model.annotators.matrices[batch.raters])
        given = (labels >= 0).sum().clamp_min(1)
        return cross_entropy(log_truth, target, labels), -evidence.sum() / given


def clearest(found: Tensor, share: float) -> Tensor:
    """Which items are most clearly of each class: (items, classes), 1 for a share of those expected, 0 for the others.

    A network that takes labels at their word finds an item the more of a class, the more often such items are called
    that. Where the raters' mean matrix is diagonally dominant, no items are called that more often than those of the
    class itself: the items at the top are the class's own, even if they are called something else more often still.

    Parameters
    ----------
    found : (items, classes) how probable the classes are found to be

    Examples
    --------
    >>> clearest(torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.6, 0.4], [0.7, 0.3]]), share=0.5)
    tensor([[1., 0.],
            [0., 1.],
            [0., 0.],
            [1., 0.]])
    """
    wanted = (share * found.sum(dim=0)).ceil().long()
    chosen = torch.zeros_like(found)
    for number, order in enumerate(found.T.argsort(dim=1, descending=True, stable=True)):
        chosen[order[: wanted[number]], number] = 1.0
    return chosen


def with_least_trace(shares: np.ndarray, weight: float) -> np.ndarray:
    """The matrices that explain labels best, less ``weight`` times their trace.

    Of a row f of shares, the row a that maximises Σ_j f_j · log a_j − weight · a_i, for the diagonal entry i, is
    f_j / μ off the diagonal and f_i / (μ + weight) on it, where μ makes it sum to 1.

    Parameters
    ----------
    shares : (..., classes, classes) shares of the observed classes, [true, observed], rows that sum to 1

    Examples
    --------
    >>> with_least_trace(np.array([[0.8, 0.2], [0.4, 0.6]]), weight=0.1).round(3)
    array([[0.783, 0.217],
           [0.424, 0.576]])
    """
    right = np.diagonal(shares, axis1=-2, axis2=-1)[..., None]
    scale = (1 - weight + np.sqrt((1 - weight) ** 2 + 4 * weight * (1 - right))) / 2
    return shares / (scale + weight * np.eye(shares.shape[-1]))
