"""A training run as a folder: settings, checkpoints, logs and the model.

RUN/run.json            what was asked for: cases (and what else a label table needs), method, settings
RUN/checkpoints/        the last, the one before and the best state; ``--resume`` goes on from the last that is whole
RUN/logs/               losses as CSV and for TensorBoard
RUN/model.annotruth     the model, when training is done
RUN/report.html         the report
RUN/comparison/         of the method "auto": the comparison that chose the method
RUN/held_out.csv        of a fold: the items that its model did not learn from

Runs of all folds lie side by side in one folder: RUN/fold_0, RUN/fold_1 …
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, ValidationError

import annotruth
from annotruth.data.annotations import Annotations
from annotruth.errors import InputError, shorten
from annotruth.io import Problem, atomic, column_names, fresh_folder, load, refuse_used_folder, write_label_table
from annotruth.io.names import to_cell
from annotruth.io.reading import read_json
from annotruth.training.auto import COMPARISON
from annotruth.training.checkpoints import FOLDER, LAST, PREVIOUS, new_identity
from annotruth.training.classifier import Classifier
from annotruth.training.datasets import Progress
from annotruth.training.estimator import Data
from annotruth.training.folds import fold_folder, fold_folders
from annotruth.training.segmenter import Segmenter
from annotruth.training.storage import MODEL_FILE, RUN_FILE, run_identity

_HELD_OUT = "held_out.csv"
_OURS = (RUN_FILE, MODEL_FILE, _HELD_OUT, "report.html", "checkpoints", "logs", COMPARISON)


class RunFile(BaseModel):
    """The content of ``run.json``; ``id`` is what the run's checkpoints share with it."""

    model_config = ConfigDict(strict=True, extra="ignore")

    cases: str
    params: dict[str, Any]
    inputs: dict[Literal["images", "features", "truth", "duplicates"], str] = {}
    columns: list[str] | None = None
    known_masks: bool = False
    id: str | None = None


@dataclass(frozen=True)
class Run:
    """A run's folder and what was asked for.

    Attributes
    ----------
    cases : a case folder or a label table
    params : of the estimator
    inputs : what else ``load`` is given for a label table: images, features, truth, duplicates
    columns : names of the features, where they have any: those of new items may then stand in another order
    known_masks : whether the true masks of a case folder are learnt from, too
    """

    folder: Path
    cases: str
    params: dict[str, Any]
    inputs: dict[str, str] = field(default_factory=dict)
    columns: list[str] | None = None
    known_masks: bool = False

    @property
    def model(self) -> Path:
        return self.folder / MODEL_FILE

    @property
    def is_done(self) -> bool:
        return self.model.is_file()

    @property
    def is_begun(self) -> bool:
        """Whether there is a state to go on from."""
        return any((self.folder / FOLDER / name).is_file() for name in (LAST, PREVIOUS))

    @property
    def report(self) -> Path:
        return self.folder / "report.html"

    def annotations(self, cases: str | Path | None = None) -> Annotations:
        """The cases this run learns from, or others; other answers are on the same pictures or features."""
        return load(self.cases if cases is None else cases, **self.inputs)


def start_run(
    folder: str | Path,
    cases: str | Path,
    params: dict[str, Any],
    overwrite: bool = False,
    inputs: dict[str, str] | None = None,
    known_masks: bool = False,
) -> Run:
    """Make a run's folder. One that holds files is refused, unless ``overwrite`` removes an earlier run's files."""
    folder = Path(folder)
    refuse_used_run(folder, overwrite)
    fresh_folder(folder, overwrite)
    _remove_run(folder)
    inputs = inputs or {}
    columns = column_names(Path(inputs["features"])) if "features" in inputs else None
    run = Run(folder, str(Path(cases).resolve()), params, inputs, columns, known_masks)
    _write(run, new_identity())
    return run


def _write(run: Run, identity: str | None) -> None:
    with atomic(run.folder / RUN_FILE) as temporary:
        asked: dict[str, Any] = {"annotruth": annotruth.__version__, "cases": run.cases, "inputs": run.inputs}
        asked |= {"columns": run.columns, "params": run.params, "known_masks": run.known_masks, "id": identity}
        temporary.write_text(json.dumps(asked, indent=2) + "\n")


def settle_method(run: Run, method: str) -> Run:
    """The run with the method that was chosen where "auto" was asked for; it goes on with that from now on."""
    settled = replace(run, params={**run.params, "method": method})
    _write(settled, run_identity(run.folder))
    return settled


def start_folds(
    folder: str | Path,
    cases: str | Path,
    params: dict[str, Any],
    overwrite: bool = False,
    inputs: dict[str, str] | None = None,
    known_masks: bool = False,
) -> list[Run]:
    """Make the folders of all folds' runs, side by side, before the first is trained: each knows what was asked for."""
    folder = Path(folder)
    refuse_used_run(folder, overwrite)
    fresh_folder(folder, overwrite)
    _remove_run(folder)
    return [
        start_run(fold_folder(folder, fold), cases, {**params, "fold": fold}, overwrite, inputs, known_masks)
        for fold in range(params["folds"])
    ]


def _remove_run(folder: Path) -> None:
    """Remove a run's files, and those of runs of folds, but nothing else."""
    for name in _OURS:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for fold in fold_folders(folder):
        _remove_run(fold)
        if not any(fold.iterdir()):
            fold.rmdir()


def refuse_used_run(folder: Path, overwrite: bool = False) -> None:
    """Refuse what :func:`start_run` would, without touching anything yet."""
    if ((folder / RUN_FILE).is_file() or fold_folders(folder)) and not overwrite:
        raise InputError(f"{folder} already holds a run; go on with --resume, or start anew with --overwrite.")
    refuse_used_folder(folder, overwrite)


def open_run(folder: str | Path, where: dict[str, Any] | None = None) -> Run:
    """Read a run's folder. ``where`` it goes on, on which and how many devices, may differ from where it began."""
    path = Path(folder) / RUN_FILE
    if not path.is_file():
        folds = fold_folders(folder)
        if folds:
            raise InputError(f"{folder} holds {len(folds)} folds, each a run of its own; name one, as {folds[0]}.")
        raise InputError(f"{folder} holds no run (there is no run.json); `annotruth train` makes one.")
    try:
        asked = RunFile.model_validate(read_json(path))
    except ValidationError as error:
        wrong = ", ".join(sorted({".".join(map(str, detail["loc"])) or "all of it" for detail in error.errors()}))
        raise InputError(f"{path} is damaged (look at {wrong}); start the run anew with --overwrite.") from None
    except InputError as error:
        raise InputError(f"{error} The file is damaged; start the run anew with --overwrite.") from None
    params = {**asked.params, **(where or {})}
    return Run(
        Path(folder),
        asked.cases,
        params,
        {str(name): path for name, path in asked.inputs.items()},
        asked.columns,
        asked.known_masks,
    )


def open_runs(folder: str | Path, where: dict[str, Any] | None = None) -> list[Run]:
    """Read a run's folder, or those of all folds that lie in it."""
    folds = fold_folders(folder)
    if (Path(folder) / RUN_FILE).is_file() or not folds:
        return [open_run(folder, where)]
    runs = [open_run(fold, where) for fold in folds]
    wanted = runs[0].params.get("folds", len(runs))
    if len(runs) != wanted:
        raise InputError(
            f"{folder} holds {len(runs)} of {wanted} folds ({shorten([fold.name for fold in folds], 5)}): "
            f"go on with one of them, as {folds[0]}, or start all anew with --overwrite."
        )
    return runs


def train_run(run: Run, model: Segmenter | Classifier, data: Data[Any], resume: bool = False) -> None:
    """Train a run's model on what :func:`read_cases` gave, or go on with it, and write it (one process of all does)."""
    model._learn(data, run.folder, resume)
    if model._processes().is_first:
        if model.fold is not None and data.held_out is not None:
            _write_held_out(run.folder / _HELD_OUT, model, data.held_out.annotations)
        model.save(run.model)


def _write_held_out(path: Path, model: Segmenter | Classifier, held_out: Annotations) -> None:
    """Name the items that a fold's model did not learn from; of a label table, with what it says of them."""
    if isinstance(model, Classifier):
        write_label_table(path, held_out, model.predict_proba(held_out))
    else:
        with atomic(path) as temporary:
            pd.DataFrame({"item": [to_cell(item) for item in held_out.items]}).to_csv(temporary, index=False)


def make_model(annotations: Annotations, params: dict[str, Any], progress: bool = True) -> Segmenter | Classifier:
    """The estimator that learns from annotations of this kind."""
    kind: type[Segmenter | Classifier] = Classifier if annotations.kind == "labels" else Segmenter
    return kind(**params, progress=progress)


def read_cases(
    model: Segmenter | Classifier,
    annotations: Annotations,
    known_masks: bool = False,
    find_problems: Callable[[], list[Problem]] = list,
    tell: Progress | None = None,
) -> Data[Any]:
    """Check settings and read every file, so that whatever is wrong is said before anything is trained or overwritten.

    Parameters
    ----------
    known_masks : whether the true masks of a case folder are learnt from, too
    find_problems : lists the problems of all files; called where a file is bad, or where not all fit into memory
    tell : told how many items are read, of how many
    """
    checked = model._check(annotations, "truth" if known_masks else None)
    try:
        data = model._read(checked, tell)
        bad = [] if data.train.in_memory else find_problems()
    except InputError:
        bad = find_problems()
        if not any(problem.severity == "fatal" for problem in bad):
            raise
    fatal = [problem for problem in bad if problem.severity == "fatal"]
    if fatal:
        more = f" ({len(fatal) - 1} more: `annotruth check` lists them.)" if len(fatal) > 1 else ""
        raise InputError(f"{fatal[0]}{more}")
    return data
