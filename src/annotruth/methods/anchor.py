"""The warm-up of pixel-cm and its kin: foretell everybody's drawings from the image, then choose whom to believe.

``AnchoredModel`` is what is trained and found out on the way, ``Anchored`` the schedule.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from annotruth.methods.base import Batch, DataSpec, Method, MethodModel
from annotruth.methods.comparing import (
    DRAWN,
    OTHERS,
    Told,
    mean_overlap,
    names_classes_alike,
    separating_threshold,
    tell_all_labels,
)
from annotruth.methods.edges import blurred, edge_information
from annotruth.methods.foretelling import first_is_shorter
from annotruth.methods.labellings import (
    FUSED,
    NEARLY,
    TOGETHER,
    VOTE,
    WORD,
    Labellings,
    fused_confusion,
    labelling_count,
    labelling_name,
    overlap,
    overlap_and_area,
)
from annotruth.methods.offsets import SHIFTS, rater_offsets
from annotruth.methods.protocols import DoubtsTruth, Stages
from annotruth.methods.warmup import TraceRule, loss_at_their_word
from annotruth.nn import DrawingAnnotators, class_index, dice_loss, is_labelled, noisy_label_loss
from annotruth.nn.labels import one_hot
from annotruth.validation import MISSING_PIXEL

FORETELLING = 0.5
"""Share of the training in which drawings are foretold; then somebody's are taken for the truth."""
JOINT = 0.7
"""Share of the training after which the truth also learns from what the others' errors give away."""
MOST_ITEMS = 256
"""Items on which labellings are compared: with one label each, a quarter of these left some tied that are not."""
ENOUGH_ITEMS, MOST_BYTES = 8, 2**27
"""So many are enough where labellings and distances of them take more memory than this, and minutes, with large images
or many raters."""
LEAST_FORETOLD, MOSTLY_DRAWN = 0.7, 0.5
"""What is foretold is learnt from only where it is like what was drawn, by this Dice; else a labelling must be one that
was drawn, by several people, on at least this share of the items, or labels are taken at their word."""
GOOD = 0.75
"""Where good items begin, in the order in which drawings are like what is foretold: more than half may be bad."""
ON_EDGES, LEAST_ON_EDGES = 0.85, 0.05
"""Borders lie on edges of the images if these tell at least this share of what they tell of the labelling, of those
that people gave, of which they tell most; where that is less than the second number, images say nothing of borders."""
UNDECIDED = -1
RIVAL_ERRORS = 3.0
"""A labelling that was refused is named in a warning if its message is shorter by more standard errors than this."""


class AnchoredModel(MethodModel):
    """A truth model, an annotator model that foretells drawings, too, and which labelling was found to be the truth.

    Attributes
    ----------
    anchor : which labelling is taken for true, by its place in ``methods.labellings``; -1 = not yet chosen
    lengths : (labellings,) nats per item that it takes to tell all labels by the labelling
    rival : a labelling that tells all labels more shortly and was refused all the same; -1 = there is none
    offsets : (labellings, raters, classes - 1) by how many pixels raters' borders lie within a labelling's, see
        ``methods.offsets``
    least_agreement : (2,) Dice with what is foretold, by item, below which it was drawn by a slip, or others do not
        tell it
    log_confusion : (raters, classes, classes) by Dawid and Skene's model of the labels alone, for the fused labelling
    """

    annotators: DrawingAnnotators
    anchor: Tensor
    lengths: Tensor
    rival: Tensor
    offsets: Tensor
    least_agreement: Tensor
    log_confusion: Tensor

    def __init__(self, truth: nn.Module, annotators: nn.Module, spec: DataSpec) -> None:
        super().__init__(truth, annotators)
        self.trace_rule = TraceRule()
        self.register_buffer("anchor", torch.tensor(UNDECIDED))
        self.register_buffer("rival", torch.tensor(UNDECIDED))
        self.register_buffer("offsets", torch.zeros(labelling_count(spec.raters), spec.raters, spec.classes - 1))
        self.register_buffer("least_agreement", torch.zeros(2))
        self.register_buffer("lengths", torch.full((labelling_count(spec.raters),), torch.nan))
        self.register_buffer("log_confusion", torch.zeros(spec.raters, spec.classes, spec.classes))

    def labellings(self, log_truth: Tensor, drawings: Tensor, labels: Tensor) -> Labellings:
        """What may be the truth, as foretold and as drawn."""
        return Labellings(drawings, labels, log_truth, self.log_confusion, self.offsets)


class Foretells(Method[Any], DoubtsTruth):
    """A method that may foretell drawings first; its annotator model is then a :class:`DrawingAnnotators`."""

    @property
    @abstractmethod
    def foretells(self) -> bool:
        """Whether its options say so."""

    @property
    def keeps_last_weights(self) -> bool:
        return self.foretells

    def build(self, spec: DataSpec, network: nn.Module | None = None) -> Any:
        if not self.foretells:
            return super().build(spec, network)
        truth = network if network is not None else self.truth_model(spec)
        return AnchoredModel(truth, self.annotator_model(spec), spec)

    def doubts(self, model: MethodModel, raters: Sequence[str]) -> list[str]:
        if not isinstance(model, AnchoredModel) or int(model.rival) == UNDECIDED:
            return []
        taken, other = (labelling_name(int(each), raters) for each in (model.anchor, model.rival))
        return [
            f"The estimated truth may be wrong: it follows {taken}, but everybody's labels would be likelier if "
            f"{other} were the truth, which the images or the names of classes speak against. Look at some images to "
            "see which of the two is right."
        ]


@dataclass(frozen=True)
class Anchored(Stages):
    """Foretell drawings; take one labelling for true and learn the errors against it; then learn both together.

    While drawings are foretold, the truth model learns labels at their word. What is then taken for true stays so to
    the end: where the rater who is believed drew, or several voted, the drawing or the vote itself, unless it was a
    slip; elsewhere what others' drawings tell of it, or what is foretold of it. Errors are read from the features that
    foretell drawings, by a linear map.

    Attributes
    ----------
    trace_weight : how much the trace counts at last; None = as much as the likelihood of held-out labels allows
    trace : which diagonal entries count, "posterior" or "plain" (see ``nn.noisy_label_loss``)
    annotator_rate : how fast the annotator model learns at last, as a multiple of the truth model's rate; drawings are
        learnt to be foretold as fast as the truth
    """

    trace_weight: float | None = None
    trace: Literal["posterior", "plain"] = "posterior"
    annotator_rate: float = 1.0

    def objective_is_final(self, model: AnchoredModel, progress: float) -> bool:
        return progress >= JOINT and int(model.anchor) != UNDECIDED

    def annotator_pace(self, model: AnchoredModel, progress: float) -> float:
        if int(model.anchor) != UNDECIDED:
            return 1.0 if progress >= JOINT else max(1 / self.annotator_rate, 1.0)
        return max(1 - (progress / FORETELLING) ** 2, 0.0) / self.annotator_rate  # falls to nothing: drawings settle

    def begin_epoch(self, model: AnchoredModel, batches: Iterable[Batch], progress: float) -> None:
        if progress >= FORETELLING and int(model.anchor) == UNDECIDED:
            self._choose(model, batches)

    def _choose(self, model: AnchoredModel, batches: Iterable[Batch]) -> None:
        """Take the labelling that tells all labels in the fewest words, of those whose borders lie on edges of images.

        Of labellings between which chance may decide, it is the one that, as foretold, is most like what all drew.
        """
        raters, classes = model.annotators.raters, model.annotators.classes
        some = _enough(batches, len(model.lengths) + 8 * raters * (classes - 1))  # distances as drawn and as foretold
        labels = [item for batch in some for item in batch.labels.cpu().numpy()]
        candidates = self._candidates(model, some, labels)
        told = [_tell(candidates, number, labels) for number in range(len(model.lengths))]
        model.lengths.copy_(torch.tensor([each.lengths.mean() for each in told]))
        word = raters + TOGETHER.index(WORD)
        foretold_well, of_several = _is_foretold_well(candidates, raters), _labelled_by_several(labels)
        able = [
            number
            for number, each in enumerate(told)
            if (foretold_well or min((each.forms == DRAWN).mean(), of_several) >= MOSTLY_DRAWN)
            and names_classes_alike(each.labelling, labels, classes)
        ]
        able = able if word in able else [*able, word]
        able = _on_edges({n: _by_batch(told[n].labelling, some) for n in able}, some, raters, classes)
        shortest = told[min(able, key=lambda number: float(model.lengths[number]))].lengths
        foretold = {
            number: _items(each.foretold(number) for each in candidates)
            for number in able
            if not first_is_shorter(shortest, told[number].lengths)
        }
        chosen = max(foretold, key=lambda number: mean_overlap(foretold[number], labels, classes))
        model.anchor.fill_(chosen)
        model.least_agreement.copy_(torch.tensor(_least_agreement(candidates, chosen, told[chosen].forms)))
        refused = int(model.lengths.argmin())
        errors = RIVAL_ERRORS if foretold_well else 0.0
        rivals = first_is_shorter(told[refused].lengths, told[chosen].lengths, errors)
        model.rival.fill_(refused if rivals else UNDECIDED)

    def _candidates(self, model: AnchoredModel, some: list[Batch], labels: list[np.ndarray]) -> list[Labellings]:
        """Labellings of all batches, once raters' matrices and offsets are known, which are found on the way."""
        raters, classes = model.annotators.raters, model.annotators.classes
        model.log_confusion.copy_(torch.from_numpy(fused_confusion(labels, raters, classes)))
        model.offsets.fill_(0.0)
        candidates = [self._labellings(model, each) for each in some]

        def offsets(number: int) -> Tensor:
            return rater_offsets(
                [each.labels for each in some], [_either(each, number) for each in candidates], classes
            )

        first = raters + len(TOGETHER)  # of everybody's borders
        for number in (raters + TOGETHER.index(VOTE), first + SHIFTS.index(0.0)):
            model.offsets[first:] = offsets(number) + torch.tensor(SHIFTS).view(-1, 1, 1)
            candidates = [self._labellings(model, each) for each in some]
        model.offsets[:first] = torch.stack([offsets(number) for number in range(first)])
        return [self._labellings(model, each) for each in some]

    @staticmethod
    def _labellings(model: AnchoredModel, batch: Batch) -> Labellings:
        drawings, _ = model.annotators.foretell(batch.images)
        return model.labellings(model.log_truth(batch.images), drawings, batch.labels)

    def loss(self, model: AnchoredModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        """The loss of the stage that it is time for, and the negative log-likelihood of the labels."""
        log_truth = model.log_truth(batch.images)
        with torch.set_grad_enabled(torch.is_grad_enabled() and int(model.anchor) == UNDECIDED):
            drawings, features = model.annotators.foretell(batch.images)
        at_their_word, likelihood = loss_at_their_word(log_truth, batch.labels)
        at_their_word = at_their_word + _overlap_of_raters(
            log_truth.unsqueeze(1).expand(-1, batch.labels.shape[1], *log_truth.shape[1:]), batch.labels
        )
        if int(model.anchor) == UNDECIDED:
            return at_their_word + drawing_loss(drawings, batch.labels), likelihood
        target = self._target(model, log_truth, drawings, batch.labels)
        anchored = at_their_word if target is None else _overlap_loss(log_truth, target)
        confusion = model.annotators.errors(features.detach(), batch.raters)
        if self.objective_is_final(model, progress):
            weight = model.trace_rule.weight.item() if self.trace_weight is None else self.trace_weight
            learnt = log_truth.detach() if target is None else log_truth  # labels at their word are all it learns then
            explained, likelihood = noisy_label_loss(learnt, confusion, batch.labels, weight, self.trace)
        else:
            known = log_truth.detach() if target is None else one_hot(target, log_truth.shape[1]).clamp_min(1e-6).log()
            explained, _ = noisy_label_loss(known, confusion, batch.labels)
        return anchored + explained, likelihood

    @torch.no_grad()
    def _target(self, model: AnchoredModel, log_truth: Tensor, drawings: Tensor, labels: Tensor) -> Tensor | None:
        """What is taken for true: (batch, *spatial) uint8; None = everybody's labels."""
        chosen = int(model.anchor)
        if chosen == model.annotators.raters + TOGETHER.index(WORD):
            return None
        labellings = model.labellings(log_truth, drawings, labels)
        target = foretold = labellings.foretold(chosen)
        for known, least in zip(
            (labellings.by_others(chosen), labellings.drawn(chosen)), model.least_agreement.flip(0)
        ):
            slip = (overlap(known, foretold) < least).view(-1, *[1] * (known.ndim - 1))
            target = torch.where((known == MISSING_PIXEL) | slip, target, known)
        nobody = (labels == MISSING_PIXEL).all(dim=1)  # padding, above all
        return target.masked_fill(nobody, MISSING_PIXEL)

    def after_epoch(self, model: AnchoredModel, likelihood: float, progress: float) -> None:
        if self.objective_is_final(model, progress):
            model.trace_rule.after_epoch(likelihood, (progress - JOINT) / (1 - JOINT))


def _tell(candidates: Sequence[Labellings], number: int, labels: list[np.ndarray]) -> Told:
    """How shortly one of the labellings tells all labels."""
    foretold, drawn, others = (
        _items(form(number) for form in forms)
        for forms in zip(*((each.foretold, each.drawn, each.by_others) for each in candidates))
    )
    raters, classes = candidates[0].raters, candidates[0].classes
    return tell_all_labels(foretold, drawn, others, labels, classes, number if number < raters else None)


def _on_edges(labellings: Mapping[int, list[Tensor]], some: Sequence[Batch], raters: int, classes: int) -> list[int]:
    """The numbers of those labellings whose borders lie on edges of the images."""
    given = [*range(raters), *(raters + TOGETHER.index(name) for name in (VOTE, FUSED))]
    images = [blurred(each.images) for each in some]
    known = {number: edge_information(labelling, images, classes) for number, labelling in labellings.items()}
    most = max((known[number] for number in given if number in known), default=0.0)
    least = ON_EDGES * most if most >= LEAST_ON_EDGES else 0.0
    return [number for number, share in known.items() if share >= least]


def _by_batch(items: list[np.ndarray], batches: Sequence[Batch]) -> list[Tensor]:
    ends = np.cumsum([len(each.labels) for each in batches])
    return [
        torch.from_numpy(np.stack(items[end - len(each.labels) : end])).to(each.images.device)
        for each, end in zip(batches, ends)
    ]


def _items(batches: Iterable[Tensor]) -> list[np.ndarray]:
    return [item for batch in batches for item in batch.cpu().numpy()]


def _least_agreement(candidates: Sequence[Labellings], number: int, forms: np.ndarray) -> list[float]:
    """Dice with what is foretold of a labelling, below which it was drawn by a slip, or others do not tell it.

    Which these are is told by the forms that items have. But where few labelled an item, nothing is told more shortly
    by a drawing than by what is foretold; then drawings count that are nearly as like it as good ones are, except that
    somebody who is believed is believed.
    """
    least, left = [], np.ones(len(forms), dtype=bool)
    for form, found in (
        (DRAWN, [each.drawn(number) for each in candidates]),
        (OTHERS, [each.by_others(number) for each in candidates]),
    ):
        known = left & np.array([(item != MISSING_PIXEL).any() for item in _items(found)])
        agreed = torch.cat([overlap(one, each.foretold(number)) for one, each in zip(found, candidates)]).cpu().numpy()
        threshold = separating_threshold(agreed[known], forms[known] != form)
        if known.any() and (form == OTHERS or number >= candidates[0].raters):
            threshold = min(threshold, NEARLY * float(np.quantile(agreed[known], GOOD)))
        least.append(threshold)
        left &= ~known | (forms != form)
    return least


def _is_foretold_well(candidates: Sequence[Labellings], raters: int) -> bool:
    """Whether what is foretold of raters' drawings is like them."""
    found = [
        overlap_and_area(each.drawn(number), each.foretold(number)) for each in candidates for number in range(raters)
    ]
    both, area = (sum(float(each.sum()) for each in counts) for counts in zip(*found))
    return 2 * both >= LEAST_FORETOLD * area


def _labelled_by_several(labels: Sequence[np.ndarray]) -> float:
    """The share of items (raters, *spatial) that two or more labelled."""
    return float(
        np.mean([np.count_nonzero((item != MISSING_PIXEL).any(axis=tuple(range(1, item.ndim)))) > 1 for item in labels])
    )


def _either(labellings: Labellings, number: int) -> Tensor:
    """A labelling as drawn, or as foretold where it was not."""
    drawn = labellings.drawn(number)
    return torch.where(drawn == MISSING_PIXEL, labellings.foretold(number), drawn)


def _enough(batches: Iterable[Batch], bytes_of_pixel: int) -> list[Batch]:
    """As many of the first batches as it takes to compare labellings."""
    some: list[Batch] = []
    for batch in batches:
        items, pixels = sum(len(each.labels) for each in some), sum(each.labels[:, 0].numel() for each in some)
        if items >= MOST_ITEMS or (items >= ENOUGH_ITEMS and pixels * bytes_of_pixel >= MOST_BYTES):
            break
        some.append(batch)
    return some


def drawing_loss(drawings: Tensor, labels: Tensor) -> Tensor:
    """Negative log-likelihood of labels (batch, raters, *spatial) foretold as (batch, raters, classes, *spatial).

    One minus the Dice of each rater's drawings is added, without which those who draw little are foretold late.

    Examples
    --------
    >>> drawings = torch.tensor([[[[0.5, 0.25], [0.5, 0.75]]]]).log()
    >>> drawing_loss(drawings, torch.tensor([[[0, 255]]], dtype=torch.uint8))  # log 2, and 1 - 1 / 1.5
    tensor(1.0265)
    """
    classes = drawings.shape[2]
    given = is_labelled(labels, classes)
    said = drawings.gather(2, class_index(labels, classes).unsqueeze(2)).squeeze(2)
    return _overlap_of_raters(drawings, labels) - (said * given).sum() / given.sum().clamp_min(1)


def _overlap_of_raters(drawings: Tensor, labels: Tensor) -> Tensor:
    """One minus the Dice of each rater's drawings (batch, raters, classes, *spatial), on average over who labelled."""
    present = is_labelled(labels, drawings.shape[2]).flatten(2).any(dim=2).any(dim=0)
    overlap = [dice_loss(drawings[:, rater], labels[:, rater]) for rater in present.nonzero().flatten().tolist()]
    return torch.stack(overlap).mean() if overlap else drawings.sum() * 0


def _overlap_loss(log_truth: Tensor, target: Tensor) -> Tensor:
    likelihood, _ = loss_at_their_word(log_truth, target.unsqueeze(1))
    return likelihood + dice_loss(log_truth, target)
