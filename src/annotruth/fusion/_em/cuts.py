"""The most probable labelling under a Potts prior, by graph cuts: exact for two classes, by α-expansion for more."""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

import numpy as np

from annotruth.errors import InputError

_MAX_ROUNDS = 10  # of expansions of every class
_LOWEST = -1e6  # log probability of what is impossible


def max_flow() -> ModuleType:
    """PyMaxflow, or a word on how to get it."""
    try:
        import maxflow
    except ImportError as error:
        raise InputError("The graph cut needs PyMaxflow: install annotruth[cuts], or PyMaxflow.") from error
    return maxflow


class _Field(NamedTuple):
    """The pixels that neighbours could change, numbered from 0.

    Attributes
    ----------
    score : (classes, pixels) log probability, with what neighbours add that are certain
    pairs : (2, pairs) neighbours
    """

    score: np.ndarray
    pairs: np.ndarray


def cut_labels(posterior: np.ndarray, shape: tuple[int, ...], strength: float) -> np.ndarray:
    """The labelling T that maximises Σ_pixels log posterior[T] + strength · (pairs of neighbours that are alike).

    Pixels so certain that no neighbours can change them are taken as they are; the others, usually few, are cut.

    Parameters
    ----------
    posterior : (classes, pixels) without the field
    shape : the pixels' grid, of any dimension; neighbours share a face
    strength : log odds that a neighbour of a class adds to it

    Returns
    -------
    (pixels,) uint8

    Examples
    --------
    >>> row = np.array([0.9, 0.4, 0.9])
    >>> cut_labels(np.stack([row, 1 - row]), (3,), strength=1.0)
    array([0, 0, 0], dtype=uint8)
    """
    labels = posterior.argmax(axis=0).astype(np.uint8)
    if len(posterior) == 1 or strength == 0:
        return labels
    highest, second = (np.partition(posterior, -place, axis=0)[-place] for place in (1, 2))
    doubtful = np.flatnonzero(highest <= second * np.exp(strength * 2 * len(shape)))
    if not len(doubtful):
        return labels
    field = _field(posterior, labels, doubtful, shape, strength)
    if len(posterior) == 2:
        labels[doubtful] = _expand(field, np.zeros(len(doubtful), dtype=np.uint8), 1, strength)
        return labels
    found = labels[doubtful]
    value = _value(field, found, strength)
    for _ in range(_MAX_ROUNDS):
        before = value
        for label in range(len(posterior)):
            other = _expand(field, found, label, strength)
            if _value(field, other, strength) > value:
                found, value = other, _value(field, other, strength)
        if value <= before + 1e-9 * abs(before):
            break
    labels[doubtful] = found
    return labels


def given_neighbours(
    posterior: np.ndarray, labels: np.ndarray, shape: tuple[int, ...], strength: float
) -> tuple[np.ndarray, float]:
    """Posterior (classes, pixels) float32 of each pixel given its neighbours' labels; the value of the labelling."""
    grid = labels.reshape(shape)
    beside = np.zeros((len(posterior), *shape), dtype=np.float32)
    alike = 0
    for axis in range(len(shape)):
        low = tuple(slice(-1) if a == axis else slice(None) for a in range(len(shape)))
        high = tuple(slice(1, None) if a == axis else slice(None) for a in range(len(shape)))
        alike += int((grid[low] == grid[high]).sum())
        for label in range(len(posterior)):
            beside[label][low] += grid[high] == label
            beside[label][high] += grid[low] == label
    beside = beside.reshape(len(posterior), -1)
    with np.errstate(divide="ignore"):
        score = np.log(posterior, dtype=np.float32) + np.float32(strength) * beside
    score = np.exp(score - score.max(axis=0))
    chosen = np.take_along_axis(posterior, labels[None].astype(np.int64), axis=0)[0].astype(np.float64)
    value = float(np.log(np.maximum(chosen, np.finfo(np.float64).tiny)).sum()) + strength * alike
    return score / score.sum(axis=0), value


def _field(
    posterior: np.ndarray, labels: np.ndarray, doubtful: np.ndarray, shape: tuple[int, ...], strength: float
) -> _Field:
    number = np.full(len(labels), -1, dtype=np.int64)
    number[doubtful] = np.arange(len(doubtful))
    with np.errstate(divide="ignore"):
        score = np.maximum(np.log(posterior[:, doubtful].astype(np.float64)), _LOWEST)
    place = np.unravel_index(doubtful, shape)
    pairs, stride = [], 1
    for axis in range(len(shape) - 1, -1, -1):
        for step in (-1, 1):
            inside = np.flatnonzero(place[axis] > 0 if step < 0 else place[axis] < shape[axis] - 1)
            beside = doubtful[inside] + step * stride
            certain = number[beside] < 0
            score[labels[beside[certain]], inside[certain]] += strength  # a pixel has one neighbour on each side
            if step > 0:
                pairs.append(np.stack([inside[~certain], number[beside[~certain]]]))
        stride *= shape[axis]
    return _Field(score, np.concatenate(pairs, axis=1))


def _value(field: _Field, labels: np.ndarray, strength: float) -> float:
    alike = labels[field.pairs[0]] == labels[field.pairs[1]]
    return float(np.take_along_axis(field.score, labels[None].astype(np.int64), axis=0).sum() + strength * alike.sum())


def _expand(field: _Field, labels: np.ndarray, label: int, strength: float) -> np.ndarray:
    """The best labelling in which every pixel keeps its label or takes this one; (pixels,) uint8."""
    first, second = field.pairs
    keeping = -np.take_along_axis(field.score, labels[None].astype(np.int64), axis=0)[0]
    taking = -field.score[label]
    # what a pair costs if neither takes the label, the second does, the first does (both: nothing)
    neither = strength * (labels[first] != labels[second])
    only_second, only_first = strength * (labels[first] != label), strength * (labels[second] != label)
    extra = np.bincount(first, only_first - neither, minlength=len(labels))
    extra -= np.bincount(second, only_first, minlength=len(labels))
    taking = taking + extra
    lowest = np.minimum(keeping, taking)
    graph = max_flow().Graph[float](len(labels), len(first))
    nodes = graph.add_grid_nodes(len(labels))
    graph.add_grid_tedges(nodes, taking - lowest, keeping - lowest)
    graph.add_edges(first, second, only_second + only_first - neither, np.zeros(len(first)))
    graph.maxflow()
    return np.where(graph.get_grid_segments(nodes), np.uint8(label), labels)
