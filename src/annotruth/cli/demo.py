"""annotruth demo: what the methods can do, on bundled digits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from annotruth.cli.options import Output, Overwrite, Quiet, Seed
from annotruth.cli.printing import screen


def demo(
    output: Output = Path("runs/demo"),
    quick: Annotated[bool, typer.Option("--quick", help="Few digits, short trainings: does everything work?")] = False,
    overwrite: Overwrite = False,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Train on bundled digits with five simulated raters, print the scores, write a report. A few minutes."""
    from annotruth.io import fresh_folder

    fresh_folder(output, overwrite)
    from annotruth.experiments.demo import QUICK, SCALE, run_demo
    from annotruth.metrics import METRICS

    sizes = (QUICK if quick else SCALE).sizes
    screen.print(
        f"{sizes['train']} noisy digits to learn from, {sizes['test']} held out. Five simulated raters: good (the "
        "truth itself), over (draws too much), under (too little), wrong (in pieces), blank (nothing)."
    )
    scores = run_demo(output, seed, progress=not quiet, tell=lambda line: screen.print(f"  {line}"), quick=quick)
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
