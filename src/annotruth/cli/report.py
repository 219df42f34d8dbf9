"""annotruth report: one HTML file about a run, or a fusion."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from annotruth.cli.printing import screen

if TYPE_CHECKING:
    from annotruth.data.annotations import Annotations
    from annotruth.reporting.model import Model


def report(
    run: Annotated[Path, typer.Argument(help="A run's folder, or one that annotruth fuse wrote.")],
    cases: Annotated[
        Optional[Path],
        typer.Option(help="Show these cases instead of those trained on; of a fusion, where its labels are now."),
    ] = None,
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
    from annotruth.fusion.folder.again import is_fusion
    from annotruth.io.timing import read_times
    from annotruth.reporting import report as write_report
    from annotruth.reporting import write_rater_pages

    model, annotations, source, usual = (_fusion if is_fusion(run) else _run)(run, cases)
    ordered = None if queue is None else read_queue(queue)
    times = read_times(source, annotations)
    path = write_report(model, annotations, output or usual, queue=ordered, times=times)
    screen.print(f"Open [bold]{path}[/] in a browser.")
    if raters is not None:
        pages = write_rater_pages(model, annotations, raters, times=times)
        screen.print(f"Pages of {len(pages)} raters, to be shown to them: {raters}")


def _run(folder: Path, cases: Path | None) -> tuple[Model, Annotations, Path, Path]:
    """The model of a run, what it is shown on, where that lies, and where the report goes."""
    from annotruth.training.ensemble import load_file
    from annotruth.training.runs import open_run

    opened = open_run(folder)
    return load_file(opened.model), opened.annotations(cases), cases or Path(opened.cases), opened.report


def _fusion(folder: Path, cases: Path | None) -> tuple[Model, Annotations, Path, Path]:
    """The same of labels that were fused."""
    from annotruth.fusion.folder.again import fuse_again
    from annotruth.reporting.fused import FusedModel

    fused, annotations, source, warned = fuse_again(folder, cases)
    return FusedModel(fused, warned), annotations, source, folder / "report.html"
