"""Cases with masks as rows of posteriors: where pixels are in doubt, counted by the size of what is drawn.

Pixels whose most probable class is surer than ``CERTAIN`` count for nothing, however many. Each of the others counts as
one part of the foreground, as it does in Dice: ten doubtful pixels are much of a small lesion and little of a lung.
A region is what hangs together of the pixels in doubt. Its pixels are in doubt for the same reason, and right or wrong
together: for the spread of what is expected it is as many independent pieces as the square root of its area.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from scipy import ndimage

from annotruth.choosing.queue.posteriors import SHRINKAGE, ItemPosteriors, rater_matrices, shared_items
from annotruth.data.answers import Answers
from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.em import confusion_from_counts
from annotruth.fusion.state import FusionState
from annotruth.fusion.votes import Votes

CERTAIN = 0.95
"""A pixel whose most probable class is surer than this is in no doubt."""
SLIP = 0.1
"""How often a mask is taken to have gone wrong as a whole."""
_MAX_ROWS = 64
_GRIDS = (50, 20, 10, 5, 2)  # steps of a probability that are told apart when pixels are put together


@dataclass(frozen=True)
class CaseRows:
    """The doubt about one case.

    Attributes
    ----------
    posterior : (rows, classes) distinct posteriors of pixels in doubt, about the same ones put together
    weight : (rows,) pixels, as a share of the foreground that is to be expected
    pieces : (rows,) how many independent pieces of doubt each stands for
    size : (rows,) pixels
    sure, total : pixels outside of regions that are expected to be right; pixels of the case
    foreground : pixels that the foreground is expected to have
    words : what there is to be seen
    """

    posterior: np.ndarray
    weight: np.ndarray
    pieces: np.ndarray
    size: np.ndarray
    sure: float
    total: int
    foreground: float
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
    >>> found.posterior, found.weight.round(2), found.pieces.round(2), found.size
    (array([[0.5, 0.5]]), array([2.]), array([2.83]), array([8.]))
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
    size = np.bincount(row).astype(np.float64)
    posterior = np.stack([np.bincount(row, column) for column in doubtful.T], axis=1) / size[:, None]
    sure = float(best.sum(dtype=np.float64) - best[pixels].sum(dtype=np.float64))
    words = "nobody has labelled it" if not labelled else describe_regions(doubtful, number, area, classes)
    foreground = foreground_size(flat)
    pieces = np.bincount(row, share)
    return CaseRows(posterior, size / foreground, pieces, size, sure, flat.shape[1], foreground, words)


def foreground_size(posterior: np.ndarray, pixels: np.ndarray | None = None) -> float:
    """How many pixels the foreground, all classes but the first, is expected to have; at least one.

    What is certain counts as its class, lest a whole picture that is nearly certain makes up a foreground.

    Parameters
    ----------
    posterior : (classes, rows)
    pixels : (rows,) that each row stands for; one by default

    Examples
    --------
    >>> foreground_size(np.array([[0.9, 0.5, 0.0], [0.1, 0.5, 1.0]]), pixels=np.array([10, 2, 6]))
    8.0
    """
    shares = np.where(posterior.max(axis=0) < CERTAIN, 1.0 - posterior[0], posterior.argmax(axis=0) > 0)
    return max(float(shares.sum() if pixels is None else shares @ pixels), 1.0)


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


def wary_posterior(estimator: FusionEstimator, votes: Votes, state: FusionState) -> np.ndarray:
    """Posterior (rows, classes) of masks' votes, if one of the masks may have slipped.

    Raters slip on a case as a whole: they mix up two classes, or draw all of it too large. Pixels fused as if they were
    independent know nothing of that, and two slips of three masks leave them in no doubt. So each mask is left out in
    turn: with a chance s of a slip, what the others say is mixed in, in proportion to s beside 1 - s for no slip.

    Examples
    --------
    >>> import annotruth as at
    >>> votes = Votes.from_patterns(np.array([[1, 1], [1, 0]], np.uint8), np.ones(2), np.full(2, 255), n_classes=2)
    >>> good = np.tile([[0.9, 0.1], [0.1, 0.9]], (2, 1, 1))
    >>> state = FusionState(good, np.zeros((2, 2, 2)), prior=np.array([0.5, 0.5]))
    >>> wary_posterior(at.DawidSkene(), votes, state)[:, 1].round(3)  # by itself, Bayes' rule says 0.988 and 0.5
    array([0.972, 0.5  ])
    """
    answers = votes.answers
    posterior = estimator.posterior(votes, state)
    mixed, parts = (1 - SLIP) * posterior, np.full((len(posterior), 1), 1 - SLIP)
    for rater in np.unique(answers.rater).tolist():
        own = answers.rater == rater
        others = Answers(answers.item[~own], answers.rater[~own], answers.label[~own])
        rows = answers.item[own]
        mixed[rows] += SLIP * estimator.posterior(replace(votes, answers=others), state)[rows]
        parts[rows] += SLIP
    return np.asarray(mixed / parts)


def drawn_counts(votes: Votes, posterior: np.ndarray) -> np.ndarray:
    """How often raters called what is what, (raters, classes, classes) [true, observed], where a case is drawn on.

    Most of a picture is plain background, and says nothing of who is right where it matters. So only those pixels count
    that somebody called something else, and several labelled; and, as neighbours err together, n of them as the square
    root of n.

    Parameters
    ----------
    votes : of one case
    posterior : (rows of the votes, classes)

    Examples
    --------
    >>> masks = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 0]], dtype=np.uint8)  # the third missed what the others saw
    >>> votes = Votes.from_patterns(masks, np.array([3, 1, 9]), np.full(3, 255), n_classes=2)
    >>> drawn_counts(votes, np.array([[0.0, 1.0], [0.2, 0.8], [1.0, 0.0]]))[:, 1]
    array([[0. , 1.9],
           [0. , 1.9],
           [0.4, 1.5]])
    """
    answers = votes.answers
    drawn = np.bincount(answers.item, answers.label > 0, minlength=votes.n_rows) > 0
    weight = np.where(drawn & (np.diff(votes.first_answer) > 1), votes.weight, 0.0)
    counts = np.zeros((votes.n_raters, votes.n_classes, votes.n_classes))  # [observed, true]
    np.add.at(counts, (answers.rater, answers.label), (posterior * weight[:, None])[answers.item])
    return counts.transpose(0, 2, 1) / np.sqrt(max(weight.sum(), 1.0))


def mask_posteriors(
    fused: FusionEstimator, tell: Callable[[int, int], None] = lambda done, total: None
) -> ItemPosteriors:
    """Cases with masks, from an estimator that was fitted to them; one case is read at a time."""
    labelled = fused.labelled_cases()
    sizes = np.array([prod(fused.case_shape(index)) for index in range(len(fused.items_))])
    confusion = rater_matrices(fused, sizes[:, None] * labelled)
    sober = fused.with_confusion(confusion) if fused.scope == "dataset" and not fused.refines else fused

    counts = np.zeros_like(confusion)
    cases = []
    for index in range(len(fused.items_)):
        if fused.refines:
            probability = fused.predict_proba_item(index)
        else:
            case = fused.case(index)
            posterior = wary_posterior(fused, case.votes, sober.case_state(index))
            counts += drawn_counts(case.votes, posterior)
            probability = case.to_pixels(posterior.T.astype(np.float32)).reshape(-1, *case.shape)
        cases.append(find_doubt(probability, fused.classes_, bool(labelled[index].any())))
        tell(index + 1, len(fused.items_))
    # Where little is drawn by several, a rater is as good there as elsewhere, as far as anybody knows.
    confusion = confusion_from_counts(counts, SHRINKAGE * confusion) if counts.any() else confusion
    return join_cases(cases, fused.items_, fused.raters_, fused.classes_, confusion, fused.prior_, labelled)


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
        weight=np.concatenate([case.weight for case in rows]), pieces=np.concatenate([case.pieces for case in rows]),
        size=np.concatenate([case.size for case in rows]),
        first_row=first, sure=sum(case.sure for case in rows), total=float(sum(case.total for case in rows)),
        confusion=confusion, prior=prior, first_label=first_label, rater_of=rater,
        evidence=shared_items(first_label, rater, len(raters)), describe=lambda index: rows[index].words,
        whole=np.array([case.total / case.foreground for case in rows]),
    )  # fmt: skip
