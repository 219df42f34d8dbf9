"""A page for each rater, to be shown to them: what they do well, typical errors with pictures, nobody else's name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.over_time import MIN_ANSWERS, RaterHistory
from annotruth.io import atomic
from annotruth.io.names import file_name
from annotruth.io.timing import AnswerTimes
from annotruth.reporting import tiles
from annotruth.reporting.case_statistics import case_statistics
from annotruth.reporting.content import versions
from annotruth.reporting.fused import as_model
from annotruth.reporting.gallery import Gallery, Tile, View
from annotruth.reporting.labels import by_rater, check_labels, label_statistics, thumb
from annotruth.reporting.model import Model, check_classes, needs_images
from annotruth.reporting.quality import rater_histories, skill_curves
from annotruth.reporting.templates import make_environment

MOST_MISTAKES = 8
"""Of a rater's answers that are most probably wrong."""
MIN_WRONG = 0.5
"""How probably an answer must be wrong to be shown as a mistake."""
WELL = 0.8
"""A class that a rater recognises at least so often is done well."""
MIN_ERROR = 0.02
"""Errors below this share are not worth a word."""


@dataclass(frozen=True)
class Mistake:
    """An answer that is probably wrong, with the item's picture where there is one."""

    item: str
    picture: str | None
    said: str
    likely: str
    probability: float


@dataclass(frozen=True)
class RaterPage:
    """What one rater is shown.

    Attributes
    ----------
    agreement : with the estimated truth: share of answers, or Dice; NaN = nothing labelled
    well : (class, share recognised), the best first
    error : (true class, what it was called, share) of the most frequent error, or None
    mistakes : of a label table;  pictures, views : of masks, where they differ from the estimate
    words, chart : what was found over time, where times are known
    """

    name: str
    labelled: int
    agreement: float
    well: list[tuple[str, float]]
    error: tuple[str, str, float] | None
    mistakes: list[Mistake]
    pictures: list[Tile]
    views: Mapping[int, View]
    words: tuple[str, ...] = ()
    chart: str | None = None


def write_rater_pages(
    model: Model | FusionEstimator,
    ann: Annotations,
    folder: str | os.PathLike[str],
    *,
    times: AnswerTimes | None = None,
) -> dict[str, Path]:
    """Write an HTML file for each rater who labelled anything, to be shown to them.

    Parameters
    ----------
    model : a trained ``Segmenter`` or ``Classifier``, or a fusion of these labels
    ann : masks with images, or a label table with pictures or features; a fusion needs neither
    folder : is made if need be; files are named after the raters, or numbered where a name cannot be a file's
    times : when answers of a label table were given

    Returns
    -------
    The files by rater

    Examples
    --------
    >>> import tempfile
    >>> from types import SimpleNamespace as Some
    >>> ann = Annotations.from_answers(np.array([[0, 1], [1, 1], [0, 0]]), np.zeros((3, 4)), classes=["cat", "dog"])
    >>> careful = Some(confusion=np.array([[0.9, 0.1], [0.1, 0.9]]))
    >>> model = Some(classes_=ann.classes, predict_proba=lambda ann: np.full((3, 2), 0.5),
    ...              annotators_={"rater_1": careful, "rater_2": careful})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in write_rater_pages(model, ann, folder).values()]
    ['rater_1.html', 'rater_2.html']
    """
    folder, model = Path(folder), as_model(model)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; name a folder for the raters' pages.")
    pages = _label_pages(model, ann, times) if ann.kind == "labels" else _mask_pages(model, ann)
    environment = make_environment()
    written: dict[str, Path] = {}
    folder.mkdir(parents=True, exist_ok=True)
    colours = [tiles.MISSED, tiles.ADDED, tiles.OTHER]
    for number, page in enumerate(pages, start=1):
        html = environment.get_template("rater.html.j2").render(
            page=page, kind=ann.kind, classes=ann.classes, views=page.views, tiles=tiles, colours=colours,
            version=versions().get("annotruth", ""),
        )  # fmt: skip
        path = folder / f"{_file(page.name, number)}.html"
        if path in written.values():
            path = folder / f"{path.stem} ({number}).html"
        with atomic(path) as temporary:
            temporary.write_text(html, encoding="utf-8")
        written[page.name] = path
    return written


def _label_pages(model: Model, ann: Annotations, times: AnswerTimes | None) -> list[RaterPage]:
    check_labels(model, ann)
    statistics = label_statistics(model, ann)
    history: dict[str, RaterHistory] = {}
    if times is not None:
        found = rater_histories(model.annotators_, ann, statistics.shares, times)
        history = {one.rater: one for one in found if len(one.time) >= MIN_ANSWERS}
    pages = []
    for name, items, labels in by_rater(ann):
        wrong = 1 - statistics.posterior[items, labels]
        worst = [int(place) for place in np.argsort(-wrong, kind="stable") if wrong[place] > MIN_WRONG][:MOST_MISTAKES]
        mistakes = []
        for place in worst:
            index = int(items[place])
            likely = int(statistics.posterior[index].argmax())
            said, probability = ann.classes[labels[place]], float(statistics.posterior[index, likely])
            picture = thumb(ann.item_image(index)) if ann.has_images else None
            mistakes.append(Mistake(ann.items[index], picture, said, ann.classes[likely], probability))
        told = history.get(name)
        well, error = _habits(model, ann, name)
        agreement = float(statistics.agreement[ann.raters.index(name)])
        page = RaterPage(name, len(items), agreement, well, error, mistakes, [], {})
        pages.append(page if told is None else replace(page, words=told.words, chart=skill_curves([told])))
    return pages


def _mask_pages(model: Model, ann: Annotations) -> list[RaterPage]:
    if needs_images(model) and not ann.has_images:
        raise InputError("The raters' pages show images; give them with images=, or put them into images/.")
    check_classes(model, ann)
    statistics = case_statistics(model, ann)
    gallery = Gallery(model, ann, statistics)
    pages = []
    for rater, name in enumerate(ann.raters):
        if not statistics.labelled_items[rater]:
            continue
        pictures = gallery.difference_tiles(name, ())
        views = {tile.case: gallery.views[tile.case] for tile in pictures}
        well, error = _habits(model, ann, name)
        agreement = float(statistics.mean_agreement[rater])
        pages.append(
            RaterPage(name, int(statistics.labelled_items[rater]), agreement, well, error, [], pictures, views)
        )
    return pages


def _habits(model: Model, ann: Annotations, name: str) -> tuple[list[tuple[str, float]], tuple[str, str, float] | None]:
    """Classes that a rater recognises well, the best first, and the most frequent error."""
    if name not in model.annotators_:
        return [], None
    matrix = np.asarray(model.annotators_[name].confusion, dtype=float)
    right = np.diagonal(matrix)
    well = [(ann.classes[k], float(right[k])) for k in np.argsort(-right, kind="stable") if right[k] >= WELL][:5]
    wrong = np.where(np.eye(len(matrix), dtype=bool), 0, matrix)
    true, called = divmod(int(wrong.argmax()), len(wrong))
    if wrong[true, called] < MIN_ERROR:
        return well, None
    return well, (ann.classes[true], ann.classes[called], float(wrong[true, called]))


def _file(name: str, number: int) -> str:
    try:
        return file_name(name, "rater")
    except InputError:
        return f"rater {number}"
