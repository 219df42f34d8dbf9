"""annotruth train: a model, and every rater's way of erring."""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from annotruth.cli.options import (
    Duplicates,
    Features,
    Images,
    Network,
    Output,
    Overwrite,
    PatchSize,
    Quiet,
    Seed,
    option_value,
    whole_numbers,
)
from annotruth.cli.printing import print_comparison, print_raters, progress_bar, screen
from annotruth.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from annotruth.data.annotations import Annotations
    from annotruth.io import Problem
    from annotruth.training import Classifier, Segmenter
    from annotruth.training.runs import Run


def train(
    cases: Annotated[Path, typer.Argument(help="A case folder with images/ and raters/, or a label table.")],
    output: Output,
    images: Images = None,
    features: Features = None,
    truth: Annotated[
        Optional[Path], typer.Option(metavar="TABLE", help="Label table: known truth, columns item and truth.")
    ] = None,
    duplicates: Duplicates = "error",
    method: Annotated[
        Optional[str],
        typer.Option(
            help="How to learn: by default pixel-cm, global-cm for a table; auto compares some first, as `compare` "
            "does, and takes the best; an unknown name lists the known."
        ),
    ] = None,
    network: Network = None,
    plan: Annotated[
        Optional[Path], typer.Option(metavar="FILE", help="Case folder: a plan of `annotruth plan`, maybe changed.")
    ] = None,
    epochs: Annotated[
        Optional[int], typer.Option(help="Passes over the cases at most: by default 30, more where cases are few.")
    ] = None,
    batch_size: Annotated[Optional[int], typer.Option(help="Cases per step; by default by their size.")] = None,
    learning_rate: Annotated[
        Optional[float], typer.Option(help="Peak learning rate: by default 0.01, what suits the network for a table.")
    ] = None,
    patience: Annotated[int, typer.Option(help="Epochs without a better validation after which to stop.")] = 10,
    validation: Annotated[
        Optional[float],
        typer.Option(help="Share of the cases held out to decide when to stop: by default 0.15, 0.1 for a table."),
    ] = None,
    fold: Annotated[
        Optional[str],
        typer.Option(metavar="NUMBER|all", help="Hold out this fold instead, from 0; all: train every fold in turn."),
    ] = None,
    folds: Annotated[
        Optional[int], typer.Option(help="With --fold: into how many folds cases are split, by default 5.")
    ] = None,
    patch_size: PatchSize = None,
    augment: Annotated[
        Optional[bool],
        typer.Option("--augment/--no-augment", help="Show cases moved and shaded a little at random, by default."),
    ] = None,
    known_masks: Annotated[
        bool,
        typer.Option("--known-masks", help="Case folder: learn from the masks in truth/, too (coarse-cm)."),
    ] = False,
    option: Annotated[Optional[list[str]], typer.Option(help="An option of the method, as trace_weight=0.1.")] = None,
    accelerator: Annotated[str, typer.Option(help="auto, cpu, gpu …")] = "auto",
    devices: Annotated[int, typer.Option(min=1, help="Devices that share each batch, a process each.")] = 1,
    nodes: Annotated[int, typer.Option(min=1, help="Machines with so many devices each.")] = 1,
    strategy: Annotated[str, typer.Option(help="How processes work together: auto or ddp.")] = "auto",
    precision: Annotated[
        str, typer.Option(help="mixed (bfloat16 in networks), full, or auto: mixed where that is quick.")
    ] = "auto",
    seed: Seed = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was cut off.")] = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Learn a model, and every rater's way of erring, from a folder of disagreeing masks or a table of answers."""
    from annotruth.io import describe_takers, find_source, load

    source = find_source(cases)
    is_table = source.kind == "labels"
    where = {"accelerator": accelerator, "devices": devices, "nodes": nodes, "strategy": strategy}
    inputs = {"images": images, "features": features, "truth": truth}
    settings = {
        "method": method, "max_epochs": epochs, "batch_size": batch_size, "learning_rate": learning_rate,
        "patience": patience, "validation": validation, "augment": augment, "seed": seed, "network": network,
        "precision": precision, **where,
        **dict(option_value(text) for text in option or []),
    }  # fmt: skip
    of_folders = {"patch_size": whole_numbers(patch_size), "plan": plan}
    of_runs = {"known_masks": known_masks or None}
    of_tables = {**inputs, "duplicates": None if duplicates == "error" else duplicates}
    if is_table:
        _refuse_given(of_folders | of_runs, "a case folder")
        if "images" in source.inputs and not resume and images is None and features is None:
            raise InputError(
                f"{cases}: a {source.name} needs its pictures, --images FOLDER, or features, --features FILE, to learn "
                "from. (`annotruth fuse` needs neither.)"
            )
    else:
        _refuse_given(of_tables, describe_takers("images"))
    settings |= {} if is_table else of_folders
    begun = _opened(output, cases, inputs, where) if resume else []
    if begun:
        _refuse_other_fold(output, begun, fold, folds)
        known_masks = begun[0].known_masks
    parts = [] if begun else _parts(fold, folds, validation)
    data = begun[0].inputs if begun else _inputs(inputs, duplicates)

    annotations = load(cases, **data)

    from annotruth.io.locks import only_writer
    from annotruth.parallel.signals import hint_if_stopped
    from annotruth.training.auto import AUTO
    from annotruth.training.plan import Plan
    from annotruth.training.runs import make_model, read_cases, refuse_used_run, train_run
    from annotruth.training.trainer import Processes

    first = Processes(devices, nodes, strategy).is_first
    screen.quiet = not first  # the same command runs in every process
    screen.print(f"{annotations!r} in {cases}")
    runs = begun if len(begun) == 1 else [run for run in begun if not run.is_done]
    again = f"Go on with: annotruth train {shlex.join([str(cases), '-o', str(output)])} --resume"
    given = {name: value for name, value in settings.items() if value is not None}
    if plan is not None:  # a run keeps the record itself, whatever becomes of the file
        given["plan"] = asdict(Plan.read(plan))
    asked = [run.params for run in runs] if begun else [given | part for part in parts]
    models = [make_model(annotations, params, progress=not quiet) for params in asked]
    if not begun and first:
        refuse_used_run(output, overwrite)
    with hint_if_stopped(lambda: again if runs else ""), only_writer(output) if first else nullcontext():
        if models and models[0].method == AUTO:
            plain = make_model(annotations, {**asked[0], "method": "majority"}, progress=False)
            read_cases(plain, annotations, known_masks, partial(_find_problems, cases, data))

            def begin() -> None:
                runs.extend([] if runs else _begin(output, cases, models, data, known_masks, overwrite, fold == "all"))

            runs = _choose(models[0], annotations, output, runs, begin, quiet)
            models = [make_model(annotations, run.params, progress=not quiet) for run in runs]
        for number, model in enumerate(models):
            with progress_bar(quiet or not first) as tell:
                read = read_cases(
                    model, annotations, known_masks,
                    partial(_find_problems, cases, data), lambda done, total: tell("Reading", done, total),
                )  # fmt: skip
            if not runs:  # every file was read, so that nothing is made or overwritten where one is bad
                runs = _begin(output, cases, models, data, known_masks, overwrite, fold == "all")
            if model.fold is not None:
                screen.print(f"Fold {model.fold} of {model.folds}: learns from {len(read.train)} items.")
            run = runs[number]
            with only_writer(run.folder) if first and run.folder != output else nullcontext():
                # Where a run was cut off before its first checkpoint, to go on is to begin again.
                train_run(run, model, read, resume and run.is_begun)
            print_raters(model.ranking_)
            del read  # before the next is read
    _tell_what_next(output, begun or runs)


def _refuse_given(options: dict[str, Any], home: str) -> None:
    """Refuse options that would have no effect."""
    for name, value in options.items():
        if value is not None:
            raise InputError(f"--{name.replace('_', '-')} goes with {home}.")


def _inputs(paths: dict[str, Path | None], duplicates: str = "error") -> dict[str, str]:
    """What ``load`` is given beside a label table, in a form that a run can keep."""
    given = {name: str(path.resolve()) for name, path in paths.items() if path is not None}
    return given if duplicates == "error" else {**given, "duplicates": duplicates}


def _parts(fold: str | None, folds: int | None, validation: float | None) -> list[dict[str, Any]]:
    """What each of the runs to be trained holds out, as settings; nothing where that is left to ``validation``."""
    if fold is None:
        _refuse_given({"folds": folds}, "--fold")
        return [{}]
    if fold != "all" and not fold.isdecimal():
        raise InputError(f"--fold is a number from 0, or all, not {fold!r}.")
    if validation is not None:
        raise InputError("With --fold, that fold is what is held out; leave --validation away.")
    from annotruth.training.folds import FOLDS

    count = FOLDS if folds is None else folds
    numbers = range(max(count, 1)) if fold == "all" else [int(fold)]
    return [{"fold": number, "folds": count} for number in numbers]


def _opened(output: Path, cases: Path, inputs: dict[str, Path | None], where: dict[str, Any]) -> list[Run]:
    """Open runs to go on with; what they learn from need not be named again, but must not be something else."""
    from annotruth.training.runs import open_runs

    runs = open_runs(output, where)
    for run in runs:
        learns_from = {"cases": run.cases, **run.inputs}
        for name, path in _inputs({"cases": cases, **inputs}).items():
            if learns_from.get(name) != path:
                raise InputError(
                    f"The run in {run.folder} learns from {learns_from.get(name, 'no ' + name)}, not from {path}. "
                    "Go on with what it began with, or train anew into another folder."
                )
    return runs


def _refuse_other_fold(output: Path, begun: list[Run], fold: str | None, folds: int | None) -> None:
    """Refuse to go on with another fold than was begun with; it need not be named again."""
    params = begun[0].params
    begun_with = "all" if begun[0].folder != output else params.get("fold")
    if fold in (None, str(begun_with)) and (folds is None or folds == params.get("folds")):
        return
    holds = "no fold" if begun_with is None else f"fold {begun_with} of {params['folds']}"
    if begun_with == "all":
        holds = f"all of {params['folds']} folds in turn"
    raise InputError(
        f"The run in {output} holds out {holds}. Go on with what it began with, or train anew into another folder."
    )


def _begin(
    output: Path,
    cases: Path,
    models: Sequence[Segmenter | Classifier],
    inputs: dict[str, str],
    known_masks: bool,
    overwrite: bool,
    every_fold: bool,
) -> list[Run]:
    """Make the folder of a run, or one for every fold's, and keep there what was asked for; one process of all does."""
    from annotruth.training.folds import fold_folder
    from annotruth.training.runs import Run, start_folds, start_run

    asked = [{name: value for name, value in model.get_params().items() if name != "progress"} for model in models]
    if not models[0]._processes().is_first:
        folders = [fold_folder(output, params["fold"]) if every_fold else output for params in asked]
        named = str(cases.resolve())
        return [Run(where, named, params, inputs, None, known_masks) for where, params in zip(folders, asked)]
    if every_fold:
        return start_folds(output, cases, asked[0], overwrite, inputs, known_masks)
    return [start_run(output, cases, asked[0], overwrite, inputs, known_masks)]


def _choose(
    model: Segmenter | Classifier,
    annotations: Annotations,
    output: Path,
    runs: list[Run],
    begin: Callable[[], None],
    quiet: bool,
) -> list[Run]:
    """Runs with the method that a comparison recommends, which is kept in the folder and goes on if cut off.

    ``begin`` makes the runs, where there are none yet, as soon as nothing speaks against the comparison.
    """
    from annotruth.reporting.comparison import write_comparison
    from annotruth.training.auto import COMPARISON, compare_for
    from annotruth.training.runs import settle_method

    with progress_bar(quiet) as tell:
        found = compare_for(model, annotations, output, progress=tell, begin=begin)
    write_comparison(found, output / COMPARISON)
    print_comparison(found)
    return [settle_method(run, found.recommended) for run in runs]


def _tell_what_next(output: Path, runs: list[Run]) -> None:
    run, what = runs[0], "FEATURES" if "features" in runs[0].inputs else "IMAGES"
    if run.folder == output:
        screen.print(
            f"Model: {run.model}. `annotruth report {output}` shows it, `annotruth predict {output} {what}` uses it."
        )
    else:
        screen.print(
            f"{len(runs)} models: {run.model} … `annotruth report {run.folder}` shows one, "
            f"`annotruth predict {output} {what}` uses all of them together."
        )


def _find_problems(cases: Path, inputs: dict[str, str]) -> list[Problem]:
    """Every problem of every file."""
    from annotruth.io import check

    return check(cases, **inputs)  # type: ignore[arg-type]
