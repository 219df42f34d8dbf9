"""The report: one HTML file that shows what the raters said, how they err, and what is true."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from annotruth.annotations import Annotations
from annotruth.errors import InputError
from annotruth.io.atomic import atomic
from annotruth.report import tiles, words
from annotruth.report.content import in_short, nested_scores, rater_rows, settings, versions
from annotruth.report.evidence import Model, gather
from annotruth.report.figures import heading, score_bars, training_curves
from annotruth.report.gallery import MAPS_PER_RATER, MOST_RATERS, Gallery

__all__ = ["report"]


def report(
    model: Model,
    ann: Annotations,
    path: str | os.PathLike[str],
    *,
    scores: Mapping[str, Any] | None = None,
    max_cases: int = 12,
) -> Path:
    """Write one HTML file, readable without a network, about a trained model and the raters it learnt from.

    Parameters
    ----------
    model : a trained ``Segmenter``
    ann : masks with images; truth is used where it is known
    path : the file to write; its folder is made if need be
    scores : {metric: value} of this model, or {setting: {method: {metric: value}}} to compare methods
    max_cases : how many cases the gallery shows, those with most disagreement first

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
    path = Path(path)
    _check(model, ann, max_cases)
    compared = nested_scores(scores, model.method)
    evidence = gather(model, ann)
    rows = rater_rows(model, ann, evidence)
    gallery = Gallery(model, ann, evidence)
    disputed = evidence.most_disputed(max_cases)
    mapped = [row.name for row in rows][-MOST_RATERS:]
    # Maps need a few cases even where no gallery is wanted.
    maps, top_error = gallery.rater_maps(mapped, disputed or evidence.most_disputed(MAPS_PER_RATER))
    shown = [gallery.show(case) for case in disputed]
    page = _environment().get_template("page.html.j2").render(
        method=model.method,
        ann=ann,
        evidence=evidence,
        warnings=list(model.warnings_),
        in_short=in_short(rows, evidence),
        colours=tiles.class_colours(len(ann.classes)),
        scores=compared,
        metrics=list(dict.fromkeys(m for by_method in compared.values() for row in by_method.values() for m in row)),
        score_bars=score_bars(compared, model.method) if compared else None,
        rows=rows,
        maps=maps,
        top_error=top_error,
        most_raters=MOST_RATERS,
        shown=shown,
        views=gallery.views,
        curves=training_curves(model.history_) if len(model.history_) else None,
        history=model.history_,
        settings=settings(model),
        versions=versions(),
        written=datetime.now().astimezone(),
        tiles=tiles,
    )  # fmt: skip
    with atomic(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return path


def _check(model: Model, ann: Annotations, max_cases: int) -> None:
    if ann.kind != "masks":
        raise InputError("The report shows masks; these annotations are a label table.")
    if not ann.has_images:
        raise InputError("The report shows images; give them with images=, or put them into images/.")
    if tuple(model.classes_) != ann.classes:
        raise InputError(
            f"The model knows the classes {', '.join(model.classes_)} but the annotations have "
            f"{', '.join(ann.classes)}; they must be the same, in the same order."
        )
    if max_cases < 0:
        raise InputError(f"max_cases must be 0 or more, found {max_cases}.")


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,  # names come from users' files: nothing reaches the page unescaped
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        percent=lambda share: words.unbroken(words.percent(share)),
        unbroken=words.unbroken,
        number=words.number,
        short=words.short,
        heading=heading,
    )
    return environment


class _CallableFolder(ModuleType):
    """``annotruth.report`` names both the public function and this folder, and importing the folder hides the function.

    So the folder itself can be called: the name works in whichever order things were imported.
    """

    __call__ = staticmethod(report)


sys.modules[__name__].__class__ = _CallableFolder
