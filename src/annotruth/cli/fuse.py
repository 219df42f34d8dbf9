"""annotruth fuse: the truth without images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from annotruth.cli.options import Duplicates, Output, Overwrite, Quiet, option_value
from annotruth.cli.printing import print_raters, progress_bar, say, screen
from annotruth.fusion.registry import method_names

METHODS = method_names()


def fuse(
    cases: Annotated[Path, typer.Argument(help="A case folder, or a label table.")],
    output: Output,
    method: Annotated[str, typer.Option(help=f"{', '.join(METHODS[:-1])} or {METHODS[-1]}.")] = "staple",
    scope: Annotated[str, typer.Option(help="dataset: one matrix per rater; case: one in each case.")] = "dataset",
    gold: Annotated[
        Optional[Path], typer.Option(help="Known truth: a folder of masks; for a label table, a table item, truth.")
    ] = None,
    duplicates: Duplicates = "error",
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
    from annotruth.parallel.signals import hint_if_stopped

    hint = "Files in the folder are whole, but not all are there: begin again with --overwrite."
    with hint_if_stopped(lambda: hint), progress_bar(quiet) as tell:
        fusion = fuse_all(
            cases, output, method, scope=scope, options=dict(option_value(text) for text in option or []), gold=gold,
            duplicates=duplicates, jobs=jobs, scheduler=dask, overwrite=overwrite, progress=tell,
        )  # fmt: skip
    print_raters(fusion.fused.ranking_)
    for warning in fusion.warnings:
        say("bold yellow", "warning", str(warning))
    screen.print(f"Truth, raters.csv and fusion.json: {output}.")
    for lost in fusion.set_aside:
        say("bold red", "set aside", lost.reason)
    if fusion.set_aside:
        raise typer.Exit(1)
