"""Items that none of the raters can settle: for an expert, or to be dropped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from annotruth.choosing.queue.information import entropy, information
from annotruth.choosing.queue.posteriors import ItemPosteriors, slots, sum_rows

IN_DOUBT = 0.05
"""An item is in doubt if its most probable class is wrong with at least this probability."""
LITTLE = 0.05
"""A label that takes away less than this share of the doubt does not pay."""
NEAR_PRIOR = 0.9
"""Doubt of this share of the prior's is as if nobody had labelled the item."""
MIN_LABELS = 2
"""Without this many labels, it is too early to give an item up."""


@dataclass(frozen=True)
class Unsettled:
    """Items that no rater can settle, those in most doubt first.

    Attributes
    ----------
    experts : positions of items on which the raters' labels leave doubt that nobody still free could take away: whoever
        knows better should decide
    hopeless : positions of items that were labelled, and of which as much as nothing is known, and as much as nothing
        would be even if everybody still free labelled them
    doubt : (items,) entropy in nats
    """

    experts: np.ndarray
    hopeless: np.ndarray
    doubt: np.ndarray


def find_unsettled(known: ItemPosteriors, best: np.ndarray, free: np.ndarray, ordered: set[int]) -> Unsettled:
    """Find what no rater can settle.

    Parameters
    ----------
    best : (items,) largest gain that a label of each has, -inf where nobody is left
    free : bool (raters,) who can be asked
    ordered : items that labels are ordered for

    Notes
    -----
    All labels together tell at most the sum of what each tells alone, since they are independent given the truth: what
    is left of the doubt after everybody's label is at least the doubt less that sum.
    """
    doubt = known.sums(entropy(known.posterior) * known.weight)
    wrong = known.sums((1 - known.posterior.max(axis=1, initial=0)) * known.weight)
    weight = known.sums(known.weight)
    unsettled = (wrong >= IN_DOUBT * np.maximum(weight, 1e-300)) & (weight > 0) & (best < LITTLE * doubt)
    unsettled[list(ordered)] = False
    found = np.flatnonzero(unsettled)
    found = found[np.argsort(-doubt[found], kind="stable")]
    together = np.zeros(len(found))
    raters = np.flatnonzero(free)
    step = max(1, 2**22 // max(len(raters) * len(known.classes), len(known.raters), 1))
    for start in range(0, len(found) if len(raters) else 0, step):
        items = found[start : start + step]
        place, row = slots(known.first_row, items)
        gain = information(known.posterior[row], known.confusion[raters]) * known.weight[row, None]
        gain = sum_rows(gain, np.searchsorted(place, np.arange(len(items) + 1)))
        together[start : start + step] = np.where(known.labelled(items)[:, raters], 0.0, gain).sum(axis=1)
    whole = weight if known.whole is None else known.whole
    as_before = NEAR_PRIOR * float(entropy(known.prior)) * whole[found]
    hopeless = (doubt[found] - together >= as_before) & (known.n_labels[found] >= MIN_LABELS)
    return Unsettled(found[~hopeless], found[hopeless], doubt)
