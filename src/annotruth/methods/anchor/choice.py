"""Which labelling is taken for true: what tells all labels most shortly, and the images do not speak against."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

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
from annotruth.methods.anchor.offsets import SHIFTS, beyond_everybody, rater_offsets
from annotruth.methods.base import Batch
from annotruth.metrics.edges import blurred, edge_information, near_borders, shade_lengths
from annotruth.validation import MISSING_PIXEL

MOST_ITEMS = 256
"""Items on which labellings are compared: with one label each, a quarter of these left some tied that are not."""
ENOUGH_ITEMS, MOST_BYTES = 8, 2**27
"""So many are enough where labellings and distances of them take more memory than this, and minutes, with large images
or many raters."""
AT_ONCE = 16
"""Items that are looked at together, or a few more."""
LEAST_FORETOLD, MOSTLY_DRAWN = 0.7, 0.5
"""What is foretold is learnt from only where it is like what was drawn, by this Dice; else a labelling must be one that
was drawn, by several people, on at least this share of the items, or labels are taken at their word."""
GOOD = 0.75
"""Where good items begin, in the order in which drawings are like what is foretold: more than half may be bad."""
ON_EDGES, LEAST_ON_EDGES = 0.85, 0.05
"""Borders lie on edges of the images if these tell at least this share of what they tell of the labelling, of those
that people gave, of which they tell most; where that is less than the second number, images say nothing of borders."""
CLEARLY_ON_EDGES = 1.1
"""The same share of borders that lie farther out, or farther in, than anybody drew them: a smaller object has a shorter
border, and takes a shorter message for that alone."""
SEEN_ELSEWHERE = 0.6
"""Images that tell less than this share of what they tell of some other labelling show borders elsewhere."""
BEYOND_CHANCE = 3.0
"""Standard errors over items by which a message must be shorter for another labelling to be refused."""


def choose(model: AnchoredModel, batches: Iterable[Batch]) -> None:
    """Take the labelling that tells all labels in the fewest words, of those that the images do not speak against.

    Of labellings between which chance may decide, it is the one that is most like what all drew: as foretold, unless
    drawings are foretold badly.
    """
    raters, classes = model.annotators.raters, model.annotators.classes
    some = _together(_enough(batches, len(model.lengths) + 8 * raters * (classes - 1)))  # distances, drawn and foretold
    labels = [item for batch in some for item in batch.labels.cpu().numpy()]
    candidates = _candidates(model, some, labels)
    told = [_tell(candidates, number, labels) for number in range(len(model.lengths))]
    model.lengths.copy_(torch.tensor([each.lengths.mean() for each in told]))
    foretold_well = _is_foretold_well(candidates, raters)
    able = _able(told, labels, raters, classes, 0.0 if foretold_well else MOSTLY_DRAWN)
    drawn = [_by_batch(each.labelling, some) for each in told]
    images = [blurred(each.images.cpu().numpy()) for each in some]
    shown = [edge_information(labelling, images, classes) for labelling in drawn]
    able = _on_edges(able, shown, raters, _beyond_everybody(model.offsets))
    able = _not_beaten(_lengths_with_shades(able, told, drawn, some, images, classes), BEYOND_CHANCE)
    tied = {
        number: _items(each.foretold(number) for each in candidates) if foretold_well else told[number].labelling
        for number in _not_beaten({number: told[number].lengths for number in able})
    }
    chosen = max(tied, key=lambda number: mean_overlap(tied[number], labels, classes))
    model.anchor.fill_(chosen)
    model.least_agreement.copy_(torch.tensor(_least_agreement(candidates, chosen, told[chosen].forms)))
    model.rival.fill_(_rival(chosen, told, shown, raters))


def _candidates(model: AnchoredModel, some: list[Batch], labels: list[np.ndarray]) -> list[Labellings]:
    """Labellings of all batches, once raters' matrices and offsets are known, which are found on the way."""
    raters, classes = model.annotators.raters, model.annotators.classes
    model.log_confusion.copy_(torch.from_numpy(fused_confusion(labels, raters, classes)))
    model.offsets.fill_(0.0)
    seen = [(model.log_truth(each.images), model.annotators.foretell(each.images)[0], each.labels) for each in some]
    candidates = [model.labellings(*each) for each in seen]

    def offsets(number: int) -> Tensor:
        return rater_offsets([each.labels for each in some], [_either(each, number) for each in candidates], classes)

    first = raters + len(TOGETHER)  # of everybody's borders
    for number in (raters + TOGETHER.index(VOTE), first + SHIFTS.index(0.0)):
        model.offsets[first:] = offsets(number) + torch.tensor(SHIFTS).view(-1, 1, 1)
        candidates = [model.labellings(*each) for each in seen]
    model.offsets[:first] = torch.stack([offsets(number) for number in range(first)])
    return [model.labellings(*each) for each in seen]


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


def _lengths_with_shades(
    able: Sequence[int],
    told: Sequence[Told],
    drawn: Sequence[list[np.ndarray]],
    some: Sequence[Batch],
    images: Sequence[np.ndarray],
    classes: int,
) -> dict[int, np.ndarray]:
    """Nats (items,) that it takes to tell all labels by some labellings, and shades near given borders."""
    given = [[drawn[number][batch] for number in _given(some[0].labels.shape[1])] for batch in range(len(some))]
    looked_at = [
        near_borders(each, classes) & (batch.labels != MISSING_PIXEL).any(dim=1).cpu().numpy()
        for each, batch in zip(given, some)
    ]
    return {number: told[number].lengths + shade_lengths(drawn[number], images, looked_at, classes) for number in able}


def _on_edges(able: Sequence[int], shown: Sequence[float], raters: int, beyond: Container[int] = ()) -> list[int]:
    """The numbers of those labellings whose borders lie on edges of the images, beside those that people gave.

    Parameters
    ----------
    shown : (labellings,) how much images tell of each
    beyond : labellings that must lie on edges clearly
    """
    most = max((shown[number] for number in _given(raters) if number in able), default=0.0)
    least, clearly = (0.0, np.inf) if most < LEAST_ON_EDGES else (ON_EDGES * most, CLEARLY_ON_EDGES * most)
    return [number for number in able if shown[number] >= (clearly if number in beyond else least)]


def _rival(chosen: int, told: Sequence[Told], shown: Sequence[float], raters: int) -> int:
    """Another labelling that speaks against the one that is taken, if there is one."""
    elsewhere = int(np.argmax(shown))
    if shown[elsewhere] >= LEAST_ON_EDGES and shown[chosen] < SEEN_ELSEWHERE * shown[elsewhere]:
        return elsewhere
    shortest = min(range(len(told)), key=lambda number: float(told[number].lengths.mean()))
    return shortest if chosen == raters + TOGETHER.index(WORD) != shortest else UNDECIDED


def _given(raters: int) -> list[int]:
    """The numbers of what people gave, alone or together."""
    return [*range(raters), *(raters + TOGETHER.index(name) for name in (VOTE, FUSED))]


def _beyond_everybody(offsets: Tensor) -> list[int]:
    """The numbers of those labellings of moved borders that lie within, or outside of, everybody's drawings."""
    beyond = beyond_everybody(offsets).tolist()
    return [number for number in range(offsets.shape[1] + len(TOGETHER), len(offsets)) if beyond[number]]


def _not_beaten(lengths: Mapping[int, np.ndarray], errors: float = 1.0) -> list[int]:
    """The numbers of those messages (items,) than which the shortest is not shorter by so many standard errors."""
    shortest = min(lengths.values(), key=lambda each: float(each.mean()))
    return [number for number, each in lengths.items() if not first_is_shorter(shortest, each, errors)]


def _by_batch(items: list[np.ndarray], batches: Sequence[Batch]) -> list[np.ndarray]:
    ends = np.cumsum([len(each.labels) for each in batches])
    return [np.stack(items[end - len(each.labels) : end]) for each, end in zip(batches, ends)]


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


def _together(batches: Sequence[Batch]) -> list[Batch]:
    """The same items in larger batches, which are looked at sooner; images of other sizes stay apart."""
    groups: list[list[Batch]] = []
    for batch in batches:
        last = groups[-1] if groups else []
        if last and last[0].images.shape[1:] == batch.images.shape[1:] and sum(len(b.labels) for b in last) < AT_ONCE:
            last.append(batch)
        else:
            groups.append([batch])
    return [
        Batch(torch.cat([each.images for each in group]), torch.cat([each.labels for each in group]))
        for group in groups
    ]
