"""From a case folder, or a label table, to a folder of results.

OUT/labels/<case>.<ext>          most probable labels, in the format and geometry of the case's own files
OUT/probabilities/<case>.<ext>   posterior of each class
OUT/truth.csv                    both of them, for a label table
OUT/raters.csv                   every rater's skill, recall and confusion matrix
OUT/fusion.json                  settings, all that was learnt, warnings, cases set aside

A case folder is gone through twice: votes are counted case by case, and what was learnt from the counts is looked up
and written case by case. With ``scope="case"`` once is enough. In both, cases may go to workers; the results do not
depend on who did the work.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import annotruth
from annotruth.data.annotations import Annotations
from annotruth.errors import AnnotruthWarning, IdentifiabilityWarning, InputError
from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.folder.case_work import CaseWork, FirstStage, LocalTally, SetAside, guarded, pixel_values
from annotruth.fusion.folder.results import JSON, begin_output, learnt, tidy_output, write_json, write_raters
from annotruth.fusion.maximise import Estimate
from annotruth.fusion.patterns import Patterns
from annotruth.fusion.registry import check_settings, make_estimator
from annotruth.fusion.spatial import SpatialSTAPLE
from annotruth.io import fresh_folder, load, write_truth_table
from annotruth.io.atomic import refuse_used_folder
from annotruth.io.cases import load_sound_cases, nothing_sound
from annotruth.io.check import nothing_to_load
from annotruth.io.layout import TRUTH
from annotruth.io.tables import SUFFIXES as TABLES
from annotruth.io.tables import read_truth
from annotruth.parallel import MapFunction
from annotruth.parallel.workers import open_workers
from annotruth.validation import MISSING_PIXEL

RATERS, TRUTH_TABLE = "raters.csv", "truth.csv"
Progress = Callable[[str, int, int], None]
"""Told what is being done, how many cases are done, of how many."""


@dataclass
class Fusion:
    """A fusion that was carried out.

    Attributes
    ----------
    fused : the estimator, with all it learnt
    output : the folder of results
    set_aside : cases that could not be fused, and why
    warnings : what the user should know of the estimate
    """

    fused: FusionEstimator
    output: Path
    set_aside: list[SetAside] = field(default_factory=list)
    warnings: list[Warning] = field(default_factory=list)


def fuse(
    source: str | Path,
    output: str | Path,
    method: str = "staple",
    *,
    scope: str = "dataset",
    options: Mapping[str, Any] | None = None,
    gold: str | Path | None = None,
    duplicates: str = "error",
    jobs: int = 1,
    scheduler: str | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Fusion:
    """Fuse a case folder or a label table, and write the results into a folder.

    Parameters
    ----------
    source : a case folder, or a label table (.csv, .parquet)
    output : a new or empty folder, unless ``overwrite``
    method : "majority", "mean", "staple", "spatial-staple" or "dawid-skene"
    scope : raters' matrices for the whole data set ("dataset") or for each case on its own ("case")
    options : further parameters of the method's estimator
    gold : known truth: a folder of masks, ``<case>.<ext>``; for a label table, a table with columns item and truth
    duplicates : for a label table, as :func:`annotruth.load` takes it
    jobs, scheduler : processes on this machine, or the address of a Dask scheduler, to share the cases of a folder

    Notes
    -----
    A case in which something is wrong is set aside, and named in the answer; the others are fused.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder) / "answers.csv"
    ...     _ = table.write_text("item,rater,label\\na,ann,cat\\na,bob,dog\\na,cy,cat\\n")
    ...     fusion = fuse(table, Path(folder) / "out", "majority")
    ...     print((fusion.output / "truth.csv").read_text())
    "item","truth","probability of cat","probability of dog"
    "a","cat",1,0
    <BLANKLINE>
    """
    started = time.perf_counter()
    source, output = Path(source), Path(output)
    if scheduler is not None:  # whose workers have working directories of their own
        source, output = source.resolve(), output.resolve()
    estimator = make_estimator(method, scope, options)
    if not source.exists():
        raise InputError(nothing_to_load(source))
    refuse_used_folder(output, overwrite)
    known = None if gold is None else _known_truth(source, Path(gold))
    with open_workers(jobs, scheduler, preload=[__name__]) as across:
        if source.is_dir():
            fusion, more = _FolderRun(estimator, source, known, output, across, progress)(overwrite)
        else:
            fusion, more = _fuse_table(estimator, source, known, output, overwrite, duplicates)
    content = {
        "annotruth": annotruth.__version__, "finished": True, "source": source, "gold": gold, "method": method,
        "settings": estimator.get_params(), **learnt(fusion.fused), **more,
        "warnings": fusion.warnings,
        "identifiability": [each for each in fusion.warnings if isinstance(each, IdentifiabilityWarning)],
        "set_aside": [vars(each) for each in fusion.set_aside],
        "seconds": round(time.perf_counter() - started, 3),
    }  # fmt: skip
    write_json(output / JSON, content)
    return fusion


class _FolderRun:
    """The fusion of one case folder."""

    def __init__(
        self,
        estimator: FusionEstimator,
        source: Path,
        truth: Path | None,
        output: Path,
        across: MapFunction,
        progress: Progress | None,
    ) -> None:
        self._source, self._truth, self._output = source, truth, output
        self._across, self._progress = across, progress or (lambda stage, done, total: None)
        self._work = CaseWork(estimator, None if truth is None else "truth", output)
        self._set_aside: list[SetAside] = []
        self._earlier: list[Path] | None = None
        self._written: list[Path] = []

    def __call__(self, overwrite: bool) -> tuple[Fusion, dict[str, Any]]:
        """Fuse; give the fusion, and what else is to be noted."""
        tell = partial(self._progress, "Reading")
        annotations, problems = load_sound_cases(self._source, self._truth, tell, self._across)
        self._set_aside += [SetAside(problem.case, str(problem)) for problem in problems]
        if self._truth is not None and not annotations.has_truth:
            reason = problems[0] if problems else "The files are named after the cases, <case>.<ext>."
            raise InputError(f"{self._truth}: the folder holds the truth of no case that can be fused. {reason}")
        check_settings(self._work.estimator, annotations)
        fresh_folder(self._output, overwrite)
        with _noting_warnings() as noted:
            by_case = self._work.estimator.scope == "case"
            fused, patterns = self._fuse_each(annotations) if by_case else self._fuse_all(annotations)
        labelled = np.stack([(case.votes != MISSING_PIXEL).any(axis=1) for case in patterns]).sum(axis=0)
        counts = {"labelled cases": labelled, "labelled pixels": fused.labelled_counts_}
        write_raters(self._output / RATERS, fused, counts)
        tidy_output(self._output, self._earlier or [], self._written)
        values = pixel_values(fused, annotations) or range(len(fused.classes_))
        lost = {each.case for each in self._set_aside}
        more = {
            "cases": [item for item in fused.items_ if item not in lost],
            "pixel_values": {name: values[number] for number, name in enumerate(fused.classes_)},
        }
        return Fusion(fused, self._output, self._set_aside, noted), more

    def _fuse_all(self, annotations: Annotations) -> tuple[FusionEstimator, list[Patterns]]:
        """Learn from all cases at once, then write each."""
        annotations, patterns = self._each("Counting votes", self._work.count, annotations)

        def finish(whole: Estimate) -> list[LocalTally]:
            _, answers = self._each("Writing", partial(self._work.finish, whole), annotations, writes=True)
            self._written += [path for _, paths in answers for path in paths]
            return [tally for tally, _ in answers]

        if isinstance(self._work.estimator, SpatialSTAPLE):
            local = FirstStage(**self._work.estimator.get_params())
            local.second_stage = finish
            return local.fit(annotations, self._work.gold, patterns), patterns
        fused = clone(self._work.estimator).fit(annotations, self._work.gold, patterns)
        finish(Estimate(fused.confusion_, fused.expected_counts_, fused.prior_, np.empty(0), converged=True))
        return fused, patterns

    def _fuse_each(self, annotations: Annotations) -> tuple[FusionEstimator, list[Patterns]]:
        """Learn from each case on its own and write it at once; then sum up."""
        annotations, answers = self._each("Fusing", self._work.fuse_alone, annotations, writes=True)
        patterns, cases, files = (list(each) for each in zip(*answers))
        self._written += [path for paths in files for path in paths]
        fused = clone(self._work.estimator)
        fused._take_in(annotations, self._work.gold, patterns)
        fused._cases = cases
        return fused._learn(start=None, first=len(cases)), patterns

    def _each(
        self, stage: str, work: Callable[[Annotations], Any], annotations: Annotations, writes: bool = False
    ) -> tuple[Annotations, list[Any]]:
        """Do work on every case; give the cases on which it could be done, and the answers. Set the others aside."""
        cases = [annotations.take([index]) for index in range(len(annotations))]
        good, answers = [], []
        self._progress(stage, 0, len(cases))
        for index, answer in enumerate(self._across(partial(guarded, work), cases)):
            if isinstance(answer, SetAside):
                self._set_aside.append(answer)
            else:
                if writes and self._earlier is None:  # not sooner: if no case can be fused, all stays as it was
                    self._earlier = begin_output(self._output, annotations.items)
                good.append(index)
                answers.append(answer)
            self._progress(stage, index + 1, len(cases))
        if not good:
            raise InputError(nothing_sound(self._source, [each.reason for each in self._set_aside]))
        return annotations.take(good) if len(good) < len(cases) else annotations, answers


def _fuse_table(
    estimator: FusionEstimator, source: Path, truth: Path | None, output: Path, overwrite: bool, duplicates: str
) -> tuple[Fusion, dict[str, Any]]:
    annotations = load(source, truth, duplicates=duplicates)
    check_settings(estimator, annotations)
    with _noting_warnings() as noted:
        fused = estimator.fit(annotations, None if truth is None else read_truth(truth))
    fresh_folder(output, overwrite)
    labels, probabilities = np.asarray(fused.predict()), np.asarray(fused.predict_proba())
    named = Annotations(
        kind="labels", items=fused.items_, raters=fused.raters_, classes=fused.classes_, answers=annotations.answers
    )
    write_truth_table(output / TRUTH_TABLE, named, labels, probabilities)
    write_raters(output / RATERS, fused, {"labelled items": fused.labelled_counts_})
    return Fusion(fused, output, [], noted), {"items": len(fused.items_)}


def _known_truth(source: Path, gold: Path) -> Path:
    """Find the known truth, in the form that goes with the source."""
    if not gold.exists():
        raise InputError(f"{gold}: there is no such file or folder of known truth.")
    if source.is_dir():
        if not gold.is_dir():
            raise InputError(f"{gold}: the known truth of a case folder is a folder of masks, <case>.<ext>.")
        return (gold / TRUTH if (gold / TRUTH).is_dir() else gold).resolve()
    if gold.suffix.lower() not in TABLES:
        raise InputError(f"{gold}: the known truth of a label table is a table with the columns item and truth.")
    return gold


@contextmanager
def _noting_warnings() -> Iterator[list[Warning]]:
    """Collect the warnings that come with an estimate, and pass on any others."""
    noted: list[Warning] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield noted
    for each in caught:
        if issubclass(each.category, (AnnotruthWarning, ConvergenceWarning)):
            noted.append(each.message)  # type: ignore[arg-type]
        else:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
