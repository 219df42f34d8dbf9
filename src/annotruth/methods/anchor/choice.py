"""Which labelling is taken for true: what tells all labels most shortly, and the images do not speak against."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from annotruth.methods.anchor.comparing import (
    DRAWN,
    OTHERS,
    Told,
    mean_overlap,
    names_classes_alike,
    separating_threshold,
    tell_all_labels,
)
from annotruth.methods.anchor.edges import blurred, edge_information, near_borders, shade_lengths
from annotruth.methods.anchor.foretelling import first_is_shorter
from annotruth.methods.anchor.labellings import (
    FUSED,
    NEARLY,
    TOGETHER,
    VOTE,
    WORD,
    Labellings,
    fused_confusion,
    overlap,
    overlap_and_area,
)
from annotruth.methods.anchor.model import UNDECIDED, AnchoredModel
from annotruth.methods.anchor.offsets import SHIFTS, rater_offsets
from annotruth.methods.base import Batch
from annotruth.nn.labels import is_labelled
from annotruth.validation import MISSING_PIXEL

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
BEYOND_CHANCE = 3.0
"""Standard errors over items by which a message must be shorter for another labelling to be refused, or, if it is that
of a labelling which was refused itself, for a warning."""


def choose(model: AnchoredModel, batches: Iterable[Batch]) -> None:
    """Take the labelling that tells all labels in the fewest words, of those that the images do not speak against.

    Of labellings between which chance may decide, it is the one that, as foretold, is most like what all drew.
    """
    raters, classes = model.annotators.raters, model.annotators.classes
    some = _enough(batches, len(model.lengths) + 8 * raters * (classes - 1))  # distances as drawn and as foretold
    labels = [item for batch in some for item in batch.labels.cpu().numpy()]
    candidates = _candidates(model, some, labels)
    told = [_tell(candidates, number, labels) for number in range(len(model.lengths))]
    model.lengths.copy_(torch.tensor([each.lengths.mean() for each in told]))
    foretold_well = _is_foretold_well(candidates, raters)
    able = _able(told, labels, raters, classes, 0.0 if foretold_well else MOSTLY_DRAWN)
    able = _borne_out(able, told, some, raters, classes)
    foretold = {
        number: _items(each.foretold(number) for each in candidates)
        for number in _not_beaten({number: told[number].lengths for number in able})
    }
    chosen = max(foretold, key=lambda number: mean_overlap(foretold[number], labels, classes))
    model.anchor.fill_(chosen)
    model.least_agreement.copy_(torch.tensor(_least_agreement(candidates, chosen, told[chosen].forms)))
    refused = int(model.lengths.argmin())
    errors = BEYOND_CHANCE if foretold_well else 0.0
    rivals = first_is_shorter(told[refused].lengths, told[chosen].lengths, errors)
    model.rival.fill_(refused if rivals else UNDECIDED)


def _candidates(model: AnchoredModel, some: list[Batch], labels: list[np.ndarray]) -> list[Labellings]:
    """Labellings of all batches, once raters' matrices and offsets are known, which are found on the way."""
    raters, classes = model.annotators.raters, model.annotators.classes
    model.log_confusion.copy_(torch.from_numpy(fused_confusion(labels, raters, classes)))
    model.offsets.fill_(0.0)
    candidates = [_labellings(model, each) for each in some]

    def offsets(number: int) -> Tensor:
        return rater_offsets([each.labels for each in some], [_either(each, number) for each in candidates], classes)

    first = raters + len(TOGETHER)  # of everybody's borders
    for number in (raters + TOGETHER.index(VOTE), first + SHIFTS.index(0.0)):
        model.offsets[first:] = offsets(number) + torch.tensor(SHIFTS).view(-1, 1, 1)
        candidates = [_labellings(model, each) for each in some]
    model.offsets[:first] = torch.stack([offsets(number) for number in range(first)])
    return [_labellings(model, each) for each in some]


def _labellings(model: AnchoredModel, batch: Batch) -> Labellings:
    drawings, _ = model.annotators.foretell(batch.images)
    return model.labellings(model.log_truth(batch.images), drawings, batch.labels)


def _tell(candidates: Sequence[Labellings], number: int, labels: list[np.ndarray]) -> Told:
    """How shortly one of the labellings tells all labels."""
    foretold, drawn, others = (
        _items(form(number) for form in forms)
        for forms in zip(*((each.foretold, each.drawn, each.by_others) for each in candidates))
    )
    raters, classes = candidates[0].raters, candidates[0].classes
    return tell_all_labels(foretold, drawn, others, labels, classes, number if number < raters else None)


def _able(told: Sequence[Told], labels: list[np.ndarray], raters: int, classes: int, mostly_drawn: float) -> list[int]:
    """The numbers of labellings that call classes by their names, and were drawn, by several, on such a share of items.

    Labels at their word are always among them.
    """
    word, of_several = raters + TOGETHER.index(WORD), _labelled_by_several(labels)
    return [
        number
        for number, each in enumerate(told)
        if number == word
        or (
            min((each.forms == DRAWN).mean(), of_several) >= mostly_drawn
            and names_classes_alike(each.labelling, labels, classes)
        )
    ]


def _borne_out(able: list[int], told: Sequence[Told], some: Sequence[Batch], raters: int, classes: int) -> list[int]:
    """The numbers of those labellings that the images do not speak against.

    They do if borders do not lie on edges, or if labels, and shades near what people gave for borders, are told far
    more shortly by another labelling.
    """
    images = [blurred(each.images) for each in some]
    given = [*range(raters), *(raters + TOGETHER.index(name) for name in (VOTE, FUSED))]
    drawn = {number: _by_batch(told[number].labelling, some) for number in {*able, *given}}
    looked_at = [
        near_borders([drawn[number][batch] for number in given], classes) & is_labelled(each.labels, classes).any(dim=1)
        for batch, each in enumerate(some)
    ]
    return _not_beaten(
        {
            number: told[number].lengths + shade_lengths(drawn[number], images, looked_at, classes)
            for number in _on_edges({number: drawn[number] for number in able}, images, given, classes)
        },
        BEYOND_CHANCE,
    )


def _on_edges(
    labellings: Mapping[int, list[Tensor]], images: Sequence[Tensor], given: Sequence[int], classes: int
) -> list[int]:
    """The numbers of those labellings whose borders lie on edges of the images, beside those that people gave."""
    known = {number: edge_information(labelling, images, classes) for number, labelling in labellings.items()}
    most = max((known[number] for number in given if number in known), default=0.0)
    least = ON_EDGES * most if most >= LEAST_ON_EDGES else 0.0
    return [number for number, share in known.items() if share >= least]


def _not_beaten(lengths: Mapping[int, np.ndarray], errors: float = 1.0) -> list[int]:
    """The numbers of those messages (items,) than which the shortest is not shorter by so many standard errors."""
    shortest = min(lengths.values(), key=lambda each: float(each.mean()))
    return [number for number, each in lengths.items() if not first_is_shorter(shortest, each, errors)]


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
