"""annotruth train: a model, and every rater's way of erring."""

from __future__ import annotations

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
from annotruth.cli.printing import print_raters, progress_bar, screen
from annotruth.errors import InputError

if TYPE_CHECKING:
    from annotruth.io import Problem
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
        typer.Option(help="How to learn: by default pixel-cm, global-cm for a table; an unknown name lists the known."),
    ] = None,
    network: Network = None,
    plan: Annotated[
        Optional[Path], typer.Option(metavar="FILE", help="Case folder: a plan of `annotruth plan`, maybe changed.")
    ] = None,
    epochs: Annotated[
        Optional[int], typer.Option(help="Passes over the cases at most: by default 30, more for a small table.")
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
    patch_size: PatchSize = None,
    augment: Annotated[
        Optional[bool],
        typer.Option("--augment/--no-augment", help="Case folder: mirror, turn, scale and shift cases at random."),
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
        "patience": patience, "validation": validation, "seed": seed, "network": network, **where,
        **dict(option_value(text) for text in option or []),
    }  # fmt: skip
    of_folders = {"patch_size": whole_numbers(patch_size), "plan": plan, "augment": augment}
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
    run = _opened(output, cases, inputs, where) if resume else None
    data = run.inputs if run is not None else _inputs(inputs, duplicates)

    annotations = load(cases, **data)

    from annotruth.training.plan import Plan
    from annotruth.training.runs import Run, make_model, read_cases, refuse_used_run, start_run, train_run
    from annotruth.training.trainer import Processes

    first = Processes(devices, nodes, strategy).is_first
    screen.quiet = not first  # the same command runs in every process
    screen.print(f"{annotations!r} in {cases}")
    params = run.params if run is not None else {name: value for name, value in settings.items() if value is not None}
    if isinstance(params.get("plan"), Path):  # a run keeps the record itself, whatever becomes of the file
        params["plan"] = asdict(Plan.read(params["plan"]))
    model = make_model(annotations, params, progress=not quiet)
    if run is None and first:
        refuse_used_run(output, overwrite)
    with progress_bar(quiet or not first) as tell:
        read = read_cases(
            model, annotations, known_masks if run is None else run.known_masks,
            partial(_find_problems, cases, data), lambda done, total: tell("Reading", done, total),
        )  # fmt: skip
    if run is None:
        params = {name: value for name, value in model.get_params().items() if name != "progress"}
        run = Run(output, str(cases.resolve()), params, data, known_masks=known_masks)
        if first:
            run = start_run(output, cases, params, overwrite, data, known_masks)
    train_run(run, model, read, resume)
    print_raters(model.ranking_)
    what = "FEATURES" if "features" in run.inputs else "IMAGES"
    screen.print(
        f"Model: {run.model}. `annotruth report {output}` shows it, `annotruth predict {output} {what}` uses it."
    )


def _refuse_given(options: dict[str, Any], home: str) -> None:
    """Refuse options that would have no effect."""
    for name, value in options.items():
        if value is not None:
            raise InputError(f"--{name.replace('_', '-')} goes with {home}.")


def _inputs(paths: dict[str, Path | None], duplicates: str = "error") -> dict[str, str]:
    """What ``load`` is given beside a label table, in a form that a run can keep."""
    given = {name: str(path.resolve()) for name, path in paths.items() if path is not None}
    return given if duplicates == "error" else {**given, "duplicates": duplicates}


def _opened(output: Path, cases: Path, inputs: dict[str, Path | None], where: dict[str, Any]) -> Run:
    """Open a run to go on with; what it learns from need not be named again, but must not be something else."""
    from annotruth.training.runs import open_run

    run = open_run(output, where)
    learns_from = {"cases": run.cases, **run.inputs}
    for name, path in _inputs({"cases": cases, **inputs}).items():
        if learns_from.get(name) != path:
            raise InputError(
                f"The run in {output} learns from {learns_from.get(name, 'no ' + name)}, not from {path}. "
                "Go on with what it began with, or train anew into another folder."
            )
    return run


def _find_problems(cases: Path, inputs: dict[str, str]) -> list[Problem]:
    """Every problem of every file."""
    from annotruth.io import check

    return check(cases, **inputs)  # type: ignore[arg-type]
