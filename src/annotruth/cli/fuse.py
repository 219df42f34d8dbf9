"""annotruth fuse: the truth without images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from annotruth.cli.options import Duplicates, Output, Overwrite, Quiet, option_value
from annotruth.cli.printing import escape, print_frame, print_raters, progress_bar, say, screen
from annotruth.errors import InputError
from annotruth.fusion.other_answers import model_names
from annotruth.fusion.registry import method_names

METHODS, MODELS = method_names(), model_names()


def fuse(
    cases: Annotated[Path, typer.Argument(help="A case folder, or a label table.")],
    output: Output,
    method: Annotated[
        str,
        typer.Option(
            help=f"{', '.join(METHODS)}, or auto: the one, or average, that foretells held-out raters best. "
            f"For a table of comparisons, numbers or findings: {', '.join(MODELS)}."
        ),
    ] = "staple",
    scope: Annotated[str, typer.Option(help="dataset: one matrix per rater; case: one in each case.")] = "dataset",
    gold: Annotated[
        Optional[Path], typer.Option(help="Known truth: a folder of masks; for a label table, a table item, truth.")
    ] = None,
    duplicates: Duplicates = "error",
    option: Annotated[Optional[list[str]], typer.Option(help="An option of the method, as max_iter=50.")] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Label table: read in parts, as one of over 20 million rows is anyway.")
    ] = False,
    jobs: Annotated[int | None, typer.Option(help="Cores to use; all, if not given.")] = None,
    dask: Annotated[
        Optional[str],
        typer.Option(metavar="ADDRESS", help="Dask scheduler whose workers share the cases, or parts of a table."),
    ] = None,
    objects: Annotated[
        bool, typer.Option("--objects", help="Fuse object by object: a labelling tool's export, or a table of boxes.")
    ] = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Fuse the raters' labels into one truth with probabilities, and measure every rater. Needs no images.

    A bad case is set aside and named at the end; the others are fused, and the exit code is 1.
    """
    given = {"--gold": gold is not None, "--scope": scope != "dataset", "--stream": stream, "--dask": dask is not None}
    if objects:
        _refuse_given("Object by object, fuse", {"--method": method != "staple", **given})
        _fuse_objects(cases, output, dict(option_value(text) for text in option or []), overwrite)
        return
    if method in MODELS:
        _refuse_given(method, given)
        _fuse_answers(cases, output, method, dict(option_value(text) for text in option or []), duplicates, overwrite)
        return
    from annotruth.fusion.folder import fuse as fuse_all
    from annotruth.parallel.signals import hint_if_stopped

    hint = "Files in the folder are whole, but not all are there: begin again with --overwrite."
    with hint_if_stopped(lambda: hint), progress_bar(quiet) as tell:
        fusion = fuse_all(
            cases, output, method, scope=scope, options=dict(option_value(text) for text in option or []), gold=gold,
            duplicates=duplicates, stream=stream, jobs=jobs, processes=True, scheduler=dask, overwrite=overwrite,
            progress=tell,
        )  # fmt: skip
    if fusion.choice is not None:
        screen.print(escape(fusion.choice))
    print_raters(fusion.fused.ranking_columns())
    for warning in fusion.warnings:
        say("bold yellow", "warning", str(warning))
    screen.print(f"Truth, raters.csv and fusion.json: {output}.")
    for lost in fusion.set_aside:
        say("bold red", "set aside", lost.reason)
    if fusion.set_aside:
        raise typer.Exit(1)


def _refuse_given(what: str, given: dict[str, bool]) -> None:
    """Refuse options that would change nothing."""
    names = [name for name, is_given in given.items() if is_given]
    if names:
        raise InputError(f"{what} takes no {' and no '.join(names)}. Leave {'it' if len(names) == 1 else 'them'} out.")


def _fuse_answers(
    source: Path, output: Path, method: str, options: dict[str, Any], duplicates: str, overwrite: bool
) -> None:
    from annotruth.fusion.folder.other_answers import fuse_answers

    model, warnings = fuse_answers(source, output, method, options, duplicates=duplicates, overwrite=overwrite)
    print_frame(model.ranking_.iloc[:, :6], "Raters, the best first")
    for warning in warnings:
        say("bold yellow", "warning", str(warning))
    screen.print(f"truth.csv ({len(model.items_)} items), raters.csv and fusion.json: {escape(output)}.")


def _fuse_objects(source: Path, output: Path, options: dict[str, Any], overwrite: bool) -> None:
    from annotruth.cli.check import print_problems
    from annotruth.fusion.folder.objects import fuse_objects

    fused, problems = fuse_objects(source, output, options, overwrite)
    print_frame(fused.raters_, "Raters", most=len(fused.raters_))
    screen.print(f"{len(fused.truth_)} objects, of {len(fused.candidates_)} that anybody marked: {escape(output)}.")
    print_problems(problems, listed_by="annotruth check --all lists them")
    if any(problem.severity == "fatal" for problem in problems):
        raise typer.Exit(1)
