"""annotruth reproduce: a table made anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from annotruth.cli.printing import escape, screen


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
    extend: Annotated[
        bool, typer.Option("--extend", help="Train only what the folder's table lacks: more seeds, new rows.")
    ] = False,
    renew: Annotated[
        Optional[list[str]], typer.Option(metavar="ROW", help="Train this row of it anew, too; may be repeated.")
    ] = None,
) -> None:
    """Make a table anew: train every method on every seed, write it as Markdown, JSON and plot. Goes on if cut off."""
    from annotruth.experiments import EXPERIMENTS, run_experiment
    from annotruth.parallel.signals import hint_if_stopped
    from annotruth.validation import one_of

    chosen = EXPERIMENTS[one_of(experiment, sorted(EXPERIMENTS), "experiment")]
    with hint_if_stopped(lambda: "Trainings that are done are kept: the same command goes on with the others."):
        table = run_experiment(
            chosen, output, quick=quick, seeds=None if seeds is None else range(seeds), data=data, jobs=jobs,
            extend=extend, renew=renew or (), tell=lambda line: screen.print(f"  {escape(line)}"),
        )  # fmt: skip
    for finding in table["findings"]:
        screen.print(escape(finding), highlight=False)
    screen.print(f"Table: {output / (table['experiment'] + '.md')}")
