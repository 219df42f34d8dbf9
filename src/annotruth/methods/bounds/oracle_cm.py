"""The raters' confusion matrices are known, and the network is trained through them: an upper bound."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from annotruth.data.annotations import Annotations
from annotruth.data.confusion import confusion_counts, normalise_rows
from annotruth.errors import InputError, shorten
from annotruth.methods.base import Batch, DataSpec, Method, MethodModel
from annotruth.methods.protocols import KnowsConfusion, Prepares
from annotruth.methods.registry import register
from annotruth.nn import GlobalConfusion, KnownAnnotators, noisy_label_loss
from annotruth.validation import MISSING_LABEL

SMOOTHING = 1e-6
"""Chance of a label drawn at random, so that one which the known matrices call impossible does not end the training."""


class OracleModel(MethodModel):
    """A network, and matrices that are known."""

    annotators: KnownAnnotators


@register
@dataclass(frozen=True)
class OracleCM(Prepares, KnowsConfusion, Method[OracleModel]):
    """Nothing is learnt of the raters: how they err is given, or counted from the truth.

    Options
    -------
    matrices : by rater, {"ann": [[0.9, 0.1], [0.2, 0.8]], …}, [true][observed]; or the name of a JSON file that holds
        them, such as the ``confusion.json`` of ``annotruth simulate``. None = counted from the attached truth: of
        masks, for each rater and item (a new image gets the rater's matrix over all items); of answers, for each rater
    """

    name = "oracle-cm"
    paper = "upper bound of Tanno et al. 2019 and Zhang et al. 2020"
    summary = "a network through known confusion matrices"
    model_class = OracleModel
    learns_annotators = True
    learns_from_raters = False

    matrices: Mapping[str, Any] | str | None = None

    def check(self, annotations: Annotations) -> None:
        if self.matrices is not None:
            self._given_matrices(annotations)
        elif not annotations.has_truth:
            raise InputError(
                "The method oracle-cm needs the raters' confusion matrices (matrices=), or the truth (truth/) to count "
                "them from; there is neither. Use global-cm, which learns them."
            )

    def annotator_model(self, spec: DataSpec) -> nn.Module:
        return KnownAnnotators(spec.raters, spec.classes)

    def prepare(self, model: OracleModel, annotations: Annotations) -> None:
        if self.matrices is not None:
            known = self._given_matrices(annotations)
        else:
            known = normalise_rows(_all_counts(annotations))
        faithful = np.eye(known.shape[-1])  # where nothing is known of a row, no label was given either
        model.annotators.matrices.copy_(torch.from_numpy(np.where(np.isnan(known), faithful, known)))

    def known_confusion(self, annotations: Annotations, index: int) -> Tensor | None:
        if self.matrices is not None:
            return None
        return torch.from_numpy(normalise_rows(_counts(annotations, index))).float()

    def loss(self, model: OracleModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        known = model.annotators.matrices
        if batch.confusion is not None:
            known = torch.where(batch.confusion.isnan(), known, batch.confusion)
        if batch.raters is not None:
            known = known[..., batch.raters, :, :]
        confusion = GlobalConfusion((1 - SMOOTHING) * known + SMOOTHING / known.shape[-1])
        return noisy_label_loss(model.log_truth(batch.images), confusion, batch.labels)

    def _given_matrices(self, annotations: Annotations) -> np.ndarray:
        """The given matrices in the raters' order, (raters, classes, classes)."""
        given = _read(self.matrices) if isinstance(self.matrices, str) else self.matrices
        if not isinstance(given, Mapping):
            raise InputError(f"matrices of oracle-cm are a matrix by rater, {{name: matrix}}, not {given!r}.")
        for names, problem in (
            (set(given) - set(annotations.raters), "are of raters the annotations do not know"),
            (set(annotations.raters) - set(given), "lack some raters"),
        ):
            if names:
                raise InputError(
                    f"matrices of oracle-cm {problem}: {shorten(sorted(map(str, names)))}. The raters are "
                    f"{shorten(annotations.raters)}."
                )
        return np.stack([_matrix(given[rater], rater, len(annotations.classes)) for rater in annotations.raters])


def _counts(annotations: Annotations, index: int) -> np.ndarray:
    """How often each rater called each true class what on one item: (raters, classes, classes)."""
    truth, masks = annotations.item_truth(index), annotations.item_masks(index)
    return confusion_counts(truth[None], masks, len(annotations.classes), batch_axes=1)


def _all_counts(annotations: Annotations) -> np.ndarray:
    """The same over all items, of masks or of a label table."""
    if annotations.kind == "masks":
        return np.sum([_counts(annotations, index) for index in range(len(annotations))], axis=0)
    answers, n_classes = annotations.answers, len(annotations.classes)
    counts = np.zeros((len(annotations.raters), n_classes, n_classes))
    truth = annotations.truth[answers.item]
    known = truth != MISSING_LABEL
    np.add.at(counts, (answers.rater[known], truth[known], answers.label[known]), 1)
    return counts


def _matrix(given: Any, rater: str, classes: int) -> np.ndarray:
    """Check one rater's matrix."""
    try:
        matrix = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        matrix = np.empty(0)
    if matrix.shape != (classes, classes):
        raise InputError(f"The matrix of rater {rater} must be {classes}×{classes} numbers, [true][observed].")
    if not (matrix >= 0).all() or not np.allclose(matrix.sum(axis=1), 1, atol=1e-3):
        sums = ", ".join(f"{row:.3g}" for row in matrix.sum(axis=1))
        raise InputError(
            f"The matrix of rater {rater} must hold chances from 0 to 1, each row (a true class) summing to 1; the "
            f"rows sum to {sums}."
        )
    return matrix / matrix.sum(axis=1, keepdims=True)


def _read(path: str) -> Any:
    """Matrices by rater from a JSON file, where they may stand under the key "raters"."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: matrices cannot be read: {error}") from error
    return content.get("raters", content) if isinstance(content, dict) else content
