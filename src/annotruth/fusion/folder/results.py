"""What a fusion leaves: each case's files, ``raters.csv`` for people, ``fusion.json`` for programs."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.base import FusionEstimator, too_many_matrices
from annotruth.io import atomic, case_of, write_mask, write_probabilities
from annotruth.io.files import reverse_axes
from annotruth.io.names import to_cell
from annotruth.io.reading import read_json

JSON, LABELS, PROBABILITIES = "fusion.json", "labels", "probabilities"


def begin_output(output: Path, cases: Sequence[str]) -> list[Path]:
    """Note in ``fusion.json`` that a fusion of these cases is under way; give the files an earlier one left.

    Until it is finished, the files of both stand side by side: each is replaced when the new one is there.
    """
    try:
        names = {str(name) for name in read_json(output / JSON)["cases"]}
    except (InputError, KeyError, TypeError):  # there was none, or it was of a label table
        names = set()
    homes = [output / LABELS, output / PROBABILITIES]
    earlier = [path for home in homes if home.is_dir() for path in home.iterdir() if case_of(path) in names]
    write_json(output / JSON, {"finished": False, "cases": sorted({*names, *cases})})
    return earlier


def tidy_output(output: Path, earlier: Sequence[Path], written: Sequence[Path]) -> None:
    """Remove what an earlier fusion left of other cases, and what killed workers left half-written."""
    remove_halves(output)
    for path in set(earlier) - set(written):
        path.unlink(missing_ok=True)


def remove_halves(output: Path) -> None:
    """Remove what killed workers left half-written."""
    for path in (path for home in (LABELS, PROBABILITIES) for path in (output / home).glob(".annotruth-*")):
        path.unlink(missing_ok=True)


def write_case(
    output: Path,
    case: Annotations,
    classes: tuple[str, ...],
    labels: np.ndarray,
    posterior: np.ndarray,
    *,
    reversed_axes: bool = False,
) -> list[Path]:
    """Write labels (pixels,) uint8 and posterior (classes, pixels) float32 of a case; give the files.

    ``reversed_axes`` says that the axes of the case stand in reverse, to be turned back for the files.
    """
    masks, shape = case.item_masks(0, checked=False), case.shape(0)
    labels, posterior = labels.reshape(shape), posterior.reshape(-1, *shape)
    if reversed_axes:
        masks, labels, posterior = reverse_axes(masks), labels.T, reverse_axes(posterior)
    fused = Annotations(
        kind="masks", items=case.items, raters=case.raters, classes=classes, masks=[masks],
        sources=case.sources, pixel_values=pixel_values(classes, case),
    )  # fmt: skip
    return [
        write_mask(output / LABELS, fused, 0, labels),
        write_probabilities(output / PROBABILITIES, fused, 0, posterior),
    ]


def pixel_values(classes: tuple[str, ...], annotations: Annotations) -> dict[int, int] | None:
    """The files' own pixel values, as far as the classes of the truth are theirs; else None, for class numbers."""
    return annotations.pixel_values if classes == annotations.classes else None


def write_raters(path: Path, fused: FusionEstimator, labelled: Mapping[str, np.ndarray]) -> Path:
    """Write one row per rater: skill, recall of each class with 95 % bounds, how much was labelled, the whole matrix.

    Parameters
    ----------
    labelled : (raters,) counts by the name of their column

    Examples
    --------
    >>> import tempfile
    >>> from annotruth import Annotations, MajorityVote
    >>> fused = MajorityVote().fit(Annotations.from_answers(np.array([[0, 0, 1], [1, 1, 1]])))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_raters(Path(folder) / "raters.csv", fused, {"labelled items": fused.labelled_counts_})
    ...     print(path.read_text().splitlines()[0])
    rater,skill,skill low,skill high,sensitivity,...,labelled items,true 0 called 0,...
    """
    classes = fused.classes_
    columns: dict[str, np.ndarray] = {"skill": fused.skill_}
    columns["skill low"], columns["skill high"] = fused.skill_interval()
    if too_many_matrices(len(fused.raters_), len(classes)):  # one number a rater is all there is
        return _write_table(path, fused, {**columns, **labelled})
    low, high = fused.confusion_interval()
    recalls = {f"recall of {name}": number for number, name in enumerate(classes)}
    if len(classes) == 2:
        recalls = {"sensitivity": 1, "specificity": 0}
    for name, true in recalls.items():
        for column, matrices in ((name, fused.confusion_), (f"{name} low", low), (f"{name} high", high)):
            columns[column] = matrices[:, true, true]
    columns.update(labelled)
    for true, name in enumerate(classes):
        for observed, called in enumerate(classes):
            columns[f"true {name} called {called}"] = fused.confusion_[:, true, observed]
    return _write_table(path, fused, columns)


def _write_table(path: Path, fused: FusionEstimator, columns: Mapping[str, np.ndarray]) -> Path:
    """Write one row per rater."""
    with atomic(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["rater", *columns])
        for rater, values in zip(fused.raters_, np.stack(list(columns.values()), axis=1).tolist()):
            table.writerow([to_cell(rater), *(_number(value) for value in values)])
    return path


def learnt(fused: FusionEstimator) -> dict[str, Any]:
    """What an estimator has learnt, as ``fusion.json`` holds it.

    Examples
    --------
    >>> from annotruth import Annotations, MajorityVote
    >>> learnt(MajorityVote().fit(Annotations.from_answers(np.array([[0, 0, 1], [1, 1, 1]]))))["classes"]
    ('0', '1')
    """
    content: dict[str, Any] = {
        "classes": fused.classes_, "raters": fused.raters_, "prior": fused.prior_,
        "orientation": "confusion[rater][true][observed]", "confusion": fused.confusion_,
        "log_likelihood": getattr(fused, "log_likelihood_", []), "n_iter": getattr(fused, "n_iter_", 0),
        "unlabelled": {item: int(count) for item, count in zip(fused.items_, fused.unlabelled_) if count},
    }  # fmt: skip
    if too_many_matrices(len(fused.raters_), len(fused.classes_)):
        content |= {"orientation": "skill[rater]", "confusion": None, "skill": fused.skill_}
    if fused.scope == "case":
        content["case_prior"] = dict(zip(fused.items_, fused.case_prior_))
        content["case_confusion"] = dict(zip(fused.items_, fused.case_confusion_))
    return content


def write_json(path: Path, content: Mapping[str, Any]) -> Path:
    """Write an object with one line per key; numbers that are not finite become null.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(write_json(Path(folder) / "a.json", {"n": np.eye(2), "bound": np.inf}).read_text())
    {
      "n": [[1.0, 0.0], [0.0, 1.0]],
      "bound": null
    }
    <BLANKLINE>
    """
    plain = json.loads(json.dumps(content, default=_plain), parse_constant=lambda _: None)
    lines = [f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in plain.items()]
    with atomic(path) as temporary:
        # Names of files need not be text: what is not is written as JSON's own \\udc80, which reads back the same.
        temporary.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8", errors="backslashreplace")
    return path


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else str(value)


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) > 1 else f"{value:.6g}"
