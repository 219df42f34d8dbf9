"""The command line: one verb per job. Heavy imports happen inside the verbs, so that help answers at once."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer
from rich.console import Console
from rich.table import Table

from annotruth.errors import AnnotruthError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd

    from annotruth.io import Problem

app = typer.Typer(
    name="annotruth",
    help="Learn the truth from annotators who disagree.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
screen = Console(soft_wrap=True)  # a path or a command broken over two lines cannot be copied

Output = Annotated[Path, typer.Option("--output", "-o", help="Folder for the results.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier call left in the folder.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]


@app.callback(epilog="Add --debug to any command for the full traceback of an error.")
def common() -> None:
    """Learn the truth from annotators who disagree."""


@app.command(epilog="Example:  annotruth demo -o runs/demo")
def demo(
    output: Output = Path("runs/demo"), overwrite: Overwrite = False, seed: Seed = 0, quiet: Quiet = False
) -> None:
    """Train on bundled digits with five simulated raters, print the scores, write a report. A few minutes."""
    from annotruth.io import fresh_folder

    fresh_folder(output, overwrite)
    from annotruth.experiments.demo import run_demo

    screen.print(
        "1,000 noisy digits to learn from, 500 held out. Five simulated raters: good (the truth itself), over "
        "(draws too much), under (too little), wrong (in pieces), blank (nothing)."
    )
    scores = run_demo(output, seed, progress=not quiet, tell=lambda line: screen.print(f"  {line}"))
    for setting, methods in scores.items():
        table = Table(title=f"{setting} labels, held-out digits" if setting == "dense" else "one label per image")
        for column in ("method", "foreground Dice", "CM RMSE"):
            table.add_column(column, justify="left" if column == "method" else "right")
        for method, row in methods.items():
            table.add_row(method, f"{row['dice']:.3f}", f"{row['cm_rmse']:.3f}")
        screen.print(table)
    screen.print(
        f"clean learns from the truth: the upper bound. Scores: {output / 'scores.json'}. "
        f"Open [bold]{output / 'report.html'}[/] in a browser."
    )


@app.command(epilog="Example:  annotruth check cases/")
def check(
    cases: Annotated[Path, typer.Argument(help="A case folder, or a label table.")],
    every: Annotated[
        bool, typer.Option("--all", help="Show a warning for every file, however often it recurs.")
    ] = False,
) -> None:
    """List every problem of every file in one go. Exit code 2 if any is fatal."""
    from annotruth.io import check as find_problems

    with _progress() as tell:
        problems = find_problems(cases, lambda done, total: tell("Reading", done, total))
    if not problems:
        screen.print(f"[green]No problem found in {cases}.[/]")
        return
    for same in [[problem] for problem in problems] if every else _alike(problems):
        first = same[0]
        colour = "red" if first.severity == "fatal" else "yellow"
        also = f" The same holds for {len(same) - 1} more cases (--all lists them)." if len(same) > 1 else ""
        screen.print(f"[{colour}]{first.severity}[/] {_plain(first)}{also}", highlight=False, soft_wrap=True)
    fatal = sum(problem.severity == "fatal" for problem in problems)
    screen.print(f"{fatal} fatal, {len(problems) - fatal} to look at.")
    if fatal:
        raise typer.Exit(2)


@app.command(epilog="Example:  annotruth fuse cases/ --method staple -o fused/")
def fuse(
    cases: Annotated[Path, typer.Argument(help="A case folder, or a label table.")],
    output: Output,
    method: Annotated[str, typer.Option(help="majority, mean, staple, spatial-staple or dawid-skene.")] = "staple",
    scope: Annotated[str, typer.Option(help="dataset: one matrix per rater; case: one in each case.")] = "dataset",
    gold: Annotated[
        Optional[Path], typer.Option(help="Known truth: a folder of masks; for a label table, a table item, truth.")
    ] = None,
    option: Annotated[Optional[list[str]], typer.Option(help="An option of the method, as max_iter=50.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes that share the cases of a folder.")] = 1,
    dask: Annotated[
        Optional[str], typer.Option(metavar="ADDRESS", help="Dask scheduler whose workers share them instead.")
    ] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Fuse the raters' labels into one truth with probabilities, and measure every rater. Needs no images.

    A bad case is set aside and named at the end; the others are fused, and the exit code is 1.
    """
    from annotruth.fusion.folder import fuse as fuse_all

    with _progress(quiet) as tell:
        fusion = fuse_all(
            cases, output, method, scope=scope, options=dict(_option(text) for text in option or []), gold=gold,
            jobs=jobs, scheduler=dask, overwrite=overwrite, progress=tell,
        )  # fmt: skip
    _print_raters(fusion.fused.ranking_)
    for warning in fusion.warnings:
        _say("bold yellow", "warning", str(warning))
    screen.print(f"Truth, raters.csv and fusion.json: {output}.")
    for lost in fusion.set_aside:
        _say("bold red", "set aside", lost.reason)
    if fusion.set_aside:
        raise typer.Exit(1)


@app.command(epilog="Example:  annotruth simulate digits/ -o cases/ --raters good,over,under,wrong,blank --keep 1")
def simulate(
    source: Annotated[Path, typer.Argument(help="A folder with images/ and truth/.")],
    output: Output,
    raters: Annotated[str, typer.Option(help="Kinds of raters.")] = "good,over,under,wrong,blank",
    strength: Annotated[float, typer.Option(help="How strongly they err; 0 = not at all.")] = 1.0,
    keep: Annotated[str, typer.Option(help="Labels kept: all, or how many raters label each case.")] = "all",
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Draw masks as raters with known errors would, and write them as a case folder with confusion.json."""
    from annotruth.annotations import Annotations
    from annotruth.io import atomic, load_images, write_case_folder
    from annotruth.simulate import simulate_masks

    data = load_images(source)
    if not data.has_truth:
        raise InputError(f"{source}: there is no truth/ folder to simulate raters on.")
    if keep != "all" and not keep.isdigit():
        raise InputError(f"--keep is 'all' or a whole number, not {keep!r}.")
    truth = [data.item_truth(index) for index in range(len(data))]
    simulation = simulate_masks(
        truth, [kind.strip() for kind in raters.split(",")], n_classes=len(data.classes), strength=strength,
        keep="all" if keep == "all" else int(keep), seed=seed,
    )  # fmt: skip
    drawn = Annotations(
        kind="masks", items=data.items, raters=simulation.raters, classes=data.classes, masks=simulation.masks,
        images=[data.item_image(index) for index in range(len(data))], truth=truth, groups=data.groups,
        sources=data.sources, pixel_values=data.pixel_values,
    )  # fmt: skip
    write_case_folder(output, drawn, overwrite=overwrite)
    with atomic(output / "confusion.json") as temporary:
        known = {name: matrix.tolist() for name, matrix in zip(simulation.raters, simulation.confusion)}
        temporary.write_text(json.dumps({"orientation": "[true][observed]", "raters": known}, indent=2) + "\n")
    screen.print(f"{len(data)} cases by {len(simulation.raters)} raters written to {output}.")


@app.command(epilog="Example:  annotruth train cases/ --method pixel-cm -o runs/first")
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
            "patience": patience, "validation": validation, "patch_size": _whole_numbers(patch_size, "--patch-size"),
            "augment": augment, "seed": seed, **where, **dict(_option(text) for text in option or []),
        }  # fmt: skip
        if first:
            refuse_used_run(output, overwrite)
            Segmenter(**params)._checked(annotations)  # whatever is wrong is said before an earlier run is overwritten
            _refuse_bad_files(cases, quiet)
            run = start_run(output, cases, params, overwrite)
        else:
            run = Run(output, str(cases.resolve()), params)
    model = train_run(run, annotations, resume=resume, progress=not quiet)
    _print_raters(model.ranking_)
    screen.print(
        f"Model: {run.model}. `annotruth report {output}` shows it, `annotruth predict {output} IMAGES` uses it."
    )


@app.command(epilog="Example:  annotruth predict runs/first new_images/ -o labelled/")
def predict(
    run: Annotated[Path, typer.Argument(help="A run's folder, or a model file.")],
    images: Annotated[Path, typer.Argument(help="A folder of images, or one image.")],
    output: Output,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Label new images: masks and probabilities, in the images' own format and geometry."""
    from rich.progress import track

    from annotruth.io import fresh_folder, load_images, write_mask, write_probabilities
    from annotruth.training import load_model

    model = load_model(run / "model.annotruth" if run.is_dir() else run)
    data = load_images(images, rank=model.dims_, classes=model.classes_)
    data.pixel_values = model.pixel_values_
    fresh_folder(output, overwrite)
    for index in track(range(len(data)), description="Labelling", disable=quiet, transient=True):
        probabilities = model.predict_proba([data.item_image(index)])[0]
        write_probabilities(output / "probabilities", data, index, probabilities)
        write_mask(output / "labels", data, index, probabilities.argmax(axis=0))
    screen.print(f"{len(data)} images labelled: {output / 'labels'}, {output / 'probabilities'}.")


@app.command(epilog="Example:  annotruth report runs/first")
def report(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    cases: Annotated[Optional[Path], typer.Option(help="Show these cases instead of those trained on.")] = None,
    output: Annotated[Optional[Path], typer.Option("--output", "-o", help="Where to write it.")] = None,
) -> None:
    """Write one HTML file: raters, their errors, the cases most disagreed on, training curves."""
    from annotruth.io import load
    from annotruth.report import report as write_report
    from annotruth.training import load_model
    from annotruth.training.runs import open_run

    opened = open_run(run)
    model = load_model(opened.model)
    path = write_report(model, load(cases) if cases is not None else opened.annotations(), output or opened.report)
    screen.print(f"Open [bold]{path}[/] in a browser.")


@app.command(epilog="Example:  annotruth reproduce zhang2020-mnist --quick")
def reproduce(
    experiment: Annotated[str, typer.Argument(help="Which table; an unknown name lists the known ones.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the table.")] = Path("docs/results"),
    quick: Annotated[bool, typer.Option("--quick", help="One seed, little data: a first look.")] = False,
    seeds: Annotated[
        Optional[int], typer.Option(min=1, help="How many seeds, from 0; by default the experiment's.")
    ] = None,
    data: Annotated[
        Optional[Path], typer.Option(metavar="FOLDER", help="Where the data lie; by default what is bundled.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that share the trainings, one thread each.")] = 1,
) -> None:
    """Make a table anew: train every method on every seed, write it as Markdown, JSON and plot. Goes on if cut off."""
    from annotruth.experiments import EXPERIMENTS, run_experiment
    from annotruth.validation import one_of

    chosen = EXPERIMENTS[one_of(experiment, sorted(EXPERIMENTS), "experiment")]
    table = run_experiment(
        chosen, output, quick=quick, seeds=None if seeds is None else range(seeds), data=data, jobs=jobs,
        tell=lambda line: screen.print(f"  {_plain(line)}"),
    )  # fmt: skip
    for finding in table["findings"]:
        screen.print(_plain(finding), highlight=False)
    screen.print(f"Table: {output / (table['experiment'] + '.md')}")


def _refuse_bad_files(cases: Path, quiet: bool) -> None:
    """Read every file once, so that a bad one is met before training, not in the middle of it."""
    from annotruth.io import check as find_problems

    with _progress(quiet) as tell:
        problems = find_problems(cases, lambda done, total: tell("Checking", done, total))
    fatal = [problem for problem in problems if problem.severity == "fatal"]
    if fatal:
        more = f" ({len(fatal) - 1} more: `annotruth check` lists them.)" if len(fatal) > 1 else ""
        raise InputError(f"{fatal[0]}{more}")


@contextmanager
def _progress(quiet: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar, if anybody looks; give what is to be told the work at hand, how much of it is done, and how much."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task("Reading", total=None)
        yield lambda work, done, total: bar.update(task, description=work, completed=done, total=total)


def _alike(problems: list[Problem]) -> list[list[Problem]]:
    """Put warnings together that recur over many cases of one rater; every fatal problem stands by itself."""
    groups: dict[object, list[Problem]] = {}
    for number, problem in enumerate(problems):
        fatal = problem.severity == "fatal"
        groups.setdefault(number if fatal else (problem.rater, problem.message), []).append(problem)
    return list(groups.values())


def _print_raters(ranked: pd.DataFrame, most: int = 20) -> None:
    table = Table("rank", "rater", "skill", "95 % interval", "most frequent error", title="Raters, most skilful first")
    for row in ranked.head(most).to_dict("records"):
        between = "" if row["best_rank"] == row["worst_rank"] else f" ({row['best_rank']}–{row['worst_rank']})"
        interval = f"{row['low']:.3f} – {row['high']:.3f}"
        error = row["error"] if row["labelled"] else "labelled nothing"
        table.add_row(
            f"{row['rank']}{between}", _plain(row["rater"]), f"{row['skill']:.3f}", interval, _plain(error)
        )  # fmt: skip
    screen.print(table)
    if len(ranked) > most:
        screen.print(f"… and {len(ranked) - most} more.")


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"An option is written name=value, not {text!r}.")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _whole_numbers(text: str | None, what: str) -> list[int] | None:
    try:
        return None if text is None else [int(number) for number in text.split(",")]
    except ValueError:
        raise InputError(f"{what} is whole numbers with commas between them, as 64,64,32, not {text!r}.") from None


def _plain(value: object) -> str:
    from rich.markup import escape

    return escape(str(value)) if value is not None else ""


def main() -> None:
    """Run the command line. Exit codes: 0 good, 1 the job failed, 2 wrong use or bad input."""
    debug = "--debug" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    if not debug:
        _plain_warnings()
    try:
        app(arguments)
    except AnnotruthError as error:
        if debug:
            raise
        _say("bold red", "error", str(error))
        sys.exit(2 if isinstance(error, InputError) else 1)
    except KeyboardInterrupt:
        sys.exit(130)


def _plain_warnings() -> None:
    """Show warnings as a sentence, without the line of code that gave them."""
    import warnings

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if category.__module__.startswith("annotruth"):
            _say("bold yellow", "warning", str(message))

    warnings.showwarning = show
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")


def _say(style: str, word: str, text: str) -> None:
    if os.environ.get("LOCAL_RANK", "0") != "0":
        return  # of the processes on this machine that train together, one speaks
    Console(stderr=True).print(f"[{style}]{word}:[/] {_plain(text)}", highlight=False, soft_wrap=True)
