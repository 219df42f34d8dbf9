"""annotruth report: one HTML file about a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from annotruth.cli.printing import screen


def report(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    cases: Annotated[Optional[Path], typer.Option(help="Show these cases instead of those trained on.")] = None,
    output: Annotated[Optional[Path], typer.Option("--output", "-o", help="Where to write it.")] = None,
) -> None:
    """Write one HTML file: raters, their errors, the cases to look at again, training curves."""
    from annotruth.reporting import report as write_report
    from annotruth.training.ensemble import load_file
    from annotruth.training.runs import open_run

    opened = open_run(run)
    model = load_file(opened.model)
    path = write_report(model, opened.annotations(cases), output or opened.report)
    screen.print(f"Open [bold]{path}[/] in a browser.")
