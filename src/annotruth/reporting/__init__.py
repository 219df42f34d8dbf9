"""The report: one HTML file that shows what the raters said, how they err, and what is true."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment

from annotruth.choosing.queue.result import Queue
from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.base import FusionEstimator
from annotruth.io import atomic
from annotruth.io.timing import AnswerTimes
from annotruth.reporting import tiles, words
from annotruth.reporting.case_statistics import case_statistics
from annotruth.reporting.content import in_short, nested_scores, rater_rows, settings, versions
from annotruth.reporting.figures import score_bars, training_curves
from annotruth.reporting.fused import as_model
from annotruth.reporting.gallery import MAPS_PER_RATER, MOST_RATERS, Gallery
from annotruth.reporting.labels import check_labels, label_statistics, labels_in_short, shown_suspects, suspects
from annotruth.reporting.model import Model, check_classes, needs_images
from annotruth.reporting.panels import Page, panels_of
from annotruth.reporting.quality import queue_panel, rater_histories, time_panel
from annotruth.reporting.rater_pages import write_rater_pages
from annotruth.reporting.templates import make_environment

__all__ = ["report", "suspects", "write_rater_pages"]

MOST_CASES, MOST_ITEMS = 12, 40
"""Cases, and items of a label table, that are shown unless told otherwise."""
MOST_ROWS, MOST_MATRICES, MOST_CLASSES = 400, 60, 30
"""Raters of a label table that are listed, whose matrices are shown, and classes that are listed."""


def report(
    model: Model | FusionEstimator,
    ann: Annotations,
    path: str | os.PathLike[str],
    *,
    scores: Mapping[str, Any] | None = None,
    max_cases: int | None = None,
    queue: Queue | None = None,
    times: AnswerTimes | None = None,
) -> Path:
    """Write one HTML file, readable without a network, about a trained model, or a fusion, and the raters.

    Parameters
    ----------
    model : a trained ``Segmenter`` or ``Classifier``, or a fusion of these labels, as ``STAPLE().fit(ann)``
    ann : masks with images, or a label table with pictures or features; a fusion needs neither. Truth is used where it
        is known
    path : the file to write; its folder is made if need be
    scores : {metric: value} of this model, or {setting: {method: {metric: value}}} to compare methods
    max_cases : how many cases are shown: masks with most disagreement (12, if not said), items of a label table that
        are most likely mislabelled (40)
    queue : what to label next, as ``annotruth.next_labels`` gives it: shown with what it is expected to bring
    times : when the answers of a label table were given, as ``annotruth.io.timing.read_times`` gives them: shows raters
        over time

    Returns
    -------
    the path written

    Examples
    --------
    Usually ``model = Segmenter(method="pixel-cm").fit(ann)``; anything with the same attributes will do:

    >>> import tempfile, numpy as np, pandas as pd
    >>> from types import SimpleNamespace
    >>> square = np.zeros((1, 2, 8, 8), dtype=np.uint8)
    >>> square[..., 2:6, 2:6] = 1
    >>> ann = Annotations.from_masks(square, images=square[:, :1], classes=["background", "lesion"])
    >>> model = SimpleNamespace(
    ...     method="majority", classes_=ann.classes, raters_=ann.raters, annotators_={}, settings_={}, warnings_=[],
    ...     history_=pd.DataFrame(), predict_proba=lambda images: np.concatenate([1 - images, images], axis=1),
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report(model, ann, Path(folder) / "report.html", scores={"dice": 1.0}).name
    'report.html'
    """
    path, model = Path(path), as_model(model)
    if max_cases is not None and max_cases < 0:
        raise InputError(f"max_cases must be 0 or more, found {max_cases}.")
    if not hasattr(model, "annotators_"):
        raise InputError(
            f"A report is about one trained model, not about {model!r}; of an ensemble, give one of its models."
        )
    compared = nested_scores(scores, model.method)
    environment = make_environment()
    make = _label_page if ann.kind == "labels" else _mask_page
    template, content = make(model, ann, max_cases, environment)
    if times is not None and ann.kind == "labels":
        histories = rater_histories(model.annotators_, ann, content["statistics"].shares, times)
        content["panels"] += [panel for panel in [time_panel(histories, environment)] if panel is not None]
    if queue is not None:
        content["panels"] += [queue_panel(queue, environment)]
    titles = {"summary": "Summary"} | ({"scores": "Scores"} if compared else {})
    titles |= {"truth": "Truth"} if content["truth"] is not None else {}
    titles |= {"raters": "Raters", "confusion": "Confusion"}
    titles |= {panel.anchor: panel.in_contents for panel in content["panels"] if panel.in_contents}
    titles |= {**content.pop("titles"), **({"training": "Training"} if needs_images(model) else {})}
    titles |= {"settings": "Settings"}
    page = environment.get_template(template).render(
        method=model.method,
        ann=ann,
        warnings=list(model.warnings_),
        sections=list(titles.items()),
        scores=compared,
        metrics=list(dict.fromkeys(m for by_method in compared.values() for row in by_method.values() for m in row)),
        score_bars=score_bars(compared, model.method) if compared else None,
        trained=needs_images(model),
        curves=training_curves(model.history_) if len(model.history_) else None,
        history=model.history_,
        settings=settings(model),
        versions=versions(),
        written=datetime.now().astimezone(),
        **content,
    )  # fmt: skip
    with atomic(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return path


def _mask_page(
    model: Model, ann: Annotations, max_cases: int | None, environment: Environment
) -> tuple[str, dict[str, Any]]:
    """The template of a report on masks, and what it shows."""
    _check_masks(model, ann)
    statistics = case_statistics(model, ann)
    rows = rater_rows(
        model, ann, statistics.mean_agreement, statistics.labelled_items,
        lambda confusion: words.describe(confusion, ann.classes, statistics.shares),
    )  # fmt: skip
    gallery = Gallery(model, ann, statistics)
    disputed = statistics.most_disputed(MOST_CASES if max_cases is None else max_cases)
    mapped = [row.name for row in rows][-MOST_RATERS:]
    # Maps and panels need a few cases even where no gallery is wanted.
    mapped_cases = disputed or statistics.most_disputed(MAPS_PER_RATER)
    maps, top_error = gallery.rater_maps(mapped, mapped_cases)
    return "masks.html.j2", {
        "titles": {"error-maps": "Error maps", "cases": "Cases"},
        "panels": panels_of(Page(model, ann, gallery, mapped_cases, environment)),
        "statistics": statistics,
        "truth": statistics.truth,
        "in_short": in_short(rows, statistics),
        "colours": tiles.class_colours(len(ann.classes)),
        "rows": rows,
        "matrices": [row for row in rows if row.confusion is not None],
        "many": 0,
        "maps": maps,
        "top_error": top_error,
        "most_raters": MOST_RATERS,
        "shown": [gallery.show(case) for case in disputed],
        "views": gallery.views,
        "tiles": tiles,
        "coarse": gallery.coarse,
    }


def _label_page(
    model: Model, ann: Annotations, max_cases: int | None, environment: Environment
) -> tuple[str, dict[str, Any]]:
    """The template of a report on a label table, and what it shows."""
    check_labels(model, ann)
    statistics = label_statistics(model, ann)
    every = rater_rows(
        model, ann, statistics.agreement, statistics.answered,
        lambda confusion: words.describe_answers(confusion, ann.classes, statistics.shares),
    )  # fmt: skip
    busiest = [row.name for row in sorted(every, key=lambda row: -row.labelled)]
    rows, matrices = (
        [row for row in every if row.name in kept] for kept in (set(busiest[:MOST_ROWS]), set(busiest[:MOST_MATRICES]))
    )
    unsure = int((statistics.wrong > 0.5).sum())
    return "labels.html.j2", {
        "titles": {"items": "Items"},
        "panels": panels_of(Page(model, ann, None, (), environment)),
        "statistics": statistics,
        "truth": statistics.truth,
        "in_short": labels_in_short(statistics, every, unsure),
        "rows": rows,
        "matrices": [row for row in matrices if row.confusion is not None],
        "many": len(every) if len(every) > MOST_MATRICES else 0,
        "unsure": unsure,
        "suspects": shown_suspects(statistics, MOST_ITEMS if max_cases is None else max_cases),
        "most_classes": MOST_CLASSES,
    }


def _check_masks(model: Model, ann: Annotations) -> None:
    if needs_images(model) and not ann.has_images:
        raise InputError("The report shows images; give them with images=, or put them into images/.")
    check_classes(model, ann)
