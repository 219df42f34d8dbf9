"""Objects by consensus: which things are there, of which class, where; and how often each rater finds, and errs.

Objects of different raters that are the same thing are put together (:mod:`annotruth.fusion.object_matching`). Of each
thing every rater who looked at the image says a class, or "no object" by not marking it. A rater's row of the confusion
matrix at a class says how often it is found, missed and named otherwise; the row at "no object" what the rater makes of
nothing. What nobody marked is not seen, which the estimate allows for.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from annotruth.data.objects import BOX, Objects
from annotruth.errors import InputError
from annotruth.fusion.object_matching import group_objects, paired_iou

MAX_ITER, TOLERANCE = 200, 1e-6
MAX_MISSED = 0.95
"""Chance that nobody marks a thing of a class, up to which those are counted in that nobody marked."""
RIGHT_COUNT, WRONG_COUNT = 2.0, 0.5
"""Earlier answers that every rater starts with, so that a few objects do not make anybody perfect, or blind."""


class ObjectConsensus:
    """Fuse several raters' objects.

    Parameters
    ----------
    min_overlap : intersection over union from which two raters' objects can be the same thing
    max_distance : pixels between points at which they cannot
    threshold : probability from which a thing counts as there

    Attributes
    ----------
    candidates_ : a row per thing that anybody marked: item, label (the most probable class), probability (that it is
        there), class_probability (of the label, if it is), votes, raters (who looked), x1, y1, x2, y2
    truth_ : those of them that are probably there
    groups_ : (objects,) the row of each object of the raters in ``candidates_``
    raters_ : a row per rater: objects, detection (share of things found), false_per_item (marked things that are not
        there, per image), class_accuracy (of things found), overlap (mean with the consensus)
    confusion_ : (raters, classes + 1, classes + 1), [true, observed], "no object" first

    Examples
    --------
    >>> frame = pd.DataFrame({"item": "a", "rater": ["ann", "bob", "cy", "cy"], "label": "cell",
    ...                       "x1": [0, 1, 0, 50], "y1": [0, 0, 1, 50], "x2": [10, 11, 10, 60], "y2": [10, 10, 11, 60]})
    >>> fused = ObjectConsensus().fit(Objects.from_table(frame))
    >>> fused.truth_[["item", "label", "votes", "x1", "y1", "x2", "y2"]]
      item label  votes   x1   y1    x2    y2
    0    a  cell      3  0.0  0.0  10.0  10.0
    """

    def __init__(self, min_overlap: float = 0.5, max_distance: float = 10.0, threshold: float = 0.5) -> None:
        self.min_overlap = min_overlap
        self.max_distance = max_distance
        self.threshold = threshold

    def fit(self, objects: Objects) -> ObjectConsensus:
        """Put objects together and estimate what is there."""
        if not len(objects):
            raise InputError("Nobody marked an object: there is nothing to fuse.")
        self.groups_ = group_objects(objects, self.min_overlap, self.max_distance)
        answers, item = self._answers(objects)
        self.confusion_, posterior, counts = estimate(answers, len(objects.classes) + 1)
        there = 1 - posterior[:, 0]
        label = posterior[:, 1:].argmax(axis=1)
        boxes = _middle_boxes(objects.boxes, self.groups_)
        self.candidates_ = pd.DataFrame(
            {
                "item": np.array(objects.items, dtype=object)[item],
                "label": np.array(objects.classes, dtype=object)[label],
                "probability": there,
                "class_probability": posterior[:, 1:].max(axis=1) / np.maximum(there, 1e-12),
                "votes": (answers > 0).sum(axis=1),
                "raters": (answers >= 0).sum(axis=1),
            }
            | dict(zip(BOX, boxes.T))
        )
        self.truth_ = self.candidates_[there >= self.threshold].reset_index(drop=True)
        self.raters_ = self._raters(objects, counts, boxes)
        return self

    def area(self, objects: Objects, candidate: int) -> tuple[np.ndarray, tuple[int, int]] | None:
        """The pixels of a thing that most of those who marked it marked, and the upper left one (x, y) of their window.

        None where only boxes or points are known.
        """
        members = np.flatnonzero(self.groups_ == candidate)
        areas = [objects.areas[member] for member in members]
        if any(area is None for area in areas):
            return None
        boxes = objects.boxes[members].astype(int)
        left, top = boxes[:, :2].min(axis=0)
        right, bottom = boxes[:, 2:].max(axis=0)
        votes = np.zeros((bottom - top, right - left), dtype=np.int64)
        for area, (x1, y1, x2, y2) in zip(areas, boxes):
            votes[y1 - top : y2 - top, x1 - left : x2 - left] += np.asarray(area)
        return 2 * votes > len(areas), (int(left), int(top))

    def _answers(self, objects: Objects) -> tuple[np.ndarray, np.ndarray]:
        """What raters said of each thing (things, raters): a class + 1, 0 = no object, -1 = did not look; its item."""
        count = int(self.groups_.max()) + 1
        item = np.zeros(count, dtype=np.int64)
        item[self.groups_] = objects.item
        answers = np.where(objects.labelled[item], 0, -1)
        answers[self.groups_, objects.rater] = objects.label + 1
        return answers, item

    def _raters(self, objects: Objects, counts: np.ndarray, boxes: np.ndarray) -> pd.DataFrame:
        rows = []
        for number, rater in enumerate(objects.raters):
            real, found = counts[number, 1:], counts[number, 1:, 1:]
            own = np.flatnonzero(objects.rater == number)
            shared = paired_iou(objects.boxes[own], boxes[self.groups_[own]])
            rows.append(
                {
                    "rater": rater,
                    "objects": len(own),
                    "detection": _ratio(found.sum(), real.sum()),
                    "false_per_item": _ratio(counts[number, 0, 1:].sum(), objects.labelled[:, number].sum()),
                    "class_accuracy": _ratio(np.trace(found), found.sum()),
                    "overlap": float(np.mean(shared)) if len(own) else np.nan,
                }
            )
        return pd.DataFrame(rows)


def estimate(answers: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Confusion matrices and what is there, by expectation-maximisation for things that somebody marked.

    With m the answers on a thing, θ the matrices and t its class, the chance of m is that of Dawid and Skene (1979),
    given that not all say "no object": ∏ θ[r, t, m_r] / (1 - q_t), q_t = ∏ θ[r, t, 0] over the raters who looked. For
    each thing that is seen, q_t / (1 - q_t) are expected that nobody marked, and count in the M-step as missed by all.

    Parameters
    ----------
    answers : (things, raters), 0 = no object, -1 = did not look
    n_classes : with "no object"

    Returns
    -------
    confusion (raters, classes, classes), posterior (things, classes), and expected counts (raters, classes, classes)
    """
    looked = answers >= 0
    said = (answers[:, :, None] == np.arange(n_classes)).astype(np.float64)  # (things, raters, classes)
    posterior = said.sum(axis=1) + 0.1
    posterior /= posterior.sum(axis=1, keepdims=True)
    unseen = np.zeros_like(posterior)
    prior_counts = np.full((n_classes, n_classes), WRONG_COUNT) + (RIGHT_COUNT - WRONG_COUNT) * np.eye(n_classes)
    likelihood = -np.inf
    for _ in range(MAX_ITER):
        counts = np.einsum("gt,gro->rto", posterior, said)
        counts[:, :, 0] += np.einsum("gt,gr->rt", posterior * unseen, looked.astype(np.float64))
        confusion = (counts + prior_counts) / (counts + prior_counts).sum(axis=-1, keepdims=True)
        share = posterior.sum(axis=0) + WRONG_COUNT
        log_seen = np.einsum("gro,rto->gt", said, np.log(confusion))
        missed = np.exp(np.einsum("gr,rt->gt", looked.astype(np.float64), np.log(confusion[:, :, 0])))
        missed = np.minimum(missed, MAX_MISSED)
        unseen = missed / (1 - missed)
        joint = np.log(share / share.sum()) + log_seen - np.log1p(-missed)
        highest = joint.max(axis=1, keepdims=True)
        posterior = np.exp(joint - highest)
        total = posterior.sum(axis=1, keepdims=True)
        posterior /= total
        before, likelihood = likelihood, float((highest + np.log(total)).sum())
        if abs(likelihood - before) < TOLERANCE * max(len(answers), 1):
            break
    return confusion, posterior, counts


def _middle_boxes(boxes: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The median of every group's boxes (groups, 4), side by side."""
    order = np.argsort(groups, kind="stable")
    parts = np.split(boxes[order], np.flatnonzero(np.diff(groups[order])) + 1)
    return np.stack([np.median(part, axis=0) for part in parts])


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole > 0 else np.nan
