"""The one runner of all experiments: methods × settings × seeds, resumable, on as many processes as one likes."""

from __future__ import annotations

import json
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from annotruth import __version__
from annotruth.errors import AnnotruthError, AnnotruthWarning, InputError
from annotruth.experiments.core.columns import Column
from annotruth.experiments.core.earlier import EarlierTable, settings_of
from annotruth.experiments.core.experiment import Experiment, Row, Table
from annotruth.experiments.core.memory import peak_memory
from annotruth.experiments.core.ranks import average_ranks
from annotruth.experiments.core.task import Scale, TaskData, Trained
from annotruth.experiments.core.writing import environment, write_results
from annotruth.io import atomic
from annotruth.io.locks import only_writer
from annotruth.methods import make_method
from annotruth.parallel.threads import threads
from annotruth.parallel.workers import Processes


@dataclass(frozen=True)
class Cell:
    """One training: a row in a setting with a seed. It holds what another process needs to run it."""

    setting: str
    row: Row
    seed: int
    task: Callable[..., TaskData]
    arguments: tuple[tuple[str, Any], ...]
    learner: Callable[..., Any]
    training: Mapping[str, Any]
    columns: tuple[Column, ...]
    skips: bool = False

    @property
    def configuration(self) -> dict[str, Any]:
        """All that determines the result; a result kept on disk counts if this is still the same."""
        options = vars(make_method(self.row.method, getattr(self.learner, "task", "masks"), dict(self.row.options)))
        arguments = {name: value.name if isinstance(value, Path) else value for name, value in self.arguments}
        configuration = {
            "method": self.row.method, "options": options, "data": arguments, "training": dict(self.training),
            "metrics": [column.name for column in self.columns], "annotruth": __version__,
        }  # fmt: skip
        return json.loads(json.dumps(configuration, default=str))

    @property
    def file(self) -> str:
        return re.sub(r"[^\w.]+", "-", f"{self.setting} {self.row.label} {self.seed}") + ".json"


def run_experiment(
    experiment: Experiment,
    folder: Path,
    *,
    quick: bool = False,
    seeds: Sequence[int] | None = None,
    data: Path | None = None,
    jobs: int = 1,
    extend: bool = False,
    renew: Sequence[str] = (),
    tell: Callable[[str], None] = lambda line: None,
) -> Table:
    """Run what is not yet done, and write ``<name>.json``, ``<name>.md`` and ``<name>.png`` into the folder.

    Finished trainings lie in ``<folder>/.<name>/`` and are not run again unless something they depend on was changed
    in the experiment or in the method's options, or they are another version's; delete that folder to start over.

    Parameters
    ----------
    quick : one seed, little data, short trainings
    data : a folder with the data; None = what comes with the package
    jobs : how many processes; each training runs on one thread, so that results do not depend on this
    extend : whether trainings that the folder's finished table tells of are taken from it: for further seeds and rows
    renew : names of rows to train anew all the same, as after a change of their method; implies ``extend``
    """
    if jobs < 1:
        raise InputError(f"The number of jobs must be at least 1, not {jobs}.")
    if data is not None and not data.is_dir():
        raise InputError(f"{data}: there is no such folder. Name the folder that holds the data.")
    scale = experiment.quick if quick else experiment.full
    name = experiment.name
    name += "-stand-in" if experiment.stand_in and data is None else ""
    name += "-quick" if quick else ""
    earlier = EarlierTable.read(folder / f"{name}.json", renew) if extend or renew else EarlierTable()
    with only_writer(folder, f".{name}.lock"):
        return _run_all(experiment, folder, name, scale, quick, seeds, data, jobs, earlier, tell)


def _run_all(
    experiment: Experiment,
    folder: Path,
    name: str,
    scale: Scale,
    quick: bool,
    seeds: Sequence[int] | None,
    data: Path | None,
    jobs: int,
    earlier: EarlierTable,
    tell: Callable[[str], None],
) -> Table:
    kept = folder / f".{name}"
    cells = _cells(
        experiment, scale, list(seeds if seeds is not None else experiment.seeds)[: 1 if quick else None], data
    )
    results: dict[int, dict[str, Any]] = {}

    def done(position: int, result: dict[str, Any]) -> None:
        results[position] = result
        cell = cells[position]
        first = cell.columns[0]
        shown = f"{first.title} {result['scores'][first.name]:{first.form}}" if "refused" not in result else "left out"
        tell(f"{cell.setting}, seed {cell.seed}, {cell.row.label}: {shown}")

    missing = []
    for position, cell in enumerate(cells):
        before = _read_finished(kept / cell.file, cell.configuration) or earlier.training(
            cell.setting, cell.row.label, cell.seed, cell.configuration, cell.columns
        )
        if before is None:
            missing.append(position)
        else:
            done(position, before)
    if results:
        again = f"delete {kept}{' and leave out --extend' if earlier.rows else ''}"
        tell(f"{len(results)} of {len(cells)} trainings were done before; to train anew, {again}")
    for position, result in _run(cells, missing, jobs):
        with atomic(kept / cells[position].file) as temporary:
            temporary.write_text(json.dumps(result))
        done(position, result)
    table = _table(experiment, name, scale, [(cell, results[position]) for position, cell in enumerate(cells)], earlier)
    if experiment.stand_in and data is None:
        table["notes"].insert(0, experiment.stand_in)
    if quick:
        table["notes"].insert(0, "A first look: little data, short trainings, one seed. What counts is the full table.")
    write_results(folder, name, table)
    return table


def _cells(experiment: Experiment, scale: Scale, seeds: Sequence[int], data: Path | None) -> list[Cell]:
    """Every training of a table, those on the same data one after the other."""
    return [
        Cell(
            setting, row, seed, experiment.task,
            tuple({"seed": seed, "folder": data, **scale.of(setting).sizes, **arguments, **row.data}.items()),
            experiment.learner, {**scale.of(setting).training, **row.training}, experiment.columns, experiment.skips,
        )
        for setting, arguments in experiment.settings.items() for seed in seeds for row in experiment.rows
    ]  # fmt: skip


def _run(cells: list[Cell], positions: list[int], jobs: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Train, here or in other processes, and give each result as it comes."""
    if jobs == 1 or len(positions) < 2:
        for position in positions:
            yield position, run_cell(cells[position])
        return
    # A new interpreter for each, and before it loads anything one thread for what PyTorch computes: with more, the
    # results would depend on the number of processes.
    with Processes(jobs, fresh=True, environment={"OMP_NUM_THREADS": "1"}) as processes:
        for number, result in processes.as_completed(run_cell, [cells[position] for position in positions]):
            yield positions[number], result


def run_cell(cell: Cell) -> dict[str, Any]:
    """Train one model and score it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threads(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", AnnotruthWarning)  # kept in the result instead
            return _train_and_score(cell)
    finally:
        torch.set_num_threads(before)


def _train_and_score(cell: Cell) -> dict[str, Any]:
    task = _load_data(cell.task, cell.arguments)
    told: dict[str, Any] = {"asked": cell.configuration, "about": task.about, "date": environment()["date"]}
    with peak_memory() as grown:
        started = time.perf_counter()
        options = {**task.options.get(cell.row.method, {}), **cell.row.options}
        learner = cell.learner(method=cell.row.method, seed=cell.seed, progress=False, **cell.training, **options)
        try:
            model = learner.fit(task.train, **({} if task.known is None else {"truth": task.known}))
        except AnnotruthError as error:
            if cell.skips and isinstance(error, InputError):
                return {**told, "scores": {}, "refused": str(error)}
            raise type(error)(f"{cell.setting}, seed {cell.seed}, {cell.row.label}: {error}") from error
        trained = Trained(model, task, cell.seed, time.perf_counter() - started, grown())
    scores = {column.name: column.score(trained) for column in cell.columns}
    return {
        **told,
        "scores": {name: float(score) for name, score in scores.items() if score is not None and np.isfinite(score)},
        "wall_time": trained.seconds,
        "warnings": model.warnings_,
    }


@lru_cache(maxsize=1)
def _load_data(task: Callable[..., TaskData], arguments: tuple[tuple[str, Any], ...]) -> TaskData:
    """The data of the training before, mostly: rows of a table share them."""
    return task(**dict(arguments))


def _read_finished(path: Path, configuration: dict[str, Any]) -> dict[str, Any] | None:
    """A training done earlier, if it was configured in the same way."""
    if not path.is_file():
        return None
    try:
        result = json.loads(path.read_text())
        return result if result["asked"] == configuration and "date" in result else None
    except (ValueError, KeyError, TypeError):  # damaged: it is made anew
        return None


def _table(
    experiment: Experiment,
    name: str,
    scale: Scale,
    done: list[tuple[Cell, dict[str, Any]]],
    earlier: EarlierTable,
) -> Table:
    table: Table = {
        "experiment": name,
        "title": experiment.title,
        "data": list(dict.fromkeys([*earlier.data, *(each["about"] for _, each in done if each["about"])])),
        "notes": list(experiment.notes),
        "environment": environment(),
        "sizes": dict(scale.sizes),
        "training": dict(scale.training),
        "scales": {setting: {**own.sizes, **own.training} for setting, own in scale.settings.items()},
        "metrics": [{k: v for k, v in vars(column).items() if k != "score"} for column in experiment.columns],
        "curves": None if experiment.curves is None else asdict(experiment.curves),
        "rows": [
            _summary(experiment, setting, row, done) for setting in experiment.settings for row in experiment.rows
        ],
    }
    if experiment.ranked:
        table["ranks"] = average_ranks(table, experiment.ranked, experiment.bounds)
        order = {each["method"]: place for place, each in enumerate(table["ranks"])}
        settings = list(experiment.settings)
        table["rows"].sort(key=lambda row: (settings.index(row["setting"]), order.get(row["method"], len(order))))
    table["findings"] = [sentence for find in experiment.findings for sentence in find(table)]
    return table


def _summary(experiment: Experiment, setting: str, row: Row, done: list[tuple[Cell, dict[str, Any]]]) -> dict[str, Any]:
    mine = [(cell, result) for cell, result in done if cell.setting == setting and cell.row is row]
    configuration = mine[0][1]["asked"]
    refused = [result["refused"] for _, result in mine if "refused" in result]
    mine = [(cell, result) for cell, result in mine if "refused" not in result]
    summary: dict[str, Any] = {
        "setting": setting,
        "method": row.label,
        "options": {**row.options, **row.data, **row.training},
        "lines": list(row.lines or (row.label,)),
        "settings": settings_of(configuration),
        "seeds": [cell.seed for cell, _ in mine],
        "dates": [result["date"] for _, result in mine],
        "warned": sum(bool(result["warnings"]) for _, result in mine),
        "warned_seeds": [cell.seed for cell, result in mine if result["warnings"]],
        "paper": dict(experiment.paper.get(setting, {}).get(row.label, {})),
    }
    if refused:
        summary["refused"] = refused[0]
    if mine:
        summary["wall_time"] = _spread([result["wall_time"] for _, result in mine], ".1f")
    for column in experiment.columns:
        values = [result["scores"][column.name] for _, result in mine if column.name in result["scores"]]
        if values:
            summary[column.name] = int(sum(values)) if column.counted else _spread(values, ".5f")
    return summary


def _spread(values: list[float], form: str) -> dict[str, Any]:
    """Mean and sample deviation over seeds, and each seed's value."""
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return {"mean": float(np.mean(values)), "sd": deviation, "each": [float(format(value, form)) for value in values]}
