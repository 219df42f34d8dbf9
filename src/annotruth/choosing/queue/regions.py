"""Cases with masks as rows of posteriors: where pixels are in doubt, counted by regions and not by pixels.

Neighbouring pixels are in doubt for the same reason, and one stroke settles them together. A region of doubt is what
hangs together of the pixels whose most probable class is less sure than ``CERTAIN``. It counts as the square root of
its area, each of its pixels as an equal share of that; pixels outside of all regions count for nothing, however many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod

import numpy as np
from scipy import ndimage

from annotruth.choosing.queue.posteriors import ItemPosteriors, rater_matrices, shared_items
from annotruth.fusion.base import FusionEstimator

CERTAIN = 0.95
"""A pixel whose most probable class is surer than this is in no doubt."""
_MAX_ROWS = 64
_GRIDS = (50, 20, 10, 5, 2)  # steps of a probability that are told apart when pixels are put together


@dataclass(frozen=True)
class CaseRows:
    """The doubt about one case.

    Attributes
    ----------
    posterior : (rows, classes) distinct posteriors of pixels in doubt, about the same ones put together
    weight : (rows,) how many independent pieces of doubt each stands for
    size : (rows,) pixels
    sure, total : pixels outside of regions that are expected to be right; pixels of the case
    words : what there is to be seen
    """

    posterior: np.ndarray
    weight: np.ndarray
    size: np.ndarray
    sure: float
    total: int
    words: str


def find_doubt(probability: np.ndarray, classes: tuple[str, ...], labelled: bool = True) -> CaseRows:
    """Sum up the doubt about one case.

    Parameters
    ----------
    probability : (classes, *spatial) posterior
    labelled : whether anybody labelled the case

    Examples
    --------
    >>> lesion = np.zeros((8, 8))
    >>> lesion[2:4, 2:6] = 0.5
    >>> found = find_doubt(np.stack([1 - lesion, lesion]), ("background", "lesion"))
    >>> found.posterior, found.weight.round(2), found.size
    (array([[0.5, 0.5]]), array([2.83]), array([8.]))
    >>> found.words
    '1 region in doubt, of 8 pixels, background or lesion'
    """
    flat = probability.reshape(len(probability), -1)
    best = flat.max(axis=0)
    in_doubt = best < CERTAIN
    shape = probability.shape[1:]
    touching = ndimage.generate_binary_structure(len(shape), len(shape))
    region, count = ndimage.label(in_doubt.reshape(shape), structure=touching)
    pixels = np.flatnonzero(in_doubt)
    number = region.reshape(-1)[pixels]
    area = np.bincount(number, minlength=count + 1)
    share = 1 / np.sqrt(area[number])
    doubtful = flat[:, pixels].T.astype(np.float64)
    row = _alike(doubtful)
    weight = np.bincount(row, share)
    posterior = np.stack([np.bincount(row, share * column) for column in doubtful.T], axis=1) / weight[:, None]
    sure = float(best.sum(dtype=np.float64) - best[pixels].sum(dtype=np.float64))
    words = "nobody has labelled it" if not labelled else describe_regions(doubtful, number, area, classes)
    return CaseRows(posterior, weight, np.bincount(row).astype(np.float64), sure, flat.shape[1], words)


def _alike(posterior: np.ndarray) -> np.ndarray:
    """Row (pixels,) of each posterior (pixels, classes): about the same ones share a row, and rows are few."""
    if not len(posterior):
        return np.zeros(0, dtype=np.int64)
    mix = np.random.default_rng(0).integers(1, 2**40, posterior.shape[1])
    row = np.zeros(len(posterior), dtype=np.int64)
    for grid in _GRIDS:
        _, row = np.unique(np.rint(posterior * grid).astype(np.int64) @ mix, return_inverse=True)
        if row.max() < _MAX_ROWS:
            break
    return row


def describe_regions(posterior: np.ndarray, number: np.ndarray, area: np.ndarray, classes: tuple[str, ...]) -> str:
    """Say what there is to be seen of regions of doubt.

    Parameters
    ----------
    posterior : (pixels in doubt, classes)
    number : (pixels in doubt,) the region of each, from 1 up
    area : (regions + 1,) pixels of each region
    """
    count = len(area) - 1
    if count <= 0:
        return "no pixel is in doubt"
    largest = int(area[1:].argmax()) + 1
    mean = posterior[number == largest].mean(axis=0)
    first, second = sorted(np.argsort(-mean, kind="stable")[:2].tolist())
    seen = "1 region in doubt, of" if count == 1 else f"{count} regions in doubt, the largest of"
    many = "1 pixel" if area[largest] == 1 else f"{area[largest]} pixels"
    return f"{seen} {many}, {classes[first]} or {classes[second]}"


def mask_posteriors(
    fused: FusionEstimator, tell: Callable[[int, int], None] = lambda done, total: None
) -> ItemPosteriors:
    """Cases with masks, from an estimator that was fitted to them; one case is read at a time."""
    labelled = fused.labelled_cases()
    sizes = np.array([prod(fused.case_shape(index)) for index in range(len(fused.items_))])
    confusion = rater_matrices(fused, sizes[:, None] * labelled)
    sober = fused.with_confusion(confusion) if fused.scope == "dataset" and not fused.refines else fused

    def each() -> Iterable[CaseRows]:
        for index in range(len(fused.items_)):
            yield find_doubt(sober.predict_proba_item(index), fused.classes_, bool(labelled[index].any()))
            tell(index + 1, len(fused.items_))

    return join_cases(each(), fused.items_, fused.raters_, fused.classes_, confusion, fused.prior_, labelled)


def join_cases(
    cases: Iterable[CaseRows],
    items: tuple[str, ...],
    raters: tuple[str, ...],
    classes: tuple[str, ...],
    confusion: np.ndarray,
    prior: np.ndarray,
    labelled: np.ndarray,
) -> ItemPosteriors:
    """Put cases together.

    Parameters
    ----------
    confusion, prior : (raters, classes, classes) and (classes,)
    labelled : bool (items, raters) who labelled anything of which case
    """
    rows = list(cases)
    first = np.concatenate([[0], np.cumsum([len(case.posterior) for case in rows])])
    item, rater = np.nonzero(labelled)
    first_label = np.searchsorted(item, np.arange(len(items) + 1))
    return ItemPosteriors(
        items=items, raters=raters, classes=classes,
        posterior=np.concatenate([case.posterior for case in rows]),
        weight=np.concatenate([case.weight for case in rows]), size=np.concatenate([case.size for case in rows]),
        first_row=first, sure=sum(case.sure for case in rows), total=float(sum(case.total for case in rows)),
        confusion=confusion, prior=prior, first_label=first_label, rater_of=rater,
        evidence=shared_items(first_label, rater, len(raters)), describe=lambda index: rows[index].words,
    )  # fmt: skip
