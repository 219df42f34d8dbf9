"""annotruth predict and report: what a trained model is for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from annotruth.cli.options import Output, Overwrite, Quiet
from annotruth.cli.printing import screen


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
