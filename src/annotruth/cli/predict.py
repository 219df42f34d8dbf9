"""annotruth predict: new images or items, labelled by a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from annotruth.cli.options import Output, Overwrite, Quiet, confidence_value
from annotruth.cli.printing import progress_bar, screen
from annotruth.errors import InputError

if TYPE_CHECKING:
    from annotruth.training import Classifier, Ensemble, Segmenter

BLOCK = 256
"""Items classified at once."""


def predict(
    run: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN",
            help="A run's folder, or a model file. Of several, and of a folder with runs of folds, the mean.",
        ),
    ],
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
    crf: Annotated[
        bool, typer.Option("--crf", help="Masks: let pixels listen to those near them that look alike (a dense CRF).")
    ] = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Label new images: masks and probabilities in the images' own format and geometry, or a table of classes."""
    from annotruth.io import refuse_used_folder
    from annotruth.io.locks import only_writer
    from annotruth.training import Segmenter
    from annotruth.training.ensemble import load_files, model_files

    files = [file for path in run for file in model_files(path)]
    ensemble = load_files(files)
    first = ensemble.models[0]
    confidences = dict(confidence_value(text) for text in confidence) if confidence else None
    if not isinstance(first, Segmenter) and (recurrence is not None or confidences is not None or crf):
        raise InputError(
            "--recurrence, --confidence and --crf go with a model of masks, and this one labels whole items."
        )
    refuse_used_folder(output, overwrite)
    with only_writer(output):
        if isinstance(first, Segmenter):
            asked = {"recurrence": recurrence, "confidences": confidences}
            _draw(ensemble, first, items, output, asked, crf, overwrite, quiet)
        else:
            _classify(ensemble, first, items, _columns(set(files) - set(run)), output, overwrite, quiet)
    if len(files) > 1:
        screen.print(f"Probabilities are the mean of {len(files)} models'.")


def _columns(files: set[Path]) -> list[str] | None:
    """Names of the features that models in runs' folders learnt from, the same for all; None where they have none."""
    from annotruth.training.runs import open_run

    runs = [open_run(file.parent) for file in sorted(files) if (file.parent / "run.json").is_file()]
    for run in runs[1:]:
        if run.columns != runs[0].columns:
            raise InputError(
                f"{runs[0].model} and {run.model} cannot predict together, as they learnt from other features."
            )
    return runs[0].columns if runs else None


def _draw(
    ensemble: Ensemble, first: Segmenter, images: Path, output: Path, asked: dict[str, Any], crf: bool,
    overwrite: bool, quiet: bool,
) -> None:  # fmt: skip
    from annotruth.io import fresh_folder, load_images, write_mask, write_probabilities
    from annotruth.methods.inference import predict_options
    from annotruth.training import Segmenter
    from annotruth.training.resample import grid_sizes

    # Refuses what a method cannot be asked before anything is written.
    for model in ensemble.models:
        predict_options(model.method_, model.raters_, **asked)
    data = load_images(images, rank=first.dims_, classes=first.classes_)
    data.pixel_values = first.pixel_values_
    for model in ensemble.models:  # as it does images of which no spacing is known, where one is needed
        if isinstance(model, Segmenter):
            grid_sizes(data, model.plan_.spacing)
    fresh_folder(output, overwrite)
    with progress_bar(quiet) as tell:
        for index in range(len(data)):
            tell("Labelling", index, len(data))
            spacing = data.spacing(index)
            probabilities = ensemble.predict_proba([data.item_image(index)], spacing=spacing, crf=crf, **asked)[0]
            write_probabilities(output / "probabilities", data, index, probabilities)
            write_mask(output / "labels", data, index, probabilities.argmax(axis=0))
    screen.print(f"{len(data)} images labelled: {output / 'labels'}, {output / 'probabilities'}.")


def _classify(
    ensemble: Ensemble, first: Classifier, items: Path, columns: list[str] | None, output: Path, overwrite: bool,
    quiet: bool,
) -> None:  # fmt: skip
    import numpy as np

    from annotruth.data.answers import class_name
    from annotruth.io import fresh_folder, load_features, load_images, suffix_of, write_label_table

    if not first.dims_ and items.is_dir():
        raise InputError(f"{items}: the model learnt from features; give a file of them, not a folder.")
    if first.dims_ and items.is_file() and suffix_of(items) is None:
        raise InputError(f"{items}: the model learnt from pictures; give a folder of them, or one.")
    classes = [class_name(label) for label in first.classes_.tolist()]
    if first.dims_:
        data = load_images(items, rank=first.dims_, classes=classes)
    else:
        data = load_features(items, classes, columns)
    fresh_folder(output, overwrite)
    probabilities = []
    with progress_bar(quiet) as tell:
        for start in range(0, len(data), BLOCK):
            tell("Labelling", start, len(data))
            probabilities.append(ensemble.predict_proba(data.take(np.arange(start, min(start + BLOCK, len(data))))))
    path = write_label_table(output / "labels.csv", data, np.concatenate(probabilities))
    screen.print(f"{len(data)} items labelled: {path}.")
