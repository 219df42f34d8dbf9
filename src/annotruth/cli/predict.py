"""annotruth predict: new images or items, labelled by a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from annotruth.cli.options import Output, Overwrite, Quiet, confidence_value
from annotruth.cli.printing import progress_bar, screen
from annotruth.errors import InputError

if TYPE_CHECKING:
    from annotruth.training import Classifier, Segmenter

BLOCK = 256
"""Items classified at once."""


def predict(
    run: Annotated[Path, typer.Argument(help="A run's folder, or a model file.")],
    items: Annotated[
        Path,
        typer.Argument(
            metavar="IMAGES_OR_FEATURES", help="A folder of images, or one image; a feature file, if learnt from one."
        ),
    ],
    output: Output,
    recurrence: Annotated[
        Optional[int], typer.Option(help="mrprism: the estimate after this recurrence, counted from 0.")
    ] = None,
    confidence: Annotated[
        Optional[list[str]],
        typer.Option(metavar="RATER=NUMBER", help="mrprism, mrnet: how far to trust a rater; 1 = as the others."),
    ] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Label new images: masks and probabilities in the images' own format and geometry, or a table of classes."""
    from annotruth.training import Segmenter, load_model
    from annotruth.training.runs import open_run

    model = load_model(run / "model.annotruth" if run.is_dir() else run)
    confidences = dict(confidence_value(text) for text in confidence) if confidence else None
    if isinstance(model, Segmenter):
        _draw(model, items, output, {"recurrence": recurrence, "confidences": confidences}, overwrite, quiet)
    else:
        if recurrence is not None or confidences is not None:
            raise InputError("--recurrence and --confidence go with a model of masks, and this one labels whole items.")
        columns = open_run(run).columns if (run / "run.json").is_file() else None
        _classify(model, items, columns, output, overwrite, quiet)


def _draw(model: Segmenter, images: Path, output: Path, asked: dict[str, Any], overwrite: bool, quiet: bool) -> None:
    from annotruth.io import fresh_folder, load_images, write_mask, write_probabilities
    from annotruth.methods.inference import predict_options

    # Refuses what the method cannot be asked before anything is written.
    predict_options(model.method_, model.raters_, **asked)
    data = load_images(images, rank=model.dims_, classes=model.classes_)
    data.pixel_values = model.pixel_values_
    fresh_folder(output, overwrite)
    with progress_bar(quiet) as tell:
        for index in range(len(data)):
            tell("Labelling", index, len(data))
            probabilities = model.predict_proba([data.item_image(index)], **asked)[0]
            write_probabilities(output / "probabilities", data, index, probabilities)
            write_mask(output / "labels", data, index, probabilities.argmax(axis=0))
    screen.print(f"{len(data)} images labelled: {output / 'labels'}, {output / 'probabilities'}.")


def _classify(
    model: Classifier, items: Path, columns: list[str] | None, output: Path, overwrite: bool, quiet: bool
) -> None:
    import numpy as np

    from annotruth.data.answers import class_name
    from annotruth.io import fresh_folder, load_features, load_images, suffix_of, write_label_table

    if not model.dims_ and items.is_dir():
        raise InputError(f"{items}: the model learnt from features; give a file of them, not a folder.")
    if model.dims_ and items.is_file() and suffix_of(items) is None:
        raise InputError(f"{items}: the model learnt from pictures; give a folder of them, or one.")
    classes = [class_name(label) for label in model.classes_.tolist()]
    if model.dims_:
        data = load_images(items, rank=model.dims_, classes=classes)
    else:
        data = load_features(items, classes, columns)
    fresh_folder(output, overwrite)
    probabilities = []
    with progress_bar(quiet) as tell:
        for start in range(0, len(data), BLOCK):
            tell("Labelling", start, len(data))
            probabilities.append(model.predict_proba(data.take(np.arange(start, min(start + BLOCK, len(data))))))
    path = write_label_table(output / "labels.csv", data, np.concatenate(probabilities))
    screen.print(f"{len(data)} items labelled: {path}.")
