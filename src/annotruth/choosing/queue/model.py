"""What a trained model knows of items, before and after anybody labels them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import entr

from annotruth.choosing.queue.posteriors import ItemPosteriors, posteriors_of_votes
from annotruth.choosing.queue.regions import CaseRows, find_doubt, join_cases
from annotruth.data.annotations import Annotations
from annotruth.data.answers import class_name, sort_answers
from annotruth.errors import InputError, shorten
from annotruth.fusion.em import log_of
from annotruth.fusion.votes import Votes
from annotruth.validation import MISSING_PIXEL

MIN_PROBABILITY = 1e-3
"""No class is less probable by a model's word alone: networks are surer than they should be."""
_BLOCK = 256


def model_posteriors(
    model: Any, annotations: Annotations, progress: Callable[[str, int, int], None], apart: bool = False
) -> tuple[ItemPosteriors, np.ndarray]:
    """What a model says of the items and, by Bayes' rule with the raters' matrices, the labels that they have.

    Parameters
    ----------
    model : a trained Segmenter, Classifier or Ensemble, of the same raters and classes, or more raters
    apart : whether the models of an ensemble are also held against each other

    Returns
    -------
    known : of all items, to be labelled by the raters of the model
    labelled : (raters,) how many training items each labelled
    """
    members = getattr(model, "models", (model,))
    kind = "labels" if members[0].task == "labels" else "masks"
    classes = tuple(class_name(label) for label in np.asarray(model.classes_).tolist())
    _refuse_misfit(annotations, kind, classes, tuple(model.raters_))
    confusion = np.mean([member.confusion_ for member in members], axis=0)
    labelled = np.array([members[0].annotators_[rater].labelled for rater in model.raters_])
    make = _items if kind == "labels" else _cases
    asked = members if apart and len(members) > 1 else ()
    known = make(model, asked, annotations, classes, confusion, progress)
    return replace(known, evidence=np.maximum(known.evidence, labelled)), labelled  # what the model learnt raters from


def add_unlabelled(table: Annotations, everything: Annotations) -> Annotations:
    """A label table with all items that there are images or features of, also those that nobody has labelled.

    Examples
    --------
    >>> table = Annotations.from_answers(np.array([[0, 1]]), items=["b"])
    >>> everything = Annotations.from_answers(np.array([[0], [0]]), items=["a", "b"], images=np.zeros((2, 3)))
    >>> add_unlabelled(table, everything).labelled().tolist()
    [[False, False], [True, True]]
    """
    position = {item: number for number, item in enumerate(everything.items)}
    missing = [item for item in table.items if item not in position]
    if missing:
        raise InputError(
            f"There are no pictures or features of {len(missing)} of {len(table)} items: {shorten(missing)}. Add them, "
            "or remove their labels."
        )
    place = np.array([position[item] for item in table.items], dtype=np.int32)
    answers = table.answers
    return Annotations(
        kind="labels", items=everything.items, raters=table.raters, classes=table.classes, images=everything._images,
        answers=sort_answers(place[answers.item], answers.rater, answers.label),
    )  # fmt: skip


def _refuse_misfit(annotations: Annotations, kind: str, classes: tuple[str, ...], raters: tuple[str, ...]) -> None:
    """Refuse a model that was trained on something else."""
    if annotations.kind != kind:
        words = {"labels": "a label table", "masks": "masks"}
        raise InputError(
            f"The model was trained on {words[kind]}, and these are {words[annotations.kind]}: they do not fit."
        )
    if classes != annotations.classes:
        raise InputError(
            f"The model does not fit: it tells apart the classes {shorten(classes, 10)}, the labels are of "
            f"{shorten(annotations.classes, 10)}."
        )
    strangers = [rater for rater in annotations.raters if rater not in raters]
    if strangers:
        raise InputError(
            f"The model does not know {shorten(strangers)}: it was trained with {shorten(raters, 10)}. Train it again."
        )
    if not annotations.has_images:
        raise InputError("A model looks at images or features, and there are none: give them beside the labels.")


def _items(
    model: Any,
    members: Sequence[Any],
    annotations: Annotations,
    classes: tuple[str, ...],
    confusion: np.ndarray,
    progress: Callable[[str, int, int], None],
) -> ItemPosteriors:
    found: list[np.ndarray] = []
    alone: list[list[np.ndarray]] = [[] for _ in members]
    for start in range(0, len(annotations), _BLOCK):
        progress("Looking", start, len(annotations))
        some = annotations.take(np.arange(start, min(start + _BLOCK, len(annotations))))
        for member, told in zip(members, alone):
            told.append(member.predict_proba(some))
        found.append(np.mean([told[-1] for told in alone], axis=0) if members else model.predict_proba(some))
    prior = _softened(np.concatenate(found).astype(np.float64), axis=1)
    answers = annotations.answers
    place = np.array([model.raters_.index(rater) for rater in annotations.raters], dtype=np.int32)
    moved = sort_answers(answers.item, place[answers.rater], answers.label)
    votes = Votes.from_answers(moved, len(annotations), len(confusion), len(classes), raters=tuple(model.raters_))
    known = posteriors_of_votes(votes, prior, confusion, annotations.items, classes)
    if not members:
        return known
    likelihood = known.posterior / prior  # up to a factor, what the labels say
    apart = [likelihood * _softened(np.concatenate(told).astype(np.float64), axis=1) for told in alone]
    return replace(known, disagreement=disagreement([one / one.sum(axis=1, keepdims=True) for one in apart], axis=1))


def _cases(
    model: Any,
    members: Sequence[Any],
    annotations: Annotations,
    classes: tuple[str, ...],
    confusion: np.ndarray,
    progress: Callable[[str, int, int], None],
) -> ItemPosteriors:
    place = [model.raters_.index(rater) for rater in annotations.raters]
    labelled = np.zeros((len(annotations), len(confusion)), dtype=bool)
    mean = np.zeros(len(classes))
    apart = np.zeros(len(annotations))

    def each() -> Iterable[CaseRows]:
        for index in range(len(annotations)):
            image, spacing = annotations.item_image(index), annotations.spacing(index)
            prior = _softened(np.asarray(model.predict_proba([image], spacing=spacing)[0], dtype=np.float64), axis=0)
            masks = annotations.item_masks(index)
            labelled[index, place] = (masks != MISSING_PIXEL).reshape(len(masks), -1).any(axis=1)
            posterior = add_labels(prior, masks, confusion[place])
            if members:
                alone = [member.predict_proba([image], spacing=spacing)[0] for member in members]
                told = [add_labels(_softened(np.asarray(one, np.float64), 0), masks, confusion[place]) for one in alone]
                apart[index] = np.sqrt(max(disagreement(told, axis=0).sum(), 0.0))
            mean[:] += posterior.reshape(len(classes), -1).mean(axis=1) / len(annotations)
            yield find_doubt(posterior, classes, bool(labelled[index].any()))
            progress("Looking", index + 1, len(annotations))

    rows = list(each())
    known = join_cases(rows, annotations.items, tuple(model.raters_), classes, confusion, mean, labelled)
    return replace(known, disagreement=apart) if members else known


def disagreement(posteriors: Sequence[np.ndarray], axis: int) -> np.ndarray:
    """How much models disagree, in nats: the entropy of their mean, less the mean of their entropies (BALD).

    Parameters
    ----------
    posteriors : of each model, with the classes along ``axis``

    Examples
    --------
    >>> sure, other, unsure = np.array([[0.99, 0.01]]), np.array([[0.01, 0.99]]), np.array([[0.5, 0.5]])
    >>> disagreement([sure, other], axis=1).round(2), disagreement([unsure, unsure], axis=1).round(2)
    (array([0.64]), array([0.]))
    """
    mean = np.mean(posteriors, axis=0)
    return np.asarray(entr(mean).sum(axis=axis) - np.mean([entr(one).sum(axis=axis) for one in posteriors], axis=0))


def add_labels(prior: np.ndarray, masks: np.ndarray, confusion: np.ndarray) -> np.ndarray:
    """Posterior (classes, *spatial) of pixels with a prior (classes, *spatial) and labels (raters, *spatial).

    Parameters
    ----------
    masks : uint8, 255 = not labelled
    confusion : (raters, classes, classes), [true, observed]

    Examples
    --------
    >>> good = np.array([[[0.9, 0.1], [0.1, 0.9]]])
    >>> add_labels(np.full((2, 1, 2), 0.5), np.array([[[1, 255]]], dtype=np.uint8), good)[1]
    array([[0.9, 0.5]])
    """
    log = np.log(prior)
    for mask, matrix in zip(masks, confusion):
        given = mask != MISSING_PIXEL
        log[:, given] += log_of(np.maximum(matrix, MIN_PROBABILITY))[:, mask[given]]
    log -= log.max(axis=0)
    posterior = np.exp(log)
    return posterior / posterior.sum(axis=0)


def _softened(probability: np.ndarray, axis: int) -> np.ndarray:
    floored = np.maximum(probability, MIN_PROBABILITY)
    return floored / floored.sum(axis=axis, keepdims=True)
