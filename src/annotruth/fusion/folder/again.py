"""A fusion that was written, fitted again from the same labels: files hold what was learnt, but not all that a report
asks of it."""

from __future__ import annotations

from pathlib import Path

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.folder import noting_warnings
from annotruth.fusion.folder.results import JSON
from annotruth.fusion.other_answers import model_names
from annotruth.fusion.registry import make_estimator
from annotruth.io import load
from annotruth.io.reading import read_json
from annotruth.io.sources import find_source


def is_fusion(folder: Path) -> bool:
    """Whether ``annotruth fuse`` wrote this folder."""
    return (folder / JSON).is_file()


def fuse_again(folder: Path, source: Path | None = None) -> tuple[FusionEstimator, Annotations, Path, list[str]]:
    """Fit the fusion in a folder anew; give it, its labels, where they are, and what was warned of.

    Parameters
    ----------
    source : where the labels are now; by default where they were
    """
    said = read_json(folder / JSON)
    if isinstance(said, dict) and said.get("finished") is False:
        raise InputError(f"{folder}: the fusion was not finished. Run `annotruth fuse` again.")
    try:
        method, settings, gold = said["method"], dict(said["settings"]), said["gold"]
        source = Path(said["source"]) if source is None else source
        duplicates = said.get("duplicates", "error")
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{folder / JSON} is damaged. Run `annotruth fuse` again.") from None
    if method in model_names():
        raise InputError(f"{method} fuses no classes, and has no report: its results are in truth.csv and raters.csv.")
    if not source.exists():
        raise InputError(f"The labels that were fused are no longer at {source}: say where they are with --cases.")
    scope = settings.pop("scope", "dataset")
    kind = find_source(source)
    known = None if gold is None else kind.find_truth(Path(gold))
    if kind.kind == "masks":
        annotations, _ = kind.load_sound(source, known)
    else:
        annotations = load(source, known, duplicates=duplicates)
    with noting_warnings() as noted:
        fused = make_estimator(method, scope, settings).fit(annotations, None if known is None else "truth")
    return fused, annotations, source, [str(each) for each in noted]
