"""annotruth demo and reproduce: what the methods can do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.table import Table

from annotruth.cli.options import Output, Overwrite, Quiet, Seed
from annotruth.cli.printing import escape, screen


def demo(
    output: Output = Path("runs/demo"), overwrite: Overwrite = False, seed: Seed = 0, quiet: Quiet = False
) -> None:
    """Train on bundled digits with five simulated raters, print the scores, write a report. A few minutes."""
    from annotruth.io import fresh_folder

    fresh_folder(output, overwrite)
    from annotruth.experiments.demo import run_demo
    from annotruth.metrics import METRICS

    screen.print(
        "1,000 noisy digits to learn from, 500 held out. Five simulated raters: good (the truth itself), over "
        "(draws too much), under (too little), wrong (in pieces), blank (nothing)."
    )
    scores = run_demo(output, seed, progress=not quiet, tell=lambda line: screen.print(f"  {line}"))
    for setting, methods in scores.items():
        table = Table(title=f"{setting} labels, held-out digits" if setting == "dense" else "one label per image")
        table.add_column("method")
        for metric in ("dice", "cm_rmse"):
            table.add_column(METRICS[metric].heading, justify="right")
        for method, row in methods.items():
            table.add_row(method, f"{row['dice']:.3f}", f"{row['cm_rmse']:.3f}")
        screen.print(table)
    screen.print(
        f"clean learns from the truth: the upper bound. Scores: {output / 'scores.json'}. "
        f"Open [bold]{output / 'report.html'}[/] in a browser."
    )


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
        tell=lambda line: screen.print(f"  {escape(line)}"),
    )  # fmt: skip
    for finding in table["findings"]:
        screen.print(escape(finding), highlight=False)
    screen.print(f"Table: {output / (table['experiment'] + '.md')}")
