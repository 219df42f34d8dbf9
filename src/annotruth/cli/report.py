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
    queue: Annotated[
        Optional[Path], typer.Option(metavar="FILE", help="Show what to label next: a queue of annotruth next.")
    ] = None,
    raters: Annotated[
        Optional[Path],
        typer.Option(metavar="FOLDER", help="Also write a page for each rater, to be shown to them."),
    ] = None,
) -> None:
    """Write one HTML file: raters, their errors, the cases to look at again, training curves."""
    from annotruth.choosing.queue.stored import read_queue
    from annotruth.io.timing import read_times
    from annotruth.reporting import report as write_report
    from annotruth.reporting import write_rater_pages
    from annotruth.training.ensemble import load_file
    from annotruth.training.runs import open_run

    opened = open_run(run)
    model = load_file(opened.model)
    ordered = None if queue is None else read_queue(queue)
    annotations = opened.annotations(cases)
    times = read_times(opened.cases if cases is None else cases, annotations)
    path = write_report(model, annotations, output or opened.report, queue=ordered, times=times)
    screen.print(f"Open [bold]{path}[/] in a browser.")
    if raters is not None:
        pages = write_rater_pages(model, annotations, raters, times=times)
        screen.print(f"Pages of {len(pages)} raters, to be shown to them: {raters}")
