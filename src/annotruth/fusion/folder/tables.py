"""The fusion of a label table, read whole or in parts, into a folder of results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError, NamesWarning
from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.folder import (
    RATERS,
    TRUTH_TABLE,
    Fusion,
    Progress,
    check_settings,
    noting_warnings,
    refuse_measurements,
)
from annotruth.fusion.folder.results import write_raters
from annotruth.io import Source, fresh_folder, load
from annotruth.io.names import told_apart
from annotruth.parallel import MapFunction

_ADDING_UP = "dawid-skene, staple, majority, mean"


def refuse_parts(kind: Source, source: Path, method: str, stream: bool) -> None:
    """Refuse to read in parts, or (without ``stream``) on a cluster, what is not read so."""
    if kind.kind == "masks":
        if stream:
            raise InputError(f"{source}: a {kind.name} is read case by case in any case; parts are for label tables.")
        return
    if kind.name != "label table":  # other tables' rows have to be told what they are
        raise InputError(
            f"{source}: a {kind.name} is read whole. Make a label table of it first, with `annotruth import`."
        )
    if method == "auto":
        raise InputError(f"auto compares methods on a whole table. To read it in parts, choose one of {_ADDING_UP}.")


def reads_in_parts(kind: Source, source: Path, estimator: FusionEstimator, wanted: bool) -> bool:
    """Whether a table is to be read in parts: because somebody wants it, or because it is large."""
    if not estimator.adds_up or kind.name != "label table":
        if wanted:
            raise InputError(
                f"{estimator!r} learns from a whole table at once. To read it in parts, choose one of {_ADDING_UP}."
            )
        return False
    from annotruth.fusion.stream import MAX_ROWS_IN_MEMORY
    from annotruth.io.sources.label_table import in_folder
    from annotruth.io.table_parts import count_rows

    return wanted or count_rows(in_folder(source)[0]) > MAX_ROWS_IN_MEMORY


def fuse_whole(
    estimator: FusionEstimator, source: Path, truth: Path | None, output: Path, overwrite: bool, duplicates: str
) -> tuple[Fusion, dict[str, Any]]:
    """Fuse a table in memory; give the fusion, and what else is to be noted. ``truth`` is known truth."""
    from annotruth.fusion.suspects import suspect_raters
    from annotruth.io.tables import read_truth, write_truth_table

    annotations = load(source, truth, duplicates=duplicates)
    refuse_measurements(source, annotations)
    check_settings(estimator, annotations)
    with noting_warnings() as noted:
        fused = estimator.fit(annotations, None if truth is None else read_truth(truth))
    fresh_folder(output, overwrite)
    labels, probabilities = np.asarray(fused.predict()), np.asarray(fused.predict_proba())
    named = Annotations(
        kind="labels", items=fused.items_, raters=fused.raters_, classes=fused.classes_, answers=annotations.answers
    )
    write_truth_table(output / TRUTH_TABLE, named, labels, probabilities)
    write_raters(output / RATERS, fused, {"labelled items": fused.labelled_counts_})
    noted += suspect_raters(annotations, fused.prior_, fused.confusion_) if len(fused.classes_) > 1 else []
    noted += _doubtful_names(fused)
    return Fusion(fused, output, [], noted), {"items": len(fused.items_)}


def fuse_streamed(
    cluster: MapFunction | None,
    progress: Progress | None,
    estimator: FusionEstimator,
    source: Path,
    truth: Path | None,
    output: Path,
    overwrite: bool,
    duplicates: str,
) -> tuple[Fusion, dict[str, Any]]:
    """Do as :func:`fuse_whole`, with a table that stays on disk."""
    from annotruth.fusion.stream import StreamedTable, tidy
    from annotruth.io.sources.label_table import in_folder

    path, beside, _ = in_folder(source, truth)
    fresh_folder(output, overwrite)
    tidy(output)
    table = StreamedTable(
        path, output, truth=beside, gold=truth is not None, duplicates=duplicates, cluster=cluster, progress=progress
    )
    with noting_warnings() as noted:
        n_items = table.fuse(estimator, check_settings, TRUTH_TABLE)
    write_raters(output / RATERS, estimator, {"labelled items": estimator.labelled_counts_})
    return Fusion(estimator, output, [], noted + _doubtful_names(estimator)), {"items": n_items}


def _doubtful_names(fused: FusionEstimator) -> list[Warning]:
    found = told_apart(fused.raters_, fused.classes_)
    return [NamesWarning(f"{words[:1].upper()}{words[1:]} If they are one, write it in one way.") for words in found]
