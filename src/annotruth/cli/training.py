"""annotruth train: a model, and every rater's way of erring."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from annotruth.cli.options import Output, Overwrite, Quiet, Seed, option_value, whole_numbers
from annotruth.cli.printing import print_raters, progress_bar, screen
from annotruth.errors import InputError


def train(
    cases: Annotated[Path, typer.Argument(help="A case folder with images/ and raters/.")],
    output: Output,
    method: Annotated[str, typer.Option(help="How to learn; an unknown name lists the known ones.")] = "pixel-cm",
    epochs: Annotated[int, typer.Option(help="Passes over the cases at most.")] = 30,
    batch_size: Annotated[Optional[int], typer.Option(help="Cases per step; by default by their size.")] = None,
    learning_rate: Annotated[float, typer.Option(help="Peak learning rate.")] = 0.01,
    patience: Annotated[int, typer.Option(help="Epochs without a better validation after which to stop.")] = 10,
    validation: Annotated[float, typer.Option(help="Share of the cases held out to decide when to stop.")] = 0.15,
    patch_size: Annotated[
        Optional[str], typer.Option(help="Train on random patches, as 64,64,32; by default where cases are large.")
    ] = None,
    augment: Annotated[bool, typer.Option("--augment", help="Mirror, turn, scale and shift cases at random.")] = False,
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
    """Learn a model, and every rater's way of erring, from a folder of disagreeing masks."""
    from annotruth.io import load

    annotations = load(cases)
    from annotruth.training import Segmenter
    from annotruth.training.processes import Processes
    from annotruth.training.runs import Run, open_run, refuse_used_run, start_run, train_run

    first = Processes(devices, nodes, strategy).is_first
    screen.quiet = not first  # the same command runs in every process
    screen.print(f"{annotations!r} in {cases}")
    where = {"accelerator": accelerator, "devices": devices, "nodes": nodes, "strategy": strategy}
    if resume:
        run = open_run(output, where)
        if Path(run.cases) != cases.resolve():
            raise InputError(f"The run in {output} learns from {run.cases}, not from {cases}.")
    else:
        params = {
            "method": method, "max_epochs": epochs, "batch_size": batch_size, "learning_rate": learning_rate,
            "patience": patience, "validation": validation, "patch_size": whole_numbers(patch_size, "--patch-size"),
            "augment": augment, "seed": seed, **where, **dict(option_value(text) for text in option or []),
        }  # fmt: skip
        if first:
            refuse_used_run(output, overwrite)
            Segmenter(**params)._checked(annotations)  # whatever is wrong is said before an earlier run is overwritten
            _refuse_bad_files(cases, quiet)
            run = start_run(output, cases, params, overwrite)
        else:
            run = Run(output, str(cases.resolve()), params)
    model = train_run(run, annotations, resume=resume, progress=not quiet)
    print_raters(model.ranking_)
    screen.print(
        f"Model: {run.model}. `annotruth report {output}` shows it, `annotruth predict {output} IMAGES` uses it."
    )


def _refuse_bad_files(cases: Path, quiet: bool) -> None:
    """Read every file once, so that a bad one is met before training, not in the middle of it."""
    from annotruth.io import check as find_problems

    with progress_bar(quiet) as tell:
        problems = find_problems(cases, lambda done, total: tell("Checking", done, total))
    fatal = [problem for problem in problems if problem.severity == "fatal"]
    if fatal:
        more = f" ({len(fatal) - 1} more: `annotruth check` lists them.)" if len(fatal) > 1 else ""
        raise InputError(f"{fatal[0]}{more}")
