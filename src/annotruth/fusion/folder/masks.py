"""The fusion of a case folder, case by case, by threads, processes or a cluster's workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion._em import expect_pixels
from annotruth.fusion.base import CaseEstimate, FusionEstimator
from annotruth.fusion.folder import RATERS, Fusion, Progress, SetAside, check_settings, noting_warnings
from annotruth.fusion.folder.results import (
    begin_output,
    pixel_values,
    remove_halves,
    tidy_output,
    write_case,
    write_raters,
)
from annotruth.fusion.params import clone
from annotruth.fusion.state import CaseState, FusionState
from annotruth.fusion.votes import Patterns
from annotruth.io import Source, fresh_folder, nothing_sound
from annotruth.io.case_files import RATERS as RATERS_FOLDER
from annotruth.io.files import mask_header, reverse_axes, suffix_of
from annotruth.io.kept import has_kept, keep_masks_from_now_on, usual_limit
from annotruth.parallel import MapFunction
from annotruth.parallel.threads import map_in_threads, thread_count
from annotruth.parallel.workers import open_workers, prepare_workers
from annotruth.validation import MISSING_PIXEL

_MAX_BYTES_AT_WORK, _BYTES_PER_CLASS = 2**30, 8  # of the cases that threads have in hand; per class, of a pixel
_FILE = 2**16  # pixels that are worked on in the time a file takes to be opened, in which threads wait for each other
_SMALL_PIXELS = 2**20  # of a mask; on larger ones threads work beside each other
_MANY_PIXELS = 2**28  # of such masks, and their files; of fewer, threads have made an end before processes have begun
_LOOKED_AT = 16  # masks, to tell how large they are
_PRELOAD = ("annotruth.fusion.folder.masks", "annotruth.fusion._em.ready")


class FolderRun:
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
        self._across: MapFunction = cluster or map
        self._progress = progress or (lambda stage, done, total: None)
        self._work = _CaseWork(estimator, None if truth is None else "truth", output)
        self._set_aside: list[SetAside] = []
        self._earlier: list[Path] | None = None
        self._written: list[Path] = []

    def __call__(self, overwrite: bool, opened: ExitStack | None = None) -> tuple[Fusion, dict[str, Any]]:
        """Fuse; give the fusion, and what else is to be noted. Processes are opened where something closes them."""
        jobs, processes = thread_count(), self._open_workers(opened)
        tell = partial(self._progress, "Reading")
        annotations, problems = self._kind.load_sound(self._source, self._truth, tell, self._across)
        self._set_aside += [SetAside(problem.case, str(problem)) for problem in problems]
        if self._truth is not None and not annotations.has_truth:
            reason = problems[0] if problems else "The files are named after the cases, <case>.<ext>."
            raise InputError(f"{self._truth}: the folder holds the truth of no case that can be fused. {reason}")
        check_settings(self._work.estimator, annotations)
        fresh_folder(self._output, overwrite)
        self._share_work(annotations, jobs, processes)
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

    def _open_workers(self, opened: ExitStack | None) -> bool:
        """Let processes read, where they do so sooner than threads, otherwise threads, unless a cluster does."""
        jobs = thread_count()
        if self._cluster is not None or jobs == 1:
            return False
        n_masks, pixels = _look_at_masks(self._source)
        many_small = pixels <= _SMALL_PIXELS and n_masks * (_FILE + pixels) >= _MANY_PIXELS
        if opened is None or not many_small or not prepare_workers(_PRELOAD):
            self._across = partial(map_in_threads, n_threads=1 if 0 < pixels < _FILE else jobs)
            return False
        opened.callback(remove_halves, self._output)  # of workers that are killed when this process is stopped
        limit, workers = usual_limit() // jobs, opened.enter_context(open_workers(jobs, _PRELOAD))
        self._across = lambda work, tasks: workers(partial(_in_process, limit, work), tasks)
        return True

    def _share_work(self, annotations: Annotations, jobs: int, processes: bool) -> None:
        """Let threads work on as many cases at a time as memory allows, unless processes or a cluster do."""
        sizes = [prod(annotations.shape(index)) for index in range(len(annotations))]
        bytes_each = max(sizes) * (len(annotations.raters) + _BYTES_PER_CLASS * len(annotations.classes))
        allowed = max(1, _MAX_BYTES_AT_WORK // bytes_each)
        if self._cluster is not None or (processes and allowed >= jobs and not has_kept(len(annotations))):
            return
        expect_pixels(sum(sizes))
        self._across = partial(map_in_threads, n_threads=min(jobs, allowed) if max(sizes) >= _FILE else 1)

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


def _look_at_masks(folder: Path) -> tuple[int, int]:
    """Give how many masks there are in a case folder, and the pixels of the largest of some; 0 elsewhere."""
    files = [file for file in (folder / RATERS_FOLDER).glob("*/*") if suffix_of(file) is not None]
    pixels = 0
    for file in files[:: max(1, len(files) // _LOOKED_AT)]:
        with suppress(InputError):  # which is told of later
            pixels = max(pixels, prod(mask_header(file, str(file)).shape))
    return len(files), pixels


def _in_process(limit: int, work: Callable[[Any], Any], task: Any) -> Any:
    """Do work in a process that keeps so many bytes of masks for the next time it meets the case."""
    keep_masks_from_now_on(limit)
    return work(task)
