"""From a case folder, or a label table, to a folder of results.

OUT/labels/<case>.<ext>          most probable labels, in the format and geometry of the case's own files
OUT/probabilities/<case>.<ext>   posterior of each class
OUT/truth.csv                    both of them, for a label table
OUT/raters.csv                   every rater's skill, recall and confusion matrix
OUT/fusion.json                  settings, all that was learnt, warnings, cases set aside

A case folder is gone through twice: votes are counted case by case, and what was learnt from the counts is looked up
and written case by case. With ``scope="case"`` once is enough. In both, cases may go to threads or to the workers of a
cluster; the results do not depend on who did the work. A label table is read whole, or in parts if it is large:
:mod:`annotruth.fusion.stream`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import annotruth
from annotruth.data.annotations import Annotations
from annotruth.errors import AnnotruthWarning, IdentifiabilityWarning, InputError
from annotruth.fusion._em import expect_pixels
from annotruth.fusion.base import CaseEstimate, FusionEstimator
from annotruth.fusion.folder.results import (
    JSON,
    begin_output,
    learnt,
    pixel_values,
    tidy_output,
    write_case,
    write_json,
    write_raters,
)
from annotruth.fusion.params import clone
from annotruth.fusion.registry import make_estimator
from annotruth.fusion.state import CaseState, FusionState
from annotruth.fusion.votes import Patterns
from annotruth.io import (
    Source,
    find_source,
    fresh_folder,
    load,
    nothing_sound,
    refuse_used_folder,
)
from annotruth.io.files import reverse_axes
from annotruth.io.kept import has_kept, keep_masks_from_now_on, keeping_masks, usual_limit
from annotruth.io.locks import only_writer
from annotruth.parallel import MapFunction
from annotruth.parallel.dask import open_cluster
from annotruth.parallel.memory import keep_freed_memory
from annotruth.parallel.threads import map_in_threads, thread_count, threads
from annotruth.parallel.workers import open_workers, prepare_workers
from annotruth.validation import MISSING_PIXEL

if TYPE_CHECKING:
    from annotruth.fusion.auto import Choice

_MAX_BYTES_AT_WORK, _BYTES_PER_CLASS = 2**30, 8  # of the cases that threads have in hand; per class, of a pixel
_SMALL_PIXELS, _MANY_BYTES = (
    2**20,
    2**28,
)  # of a case; of all masks. Beyond, threads keep cores busy, or are done sooner
_MANY_FILES = 500
_PRELOAD = ("annotruth.fusion.folder", "annotruth.fusion._em.ready")
_MAX_NUMBERED_CLASSES = 20  # up to which numbers may be grades, however rarely each was given
RATERS, TRUTH_TABLE = "raters.csv", "truth.csv"
Progress = Callable[[str, int, int], None]
"""Told what is being done, how many cases are done, of how many."""


@dataclass(frozen=True)
class SetAside:
    """A case that could not be fused, or a file that is no case's, and why."""

    case: str | None
    reason: str


@dataclass
class Fusion:
    """A fusion that was carried out.

    Attributes
    ----------
    fused : the estimator, with all it learnt
    output : the folder of results
    set_aside : cases that could not be fused, and why
    warnings : what the user should know of the estimate
    choice : the method that was chosen, and why, if that was asked for
    """

    fused: FusionEstimator
    output: Path
    set_aside: list[SetAside] = field(default_factory=list)
    warnings: list[Warning] = field(default_factory=list)
    choice: Choice | None = None


def fuse(
    source: str | Path,
    output: str | Path,
    method: str = "staple",
    *,
    scope: str = "dataset",
    options: Mapping[str, Any] | None = None,
    gold: str | Path | None = None,
    duplicates: str = "error",
    stream: bool = False,
    jobs: int | None = None,
    processes: bool = False,
    scheduler: str | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Fusion:
    """Fuse a case folder or a label table, and write the results into a folder.

    Parameters
    ----------
    source : a case folder, or a label table (.csv, .parquet, or a folder of .parquet)
    output : a new or empty folder, unless ``overwrite``
    method : one of :func:`annotruth.fusion.registry.method_names`, or "auto": the one that foretells held-out raters
        best, see :func:`annotruth.fusion.auto.choose`; its one option is ``ordered``
    scope : raters' matrices for the whole data set ("dataset") or for each case on its own ("case")
    options : further parameters of the method's estimator
    gold : known truth: a folder of masks, ``<case>.<ext>``; for a label table, a table with columns item and truth
    duplicates : for a label table, as :func:`annotruth.load` takes it
    stream : read a label table in parts and keep its answers on disk, as is done with one of more than 20 million rows
        by methods that can: dawid-skene, staple, majority and mean
    jobs : cores of this machine to use, in threads; None = all of them
    processes : let processes share the cases where threads would wait for each other, at many small files; as with all
        of Python's, the program that asks for them must begin its work behind ``if __name__ == "__main__":``
    scheduler : address of a Dask scheduler, whose workers share the cases of a folder, or the parts of a label table

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
    from annotruth.fusion.folder.tables import fuse_streamed, fuse_whole, reads_in_parts, refuse_parts

    started = time.perf_counter()
    source, output = Path(source), Path(output)
    if scheduler is not None:  # whose workers have working directories of their own
        source, output = source.resolve(), output.resolve()
    kind = find_source(source)
    if stream or scheduler is not None:
        refuse_parts(kind, source, method, stream)
    if jobs is not None and jobs < 1:
        raise InputError(f"The number of jobs must be at least 1, found {jobs}.")
    if jobs is not None and scheduler is not None:
        raise InputError("Choose either jobs on this machine or a Dask cluster, not both.")
    refuse_used_folder(output, overwrite)
    known = None if gold is None else kind.find_truth(Path(gold))
    with only_writer(output), keeping_masks(), keep_freed_memory(), threads(jobs or thread_count()):
        choice = _choose(kind, source, duplicates, options) if method == "auto" else None
        method, options = (method, options) if choice is None else (choice.method, choice.options)
        estimator = make_estimator(method, scope, options)
        with nullcontext() if scheduler is None else open_cluster(scheduler) as cluster:
            if kind.kind == "masks":
                with ExitStack() as opened:
                    run = _FolderRun(estimator, kind, source, known, output, cluster, progress)
                    fusion, more = run(overwrite, opened if processes else None)
            else:
                in_parts = choice is None and reads_in_parts(kind, source, estimator, stream or scheduler is not None)
                fuse_table = partial(fuse_streamed, cluster, progress) if in_parts else fuse_whole
                fusion, more = fuse_table(estimator, source, known, output, overwrite, duplicates)
        fusion.choice = choice
        content = {
            "annotruth": annotruth.__version__, "finished": True, "source": source, "gold": gold, "method": method,
            "duplicates": duplicates,
            "chosen": None if choice is None else {"words": str(choice), **vars(choice)},
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
        kind: Source,
        source: Path,
        truth: Path | None,
        output: Path,
        cluster: MapFunction | None,
        progress: Progress | None,
    ) -> None:
        self._kind, self._source, self._truth, self._output = kind, source, truth, output
        self._cluster = cluster
        self._across = cluster or partial(map_in_threads, n_threads=thread_count())
        self._progress = progress or (lambda stage, done, total: None)
        self._work = _CaseWork(estimator, None if truth is None else "truth", output)
        self._set_aside: list[SetAside] = []
        self._earlier: list[Path] | None = None
        self._written: list[Path] = []

    def __call__(self, overwrite: bool, opened: ExitStack | None = None) -> tuple[Fusion, dict[str, Any]]:
        """Fuse; give the fusion, and what else is to be noted. Processes are opened where something closes them."""
        if opened is not None and thread_count() > 1 and _has_many_files(self._source):
            prepare_workers(_PRELOAD)  # while files are looked at
        tell = partial(self._progress, "Reading")
        annotations, problems = self._kind.load_sound(self._source, self._truth, tell, self._across)
        self._set_aside += [SetAside(problem.case, str(problem)) for problem in problems]
        if self._truth is not None and not annotations.has_truth:
            reason = problems[0] if problems else "The files are named after the cases, <case>.<ext>."
            raise InputError(f"{self._truth}: the folder holds the truth of no case that can be fused. {reason}")
        check_settings(self._work.estimator, annotations)
        fresh_folder(self._output, overwrite)
        self._share_work(annotations, opened)
        with noting_warnings() as noted:
            by_case = self._work.estimator.scope == "case"
            fused, patterns = self._fuse_each(annotations) if by_case else self._fuse_all(annotations)
        labelled = np.stack([(case.votes != MISSING_PIXEL).any(axis=1) for case in patterns]).sum(axis=0)
        counts = {"labelled cases": labelled, "labelled pixels": fused.labelled_counts_}
        write_raters(self._output / RATERS, fused, counts)
        tidy_output(self._output, self._earlier or [], self._written)
        values = pixel_values(fused.classes_, annotations) or range(len(fused.classes_))
        lost = {each.case for each in self._set_aside}
        more = {
            "cases": [item for item in fused.items_ if item not in lost],
            "pixel_values": {name: values[number] for number, name in enumerate(fused.classes_)},
        }
        return Fusion(fused, self._output, self._set_aside, noted), more

    def _share_work(self, annotations: Annotations, opened: ExitStack | None) -> None:
        """Let threads work on as many cases at a time as memory allows, or processes, unless a cluster does."""
        sizes = [prod(annotations.shape(index)) for index in range(len(annotations))]
        if self._cluster is not None:
            return
        n_raters = len(annotations.raters)
        bytes_each = max(sizes) * (n_raters + _BYTES_PER_CLASS * len(annotations.classes))
        jobs = min(thread_count(), max(1, _MAX_BYTES_AT_WORK // bytes_each))
        many_small = max(sizes) <= _SMALL_PIXELS and sum(sizes) * n_raters >= _MANY_BYTES
        if opened is not None and jobs > 1 and many_small and not has_kept(len(annotations)):
            workers = opened.enter_context(open_workers(jobs, _PRELOAD))
            there = partial(_in_process, usual_limit() // jobs, sum(sizes))
            self._across = lambda work, tasks: workers(partial(there, work), tasks)
        else:
            expect_pixels(sum(sizes))
            self._across = partial(map_in_threads, n_threads=jobs)

    def _fuse_all(self, annotations: Annotations) -> tuple[FusionEstimator, list[Patterns]]:
        """Learn from all cases at once, and write each as soon as its truth is known for good."""
        annotations, patterns = self._sound("Counting votes", self._work.count, annotations)
        cases, written = _single_cases(annotations), False

        def run_cases(states: Sequence[FusionState], final: bool) -> Iterator[CaseState | None]:
            nonlocal written
            written = final
            stage, work = ("Writing", self._work.refine_and_write) if final else ("Refining", self._work.refine)
            for answer in self._each(stage, work, list(zip(cases, states)), writes=final):
                case, files = answer or (None, [])
                self._written += files
                yield case

        fused = clone(self._work.estimator).fit(annotations, self._work.gold, patterns, run_cases=run_cases)
        if not written:
            tasks = [(case, fused.case_state(index), patterns[index]) for index, case in enumerate(cases)]
            self._written += [
                path for files in self._each("Writing", self._work.write, tasks, writes=True) for path in files or []
            ]
        return fused, patterns

    def _fuse_each(self, annotations: Annotations) -> tuple[FusionEstimator, list[Patterns]]:
        """Learn from each case on its own and write it at once; then sum up."""
        annotations, answers = self._sound("Fusing", self._work.fuse_alone, annotations, writes=True)
        patterns, cases, files = (list(each) for each in zip(*answers))
        self._written += [path for paths in files for path in paths]
        return clone(self._work.estimator).fit(annotations, self._work.gold, patterns, cases=cases), patterns

    def _sound(
        self, stage: str, work: Callable[..., Any], annotations: Annotations, writes: bool = False
    ) -> tuple[Annotations, list[Any]]:
        """Do work on every case; give the cases on which it could be done, and the answers."""
        answers = list(self._each(stage, work, [(case,) for case in _single_cases(annotations)], writes))
        good = [index for index, answer in enumerate(answers) if answer is not None]
        answers = [answers[index] for index in good]
        return annotations.take(good) if len(good) < len(annotations) else annotations, answers

    def _each(
        self, stage: str, work: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], writes: bool = False
    ) -> Iterator[Any]:
        """Do work on tasks that begin with a case; give the answers, or None for cases that are set aside."""
        found = False
        self._progress(stage, 0, len(tasks))
        for index, answer in enumerate(self._across(partial(_guarded, work), tasks)):
            if isinstance(answer, SetAside):
                if answer.case not in {each.case for each in self._set_aside}:
                    self._set_aside.append(answer)
            elif writes and self._earlier is None:  # not sooner: if no case can be fused, all stays as it was
                self._earlier = begin_output(self._output, [task[0].items[0] for task in tasks])
            found = found or not isinstance(answer, SetAside)
            self._progress(stage, index + 1, len(tasks))
            yield None if isinstance(answer, SetAside) else answer
        if not found:
            raise InputError(nothing_sound(self._source, [each.reason for each in self._set_aside]))


@dataclass(frozen=True)
class _CaseWork:
    """What is to be done with a case, which any process can do. Cases are Annotations of one item.

    Attributes
    ----------
    estimator : says how to fuse; not fitted
    gold : "truth" if the cases' true masks are to be used
    output : folder for labels and probabilities
    """

    estimator: FusionEstimator
    gold: str | None
    output: Path

    def count(self, case: Annotations) -> Patterns:
        """Count the votes."""
        return self.estimator.count(self._read(case)[0], 0, self.gold)

    def fuse_alone(self, case: Annotations) -> tuple[Patterns, CaseEstimate, list[Path]]:
        """Estimate the case on its own and write its truth; give its votes, the estimate and the files."""
        held, reversed_axes = self._read(case)
        patterns = self.estimator.count(held, 0, self.gold)
        counted = self.estimator.read_case(held, 0, self.gold, patterns)
        state, last = self.estimator.estimate_case(counted)
        files = self._write(held, reversed_axes, *self.estimator.fuse_case(counted, state, last))
        return patterns, (state, last and last.without_posterior()), files

    def refine(self, case: Annotations, state: FusionState) -> tuple[CaseState, list[Path]]:
        """Look at the pixels of the case, given what all cases taught."""
        found = self.estimator.refine_case(self.estimator.read_case(self._read(case)[0], 0, self.gold), state)
        return found.without_posterior(), []

    def refine_and_write(self, case: Annotations, state: FusionState) -> tuple[CaseState, list[Path]]:
        """Do so for the last time."""
        held, reversed_axes = self._read(case)
        counted = self.estimator.read_case(held, 0, self.gold)
        found = self.estimator.refine_case(counted, state)
        files = self._write(held, reversed_axes, *self.estimator.fuse_case(counted, state, found))
        return found.without_posterior(), files

    def write(self, case: Annotations, state: FusionState, patterns: Patterns) -> list[Path]:
        """Write the case's truth, given what all cases taught, and its votes as counted; give the files."""
        held, reversed_axes = self._read(case)
        counted = self.estimator.read_case(held, 0, self.gold, patterns)
        return self._write(held, reversed_axes, *self.estimator.fuse_case(counted, state))

    def _read(self, case: Annotations) -> tuple[Annotations, bool]:
        """Hold the case's masks in memory: they are counted and looked up without being read again.

        Where pixels are looked up one by one, their axes may stand in reverse, as in the files: whether they do is the
        second answer. To turn a volume takes several times as long as to read it.
        """
        masks = case.item_masks(0, checked=False)
        truth = None if self.gold is None else case.item_truth(0)
        one_by_one = not (self.estimator.refines or self.estimator.looks_at_images)
        turn = one_by_one and not masks.flags.c_contiguous and reverse_axes(masks).flags.c_contiguous
        if turn:
            masks, truth = reverse_axes(masks), None if truth is None else truth.T
        held = Annotations(
            kind="masks", items=case.items, raters=case.raters, classes=case.classes, masks=[masks],
            truth=None if truth is None else [truth],
            images=[case.item_image(0)] if self.estimator.looks_at_images else None,
            sources=case.sources, pixel_values=case.pixel_values, spacing=None if turn else [case.spacing(0)],
        )  # fmt: skip
        return held, turn

    def _write(self, case: Annotations, reversed_axes: bool, labels: np.ndarray, posterior: np.ndarray) -> list[Path]:
        classes, _ = self.estimator.truth_classes(case.classes)
        return write_case(self.output, case, classes, labels, posterior, reversed_axes=reversed_axes)


def _choose(kind: Source, source: Path, duplicates: str, options: Mapping[str, Any] | None) -> Choice:
    """Choose a method for a case folder, by its sound cases, or for a label table."""
    from annotruth.fusion.auto import choose

    others = [name for name in options or {} if name != "ordered"]
    if others:
        raise InputError(f"Options belong to a method: name one to set {', '.join(others)}, instead of auto.")
    ordered = (options or {}).get("ordered")
    if kind.kind == "masks":
        return choose(kind.load_sound(source)[0], ordered=ordered)
    annotations = load(source, duplicates=duplicates)
    refuse_measurements(source, annotations)
    return choose(annotations, ordered=ordered)


def refuse_measurements(source: Path, annotations: Annotations) -> None:
    """Refuse numbers that are no classes: hardly any of them was given twice, and not all are whole."""
    n_answers, n_classes = len(annotations.answers), len(annotations.classes)
    if n_answers >= 2 * n_classes or n_classes <= _MAX_NUMBERED_CLASSES:
        return
    try:
        numbers = np.array(annotations.classes, dtype=np.float64)
    except ValueError:
        return
    if not (numbers == np.rint(numbers)).all():
        raise InputError(
            f"{source}: the labels are numbers, {n_classes:,} different ones in {n_answers:,} answers, and so no "
            "classes. Take --method continuous-staple, which learns each rater's bias and noise."
        )


def _single_cases(annotations: Annotations) -> list[Annotations]:
    return [annotations.take([index]) for index in range(len(annotations))]


def _guarded(work: Callable[..., Any], task: tuple[Any, ...]) -> Any:
    """Do the work on a case, or say why it cannot be done: a bad case among many must not stop the others."""
    name = task[0].items[0]
    try:
        return work(*task)
    except InputError as error:
        return SetAside(name, str(error))
    except MemoryError:
        return SetAside(name, f"Item {name}: there is not enough memory to fuse it.")


def _has_many_files(folder: Path) -> bool:
    """Whether there are so many masks that processes may be worth their start."""
    return len(list(islice(folder.glob("*/*/*"), _MANY_FILES))) == _MANY_FILES


def _in_process(limit: int, n_pixels: int, work: Callable[[Any], Any], task: Any) -> Any:
    """Do work in a process that keeps so many bytes of masks for the next time it meets the case."""
    _make_ready(limit, n_pixels)
    return work(task)


@cache
def _make_ready(limit: int, n_pixels: int) -> None:
    keep_masks_from_now_on(limit)
    expect_pixels(n_pixels)


def check_settings(estimator: FusionEstimator, annotations: Annotations) -> None:
    """Refuse settings that do not go with the annotations, before any label is read."""
    try:
        estimator.check(annotations)
        classes, _ = estimator.truth_classes(annotations.classes)
        estimator.pseudo_counts(annotations.raters, len(classes))
    except InputError:
        raise
    except (TypeError, ValueError, IndexError) as error:
        raise InputError(f"An option of {estimator!r} has an unfit value: {error}.") from error


@contextmanager
def noting_warnings() -> Iterator[list[Warning]]:
    """Collect the warnings that come with an estimate, and pass on any others."""
    noted: list[Warning] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield noted
    for each in caught:
        if issubclass(each.category, AnnotruthWarning) or each.category.__name__ == "ConvergenceWarning":
            noted.append(each.message)  # type: ignore[arg-type]
        else:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
