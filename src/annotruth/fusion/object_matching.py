"""Which raters' objects are the same one: overlaps, and the assignment that makes them largest (Kuhn, 1955).

An object of a rater goes with at most one of every other rater's. Classes do not count: two people who mark the same
thing under different names still mark the same thing.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from annotruth.data.objects import Objects
from annotruth.errors import InputError

MAX_PASSES = 20


def overlaps(objects: Objects, ones: np.ndarray, others: np.ndarray, max_distance: float = 10.0) -> np.ndarray:
    """How much objects have in common, (ones, others) from 0 to 1.

    Intersection over union of their pixels where both have areas, of their boxes otherwise; for points, 1 less their
    distance over ``max_distance``.

    Parameters
    ----------
    ones, others : numbers of objects
    """
    one, other = objects.boxes[ones], objects.boxes[others]
    shared = box_iou(one, other)
    centre = (one[:, None, :2] + one[:, None, 2:]) / 2 - (other[None, :, :2] + other[None, :, 2:]) / 2
    near = np.clip(1 - np.hypot(centre[..., 0], centre[..., 1]) / max_distance, 0, 1)
    point = _is_point(one)[:, None] | _is_point(other)[None]
    found = np.where(point, near, shared)
    for row, column in np.argwhere((shared > 0) & ~point):
        first, second = objects.areas[ones[row]], objects.areas[others[column]]
        if first is not None and second is not None:
            found[row, column] = _area_iou(first, one[row], second, other[column])
    return found


def box_iou(ones: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Intersection over union of boxes (n, 4) and (m, 4): (n, m); 0 where both are empty.

    Examples
    --------
    >>> box_iou(np.array([[0, 0, 4, 4]]), np.array([[0, 0, 4, 2], [2, 2, 6, 6], [9, 9, 10, 10]])).round(3)
    array([[0.5  , 0.143, 0.   ]])
    """
    return paired_iou(ones[:, None], others[None])


def paired_iou(ones: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Intersection over union of boxes (..., 4), each with its own partner; 0 where both are empty."""
    low, high = np.maximum(ones[..., :2], others[..., :2]), np.minimum(ones[..., 2:], others[..., 2:])
    both = np.prod(np.clip(high - low, 0, None), axis=-1).astype(np.float64)
    first, second = (np.prod(boxes[..., 2:] - boxes[..., :2], axis=-1) for boxes in (ones, others))
    either = first + second - both
    return np.divide(both, either, out=np.zeros_like(both), where=either > 0)


def match(overlap: np.ndarray, min_overlap: float = 0.5) -> list[tuple[int, int]]:
    """Pairs of rows and columns with the largest sum of overlaps, none below ``min_overlap``; each is in one at most.

    Examples
    --------
    >>> match(np.array([[0.9, 0.8], [0.7, 0.0]]))
    [(0, 1), (1, 0)]
    """
    allowed = np.where(overlap >= min_overlap, overlap, 0.0)
    rows, columns = linear_sum_assignment(-allowed)
    return [(int(row), int(column)) for row, column in zip(rows, columns) if allowed[row, column] > 0]


def group_objects(objects: Objects, min_overlap: float = 0.5, max_distance: float = 10.0) -> np.ndarray:
    """Number the things that raters marked: (objects,), the same number for the same thing.

    Raters join one after the other, by the assignment with the largest mean overlap with those that are in a group
    already; then each one's objects are taken out and assigned anew, until nothing changes.

    Parameters
    ----------
    min_overlap : mean overlap with a group from which an object belongs to it
    max_distance : pixels between points at which they have nothing in common

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"item": "a", "rater": ["ann", "ann", "bob"], "label": "cell", "x1": [0, 20, 1],
    ...                       "y1": [0, 20, 0], "x2": [10, 30, 10], "y2": [10, 30, 10]})
    >>> group_objects(Objects.from_table(frame))
    array([0, 1, 0])
    """
    if not 0 < min_overlap <= 1:
        raise InputError(f"min_overlap lies above 0, and at 1 at most, not at {min_overlap}.")
    if not max_distance > 0:
        raise InputError(f"max_distance is a number of pixels above 0, not {max_distance}.")
    groups = np.full(len(objects), -1, dtype=np.int64)
    first = 0
    order = np.argsort(objects.item, kind="stable")
    for here in np.split(order, np.flatnonzero(np.diff(objects.item[order])) + 1) if len(order) else []:
        found = _group_item(overlaps(objects, here, here, max_distance), objects.rater[here], min_overlap)
        groups[here] = first + found
        first += int(found.max()) + 1
    return groups


def _group_item(overlap: np.ndarray, rater: np.ndarray, min_overlap: float) -> np.ndarray:
    """Groups of one item's objects, numbered from 0."""
    # Whoever agrees most with the others begins.
    agreement = {who: float(np.where(rater != who, overlap[rater == who], 0).max(axis=1).sum()) for who in set(rater)}
    raters = sorted(agreement, key=lambda who: (-agreement[who], who))
    groups = np.full(len(rater), -1, dtype=np.int64)
    for number in range(MAX_PASSES):
        before = groups.copy()
        for who in raters:
            own = np.flatnonzero(rater == who)
            groups[own] = -1
            groups[own] = _assign(overlap[own], groups, min_overlap)
        groups = np.unique(groups, return_inverse=True)[1]
        if number and _same_partition(before, groups):
            break
    # Numbered in the order of first appearance, so that the result does not depend on the way there.
    first = {group: place for place, group in enumerate(dict.fromkeys(groups.tolist()))}
    return np.array([first[group] for group in groups.tolist()])


def _assign(overlap: np.ndarray, groups: np.ndarray, min_overlap: float) -> np.ndarray:
    """Groups for objects (n, all) among those of others; new ones where they fit none."""
    there = [group for group in np.unique(groups) if group >= 0]
    fresh = int(groups.max(initial=-1)) + 1 + np.arange(len(overlap))
    if not there:
        return fresh
    mean = np.stack([overlap[:, groups == group].mean(axis=1) for group in there], axis=1)
    for row, column in match(mean, min_overlap):
        fresh[row] = there[column]
    return fresh


def _same_partition(ones: np.ndarray, others: np.ndarray) -> bool:
    return len(set(zip(ones.tolist(), others.tolist()))) == len(set(ones.tolist())) == len(set(others.tolist()))


def _is_point(boxes: np.ndarray) -> np.ndarray:
    return (boxes[:, :2] == boxes[:, 2:]).all(axis=1)


def _area_iou(first: np.ndarray, first_box: np.ndarray, second: np.ndarray, second_box: np.ndarray) -> float:
    """Intersection over union of two areas in their boxes."""
    left, top = np.maximum(first_box[:2], second_box[:2]).astype(int)
    right, bottom = np.minimum(first_box[2:], second_box[2:]).astype(int)
    parts = []
    for area, box in ((first, first_box), (second, second_box)):
        x, y = box[:2].astype(int)
        parts.append(area[top - y : bottom - y, left - x : right - x])
    both = int((parts[0] & parts[1]).sum())
    return both / max(int(first.sum()) + int(second.sum()) - both, 1)
