"""The numbers behind the report on a label table: what the model makes of each item once it knows the answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from annotruth.data.annotations import Annotations
from annotruth.data.answers import Answers
from annotruth.errors import InputError
from annotruth.fusion.em import log_of, truth_posterior
from annotruth.fusion.votes import first_answers
from annotruth.reporting import tiles
from annotruth.reporting.content import RaterRow
from annotruth.reporting.known_truth import KnownTruth, label_truth
from annotruth.reporting.model import Model, check_classes, needs_images
from annotruth.reporting.words import number, percent, short
from annotruth.validation import MISSING_LABEL

MIN_PROBABILITY = 1e-6
"""No answer is taken to be quite impossible: a matrix that says so has not seen enough."""
THUMB = 160
"""Longest side of an item's picture in pixels."""


@dataclass(frozen=True)
class LabelStatistics:
    """All items in order.

    Attributes
    ----------
    predicted : (items, classes) what the network alone makes of each item; None where answers were fused without one
    posterior : (items, classes) what network and answers say together
    """

    ann: Annotations
    predicted: np.ndarray | None
    posterior: np.ndarray

    @cached_property
    def vote(self) -> np.ndarray:
        """(items,) the most frequent answer, of tied ones the likeliest; -1 = nobody answered."""
        answers, (n_items, n_classes) = self.ann.answers, self.posterior.shape
        votes = np.zeros((n_items, n_classes))
        np.add.at(votes, (answers.item, answers.label), 1)
        return np.where(votes.any(axis=1), (votes + self.posterior / 2).argmax(axis=1), MISSING_LABEL)

    @cached_property
    def wrong(self) -> np.ndarray:
        """(items,) chance that this vote is wrong; 0 where nobody answered."""
        right = self.posterior[np.arange(len(self.vote)), self.vote]
        return np.where(self.vote == MISSING_LABEL, 0.0, 1 - right)

    @cached_property
    def agreement(self) -> np.ndarray:
        """(raters,) share of a rater's answers that are the likeliest class; NaN = nothing answered."""
        answers, likeliest = self.ann.answers, self.posterior.argmax(axis=1)
        right = np.bincount(answers.rater, answers.label == likeliest[answers.item], minlength=len(self.ann.raters))
        given = self.answered
        return np.where(given > 0, right / np.maximum(given, 1), np.nan)

    @cached_property
    def answered(self) -> np.ndarray:
        """(raters,) how many answers each gave."""
        return np.bincount(self.ann.answers.rater, minlength=len(self.ann.raters))

    @property
    def shares(self) -> np.ndarray:
        """(classes,) how common each class is."""
        return self.posterior.mean(axis=0)

    @property
    def accuracy(self) -> float | None:
        """Share of items of known truth that the network alone, or else the fusion, classifies rightly."""
        if not self.ann.has_truth:
            return None
        known, told = self.ann.truth != MISSING_LABEL, self.posterior if self.predicted is None else self.predicted
        return float((told.argmax(axis=1) == self.ann.truth)[known].mean()) if known.any() else None

    @property
    def who(self) -> str:
        """Whose accuracy that is."""
        return "fusion" if self.predicted is None else "network"

    @cached_property
    def truth(self) -> KnownTruth | None:
        """Scores of the network alone, and together with the answers, against the truth; None = truth unknown."""
        told = {"network and answers" if self.predicted is not None else "fused answers": self.posterior}
        if self.predicted is not None:
            told = {"network alone": self.predicted, **told}
        return label_truth(self.ann.truth, told) if self.ann.has_truth else None

    def most_suspect(self, count: int) -> np.ndarray:
        """Positions of the answered items whose vote is likeliest wrong, worst first."""
        order = np.argsort(-self.wrong, kind="stable")
        return order[self.vote[order] != MISSING_LABEL][:count]


def label_statistics(model: Model, ann: Annotations) -> LabelStatistics:
    """Weigh what the network says of each item with the answers to it.

    posterior[i, k] ∝ predicted[i, k] · Π_answers confusion[rater, k, label], over the raters that the model knows.
    What was fused holds the answers already.
    """
    if not needs_images(model):
        return LabelStatistics(ann, None, np.asarray(model.predict_proba(ann), dtype=np.float64))
    predicted = np.asarray(model.predict_proba(ann), dtype=np.float64)
    posterior = predicted.copy()
    for who, items, labels in by_rater(ann):
        if who in model.annotators_:
            nobody = np.zeros(len(items), dtype=np.int32)
            alone = Answers(np.arange(len(items), dtype=np.int32), nobody, labels)
            confusion = np.maximum(model.annotators_[who].confusion, MIN_PROBABILITY)
            posterior[items], _ = truth_posterior(alone, log_of(posterior[items]), log_of(confusion[None]))
    return LabelStatistics(ann, predicted, posterior)


def suspects(model: Model, ann: Annotations) -> pd.DataFrame:
    """List all answered items, those whose most frequent answer is likeliest wrong first.

    Parameters
    ----------
    model : a trained ``Classifier``
    ann : a label table with pictures or features

    Returns
    -------
    One row per item: item, answer (the most frequent), wrong (the chance that it is, given the picture, all answers
    and how each rater errs), estimate (the likeliest class), probability (of the estimate)

    Examples
    --------
    >>> from types import SimpleNamespace as Some
    >>> ann = Annotations.from_answers(np.array([[0, 1], [1, 1], [0, 0]]), np.zeros((3, 4)), classes=["cat", "dog"])
    >>> careful, careless = np.array([[0.9, 0.1], [0.1, 0.9]]), np.full((2, 2), 0.5)
    >>> model = Some(classes_=ann.classes, predict_proba=lambda ann: np.array([[0.2, 0.8], [0.3, 0.7], [0.1, 0.9]]),
    ...              annotators_={"rater_1": Some(confusion=careful), "rater_2": Some(confusion=careless)})
    >>> suspects(model, ann).round(2)
         item answer  wrong estimate  probability
    0  item_2    cat   0.50      cat         0.50
    1  item_0    cat   0.31      cat         0.69
    2  item_1    dog   0.05      dog         0.95
    """
    check_labels(model, ann)
    statistics = label_statistics(model, ann)
    order = statistics.most_suspect(len(ann))
    classes, likeliest = np.array(ann.classes, dtype=object), statistics.posterior.argmax(axis=1)
    return pd.DataFrame(
        {
            "item": [ann.items[index] for index in order],
            "answer": classes[statistics.vote[order]],
            "wrong": statistics.wrong[order],
            "estimate": classes[likeliest[order]],
            "probability": statistics.posterior[order, likeliest[order]],
        }
    )


def check_labels(model: Model, ann: Annotations) -> None:
    """Refuse what the report on a label table cannot be made of."""
    if needs_images(model) and not ann.has_images:
        raise InputError("The report needs the items' pictures or features; give them with images= or features=.")
    check_classes(model, ann)


@dataclass(frozen=True)
class Suspect:
    """An item as the list shows it.

    Attributes
    ----------
    picture : data URI, or None for features
    answers : (class, who gave it) from the most frequent on
    truth : where it is known
    """

    name: str
    picture: str | None
    answers: list[tuple[str, str]]
    wrong: float
    estimate: str
    probability: float
    truth: str | None


def shown_suspects(statistics: LabelStatistics, count: int) -> list[Suspect]:
    """The items most likely mislabelled, with their pictures."""
    ann, shown = statistics.ann, []
    first = first_answers(ann.answers, len(ann))
    for index in statistics.most_suspect(count):
        here = slice(first[index], first[index + 1])
        likeliest = int(statistics.posterior[index].argmax())
        known = ann.truth[index] if ann.has_truth else MISSING_LABEL
        shown.append(
            Suspect(
                name=ann.items[index],
                picture=thumb(ann.item_image(index)) if ann.has_images else None,
                answers=_answers_by_class(ann, ann.answers.rater[here], ann.answers.label[here]),
                wrong=float(statistics.wrong[index]),
                estimate=ann.classes[likeliest],
                probability=float(statistics.posterior[index, likeliest]),
                truth=None if known == MISSING_LABEL else ann.classes[known],
            )
        )
    return shown


def labels_in_short(statistics: LabelStatistics, rows: list[RaterRow], unsure: int) -> list[str]:
    """The findings in a few plain sentences; ``rows`` are the raters, the most skilled first."""
    told = []
    if statistics.accuracy is not None:
        told.append(
            f"The {statistics.who} is right on {percent(statistics.accuracy)} of the items whose truth is known."
        )
    known = [row for row in rows if row.skill is not None and row.labelled]
    if len(known) > 1:
        best, worst = known[0], known[-1]
        told.append(
            f"Most skilled is {short(best.name)} ({number(best.skill)}), least {short(worst.name)} "
            f"({number(worst.skill)}){f', who {worst.habit.kind}' if worst.habit else ''}."
        )
    if unsure:
        of = f"{unsure:,} of {len(statistics.ann):,} items"
        told.append(f"On {of} the most frequent answer is likelier wrong than right.")
    else:
        told.append("On no item is the most frequent answer likelier wrong than right.")
    return told


def by_rater(ann: Annotations) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Each rater who answered anything: name, items (sorted) and labels."""
    answers = ann.answers
    order = np.argsort(answers.rater, kind="stable")
    bounds = np.searchsorted(answers.rater[order], np.arange(len(ann.raters) + 1))
    for name, start, end in zip(ann.raters, bounds[:-1], bounds[1:]):
        if end > start:
            yield name, answers.item[order[start:end]], answers.label[order[start:end]]


def _answers_by_class(ann: Annotations, raters: np.ndarray, labels: np.ndarray) -> list[tuple[str, str]]:
    """Who said what, the most frequent answer first; of many raters their number."""
    answers = []
    for label in sorted(set(labels.tolist()), key=lambda label: -int((labels == label).sum())):
        names = [short(ann.raters[rater], 16) for rater in raters[labels == label]]
        answers.append((ann.classes[label], ", ".join(names) if len(names) <= 4 else f"{len(names)} raters"))
    return answers


def thumb(image: np.ndarray) -> str | None:
    """A small picture; of a volume its middle slice, of features none."""
    if image.ndim < 3:
        return None
    if image.ndim == 4:
        axis = 2 - int(np.argmin(image.shape[:0:-1]))
        image = tiles.cut(image, tiles.Plane(axis, image.shape[1 + axis] // 2, image.shape[1 + axis]))
    return tiles.picture(image, THUMB)
