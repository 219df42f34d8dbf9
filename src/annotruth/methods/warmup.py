"""The warm-up of methods that learn truth and errors together: labels at their word, weighed raters, then both.

``WarmUp`` is the schedule that such a method has, ``WarmUpModel`` what is found out on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from annotruth.errors import InputError
from annotruth.methods.base import Batch, DataSpec, MethodModel
from annotruth.methods.protocols import Stages
from annotruth.nn import (
    Confusion,
    FeatureTable,
    IdentityConfusion,
    decay_and_add_,
    is_labelled,
    noisy_label_loss,
    one_hot_argmax,
    sum_over_processes,
)
from annotruth.validation import one_of

CONSENSUS_SHARE = 0.4
"""Share of the training in which raters are weighed by their consensus, where nobody says otherwise."""
AT_THEIR_WORD = 0.5
"""Share of the warm-up in which labels are taken at their word, before raters are weighed."""
SEPARATION_BY_VOTE = 0.4
"""It lasts until the network separates the classes: until where it sees a class, the best rater does so this often."""
SEPARATION_ALONE = 0.6
"""The same where too few people label a pixel for a vote, and the network must judge raters alone."""
LATEST = 0.6
"""Share of the training by which raters are weighed in any case."""
MIN_PROBABILITY = 1e-6
"""What is left to the classes that are not taken for true, so that logarithms stay finite."""

COUNT_DECAY = 0.95
"""How much of what was counted remains when another batch is counted."""
MAX_VOICES = 5
"""Where few of many raters label an item, their labels weigh as much as those of this many raters at most."""
SMOOTHING = 0.02
"""Chance of any label of any rater besides what was counted, so that nobody's word is taken as certain."""
ENOUGH_LABELS = 3
"""Where so many people labelled a pixel, their labels say what is taken for true there; elsewhere the network does."""
MOSTLY = 0.8
"""Share of the labelled pixels where so many people labelled them, for the network to have little part in it."""
BALANCE_STEP = 0.5
"""How far one batch moves what is taken for true towards the expected size of each class."""

FREE_OF_TRACE = 0.4
"""Share of the training after the warm-up in which the trace has no weight, so that there is something to compare."""
LIKELIHOOD_MARGIN = 0.01
"""By how much the likelihood of held-out labels may fall behind the best one so far, as a share of it."""
FIRST_WEIGHT, MAX_WEIGHT = 0.01, 0.1
"""The weight of the trace that it begins with, and the largest one."""


def check_warmup(method: str, value: float | str, names: tuple[str, ...]) -> None:
    """Refuse what is neither a share of a training nor one of the warm-ups that have a name."""
    if isinstance(value, str):
        one_of(value, names, "warmup")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        check_share("warmup", value)
    else:
        raise InputError(f"warmup of {method} must be a number, or one of {', '.join(names)}, not {value!r}.")


def check_share(name: str, value: float) -> None:
    """Refuse what is no share of a training."""
    if not 0 <= value < 1:
        raise InputError(f"{name} is a share of the training, 0 ≤ {name} < 1, not {value}.")


def loss_at_their_word(log_truth: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The loss of a network whose raters are always right, and the negative log-likelihood of their labels."""
    return noisy_label_loss(log_truth, IdentityConfusion(labels.shape[1], log_truth.shape[1]), labels)


class Consensus(nn.Module):
    """Dawid and Skene's model with the network in place of a table of posteriors.

    Each rater has one matrix. The network, with output q, learns the truth that explains all labels of a pixel
    *together*. Where at least three people labelled a pixel, the loss is their negative log-likelihood

        −log Σ_k q_k · Π_r A_r[k, label_r],

    whose gradient draws q to its posterior. Elsewhere it is the negative evidence lower bound

        Σ_k q_k · (log q_k − log prior_k − Σ_r log A_r[k, label_r]),

    which is linear in the labels, so that raters who never label the same item are weighed against each other too; but
    it seeks the likeliest class, and a rare one that the network is not yet sure of could vanish, so it is used only
    where there is no choice. Somebody who says the same everywhere has no say; somebody who is nearly always right
    overrules several who often are not.

    The matrices are counted against the vote where at least three people labelled a pixel. Elsewhere a rater would be
    judged by little more than their own labels, and the network decides alone. A young network gives a rare class less
    than one half everywhere; so classes are favoured such that each gets as many pixels as the network expects of it,
    the sum of its probabilities.

    Examples
    --------
    >>> consensus = Consensus(raters=2, classes=2)
    >>> labels = torch.tensor([[[0, 1, 1], [0, 0, 0]]])  # the first is right, the second says 0 to everything
    >>> consensus.count(torch.tensor([[[0.9, 0.1, 0.1], [0.1, 0.9, 0.9]]]).log(), labels)
    >>> consensus.matrices()[0]
    tensor([[0.9800, 0.0200],
            [0.0200, 0.9800]])
    >>> consensus.evidence(labels)[0, 1] > consensus.evidence(labels)[0, 0]  # class 1 rather than 0?
    tensor([False,  True,  True])
    """

    counts: Tensor
    expected: Tensor
    favour: Tensor
    agreed: Tensor
    voted: Tensor

    def __init__(self, raters: int, classes: int) -> None:
        super().__init__()
        self.register_buffer("counts", torch.eye(classes).repeat(raters, 1, 1))
        self.register_buffer("expected", torch.ones(classes))
        self.register_buffer("favour", torch.zeros(classes))
        self.register_buffer("agreed", torch.zeros(2, raters, classes))
        self.register_buffer("voted", torch.zeros(2))

    @torch.no_grad()
    def balance(self, log_truth: Tensor) -> None:
        """Look at how large each class is expected to be in a batch, and how large it is taken for."""
        pixels = (0, *range(2, log_truth.ndim))
        hard = one_hot_argmax(self._favoured(log_truth))
        expected, taken = sum_over_processes(torch.stack([log_truth.exp().sum(dim=pixels), hard.sum(dim=pixels)]))
        decay_and_add_(self.expected, expected, COUNT_DECAY)
        self.favour.add_(BALANCE_STEP * ((expected + 1) / (taken + 1)).log().clamp(-1, 1))
        self.favour.sub_(self.favour.mean())

    @torch.no_grad()
    def hard_truth(self, log_truth: Tensor, labels: Tensor, raters: Tensor | None = None) -> Tensor:
        """1 for the class that is taken for true at every pixel, 0 for the others: (batch, classes, *spatial)."""
        enough = is_labelled(labels, log_truth.shape[1]).sum(dim=1, keepdim=True) >= ENOUGH_LABELS
        together = log_truth + self._log_likelihood(labels, raters)
        return one_hot_argmax(torch.where(enough, together, self._favoured(log_truth)))

    def _favoured(self, log_truth: Tensor) -> Tensor:
        return log_truth + self.favour.view(1, -1, *[1] * (log_truth.ndim - 2))

    def _log_likelihood(self, labels: Tensor, raters: Tensor | None) -> Tensor:
        """How much a pixel's labels speak for each class: (batch, classes, *spatial), a logarithm up to a constant."""
        logs = self.matrices().log()
        logs = logs if raters is None else logs[raters]
        by_label = [
            torch.einsum("ri,br...->bi...", logs[:, :, j], (labels == j).to(logs.dtype)) for j in range(logs.shape[1])
        ]
        return torch.stack(by_label).sum(dim=0)

    @torch.no_grad()
    def count(self, log_truth: Tensor, labels: Tensor, raters: Tensor | None = None) -> None:
        """Count labels (batch, raters, *spatial) against the vote, or the network's (batch, classes, *spatial)."""
        classes, who = log_truth.shape[1], ... if raters is None else raters
        expected = log_truth.exp()
        # Against the vote and not against what is taken for true, which follows these very counts: raters who draw too
        # much would lend each other weight until they are right. The network only breaks ties.
        votes = torch.stack([(labels == number).sum(dim=1) for number in range(classes)], dim=1)
        people = votes.sum(dim=1, keepdim=True)
        enough = people >= ENOUGH_LABELS
        voted = sum_over_processes(torch.stack([torch.count_nonzero(enough), torch.count_nonzero(people)]).float())
        decay_and_add_(self.voted, voted, COUNT_DECAY)
        hard = one_hot_argmax(torch.where(enough, votes + expected, self._favoured(log_truth))).flatten(2)
        expected = expected.flatten(2)
        labels = labels.flatten(2)
        said = [(labels == number).to(hard.dtype) for number in range(classes)]
        met = torch.stack([torch.einsum("bis,brs->ri", hard, each) for each in said], dim=2)
        decay_and_add_(self.counts, sum_over_processes(met), COUNT_DECAY, who)
        right = torch.stack([torch.einsum("bs,brs->r", expected[:, k], said[k]) for k in range(classes)], dim=1)
        labelled = torch.einsum("bks,brs->rk", expected, is_labelled(labels, classes).to(hard.dtype))
        agreed = sum_over_processes(torch.stack([right, labelled]))
        decay_and_add_(self.agreed, agreed, COUNT_DECAY, (slice(None), who))

    def matrices(self) -> Tensor:
        """Each rater's matrix (raters, classes, classes); a class nobody met has a row that tells nothing."""
        counts = self.counts + 1e-6
        share = counts / counts.sum(dim=2, keepdim=True)
        return share * (1 - SMOOTHING * share.shape[2]) + SMOOTHING

    def class_separation(self) -> float:
        """How sure one may be of the class the network knows least, by the rater it agrees with best: 0 to 1.

        Of the network its probabilities count, not what is taken for true: it must know, and not only guess.
        """
        right, labelled = self.agreed
        used = self.counts.sum(dim=(0, 1)) > 0.5  # pixels; nobody can tell a class that nobody ever named
        return float((right / labelled.clamp_min(1e-6))[:, used].amin(dim=1).max())

    def enough_votes(self) -> bool:
        """Whether labels say what is taken for true nearly everywhere, and not the network."""
        return bool(self.voted[0] >= MOSTLY * self.voted[1])

    def evidence(self, labels: Tensor, raters: Tensor | None = None) -> Tensor:
        """How much a pixel's labels and the classes' frequency speak for each class: (batch, classes, *spatial).

        A logarithm, up to a constant.
        """
        people = is_labelled(labels, self.counts.shape[1]).sum(dim=1, keepdim=True)
        return self._evidence(self._log_likelihood(labels, raters), people)

    def _evidence(self, log_likelihood: Tensor, people: Tensor) -> Tensor:
        prior = (self.expected / self.expected.sum()).log().view(1, -1, *[1] * (people.ndim - 2))
        voices = (min(len(self.counts), MAX_VOICES) / people.clamp_min(1)).clamp_min(1)
        return log_likelihood * voices + prior

    def loss(self, log_truth: Tensor, labels: Tensor, raters: Tensor | None = None) -> Tensor:
        """The loss, averaged over the pixels that anybody labelled."""
        people = is_labelled(labels, log_truth.shape[1]).sum(dim=1)
        log_likelihood = self._log_likelihood(labels, raters)
        together = (log_truth + log_likelihood).logsumexp(dim=1)
        evidence = self._evidence(log_likelihood, people.unsqueeze(1))
        bound = (log_truth.exp() * (evidence - log_truth)).sum(dim=1)
        gain = torch.where(people >= ENOUGH_LABELS, together, bound)
        return -(gain * (people > 0)).sum() / torch.count_nonzero(people).clamp_min(1)


class TraceRule(nn.Module):
    """Raises the trace's weight while held-out noisy labels are explained as well as before, lowers it when not.

    This is dual ascent in large steps: the trace is minimised under the constraint that the likelihood stays within a
    margin of the best one reached. The truth has no part in it.

    Examples
    --------
    >>> rule = TraceRule()
    >>> for likelihood, done in [(0.3, 0.2), (0.2, 0.4), (0.19, 0.6), (0.19, 0.8), (0.25, 0.9)]:
    ...     rule.after_epoch(likelihood, done)
    ...     print(round(rule.weight.item(), 4))
    0.0
    0.01
    0.02
    0.04
    0.01
    """

    weight: Tensor
    best: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.tensor(0.0))
        self.register_buffer("best", torch.tensor(torch.inf))

    def after_epoch(self, negative_log_likelihood: float, done: float) -> None:
        """Look at the held-out labels' likelihood; ``done`` runs from 0 to 1 after the warm-up."""
        within = negative_log_likelihood <= self.best * (1 + LIKELIHOOD_MARGIN)
        self.best.clamp_(max=negative_log_likelihood)
        if done < FREE_OF_TRACE:
            return
        raised = (2 * self.weight).clamp(FIRST_WEIGHT, MAX_WEIGHT)
        self.weight.copy_(raised if within else self.weight / 4)


class WarmUpModel(MethodModel):
    """A truth model and an annotator model, with what is found out while they are trained.

    Attributes
    ----------
    weighed_from, joint_from : how much of the training was done when raters began to be weighed, and when truth and
        errors began to be learnt together; infinity = not yet
    """

    weighed_from: Tensor
    joint_from: Tensor

    def __init__(self, truth: nn.Module, annotators: nn.Module, spec: DataSpec) -> None:
        super().__init__(truth, annotators)
        self.consensus = Consensus(spec.raters, spec.classes)
        self.trace_rule = TraceRule()
        self.register_buffer("weighed_from", torch.tensor(torch.inf))
        self.register_buffer("joint_from", torch.tensor(torch.inf))

    def truth_and_confusion(self, batch: Batch) -> tuple[Tensor, Callable[[], Confusion]]:
        """Log-probabilities of the true class, and a function that gives the matrices of the batch's raters.

        A model that reads both from the same features computes these once.
        """
        return self.log_truth(batch.images), lambda: self.rater_confusion(batch)


@dataclass(frozen=True)
class WarmUp(Stages):
    """Labels at their word, then weighed raters, then truth and errors together.

    The truth model must first look like the labels, class by class, or truth and errors may settle with classes
    swapped. Before it is freed, those who tell nothing must have lost their say, and the annotator model have
    learnt something of everybody's errors, or the truth would slide towards them.

    Attributes
    ----------
    share : of the training before errors are learnt together with the truth
    trace_weight : how much the trace counts then; None = as much as the likelihood of held-out labels allows
    trace : which diagonal entries count, "posterior" or "plain" (see ``nn.noisy_label_loss``)
    pace : how much faster the annotator model learns before that, as long as the vote says what is true
    """

    share: float
    trace_weight: float | None = None
    trace: Literal["posterior", "plain"] = "posterior"
    pace: float = 1.0

    def objective_is_final(self, model: WarmUpModel, progress: float) -> bool:
        return bool(progress >= model.joint_from)

    def annotator_pace(self, model: WarmUpModel, progress: float) -> float:
        early = not self.objective_is_final(model, progress)
        return self.pace if early and model.consensus.enough_votes() else 1.0

    def loss(self, model: WarmUpModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        """The loss of the stage that it is time for, and the negative log-likelihood of the labels."""
        log_truth, confusion = model.truth_and_confusion(batch)
        if model.training:
            self._advance(model, log_truth, batch, progress)
        if self.objective_is_final(model, progress):
            weight = model.trace_rule.weight.item() if self.trace_weight is None else self.trace_weight
            return noisy_label_loss(log_truth, confusion(), batch.labels, weight, self.trace)
        at_their_word, likelihood = loss_at_their_word(log_truth, batch.labels)
        if progress < model.weighed_from:
            return at_their_word, likelihood
        hard = model.consensus.hard_truth(log_truth, batch.labels, batch.raters).clamp_min(MIN_PROBABILITY).log()
        of_raters, _ = noisy_label_loss(hard, confusion(), batch.labels)
        return model.consensus.loss(log_truth, batch.labels, batch.raters) + of_raters, likelihood

    def _advance(self, model: WarmUpModel, log_truth: Tensor, batch: Batch, progress: float) -> None:
        """Keep the consensus up to date, and go on to the next stage when it is time."""
        if progress >= model.joint_from:
            return
        model.consensus.balance(log_truth)
        model.consensus.count(log_truth, batch.labels, batch.raters)
        if progress < model.weighed_from:
            enough = SEPARATION_BY_VOTE if model.consensus.enough_votes() else SEPARATION_ALONE
            ready = self.share == 0 or progress >= LATEST or model.consensus.class_separation() >= enough
            if progress >= self.share * AT_THEIR_WORD and ready:
                model.weighed_from.fill_(progress)
        if progress >= model.weighed_from + self.share * (1 - AT_THEIR_WORD):
            model.joint_from.fill_(progress)

    def after_epoch(self, model: WarmUpModel, likelihood: float, progress: float) -> None:
        if self.objective_is_final(model, progress):
            begun = float(model.joint_from)
            model.trace_rule.after_epoch(likelihood, (progress - begun) / (1 - begun))

    def finish(self, model: WarmUpModel, batches: Iterable[Batch]) -> None:
        table = getattr(model.annotators, "table", None)
        if isinstance(table, FeatureTable):  # effects of rater features, and what is a rater's own, are told apart
            table.settle()
