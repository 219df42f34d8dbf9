"""From a case folder, or a label table, to a folder of results.

OUT/labels/<case>.<ext>          most probable labels, in the format and geometry of the case's own files
OUT/probabilities/<case>.<ext>   posterior of each class
OUT/truth.csv                    both of them, for a label table
OUT/raters.csv                   every rater's skill, recall and confusion matrix
OUT/fusion.json                  settings, all that was learnt, warnings, cases set aside

A case folder is gone through twice: votes are counted case by case, and what was learnt from the counts is looked up
and written case by case. With ``scope="case"`` once is enough. In both, cases may go to threads, processes or the
workers of a cluster; the results do not depend on who did the work. A label table is read whole, or in parts if it is
large: :mod:`annotruth.fusion.stream`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import annotruth
from annotruth.data.annotations import Annotations
from annotruth.errors import AnnotruthWarning, IdentifiabilityWarning, InputError
from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.folder.results import JSON, learnt, write_json
from annotruth.fusion.registry import make_estimator
from annotruth.io import Source, find_source, load, refuse_used_folder
from annotruth.io.kept import keeping_masks
from annotruth.io.locks import only_writer
from annotruth.parallel.dask import open_cluster
from annotruth.parallel.memory import keep_freed_memory
from annotruth.parallel.threads import thread_count, threads

if TYPE_CHECKING:
    from annotruth.fusion.auto import Choice

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
    from annotruth.fusion.folder.masks import FolderRun
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
                    run = FolderRun(estimator, kind, source, known, output, cluster, progress)
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
