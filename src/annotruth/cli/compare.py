"""annotruth compare: which method to take for one's own data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from annotruth.cli.options import Duplicates, Features, Images, Network, Output, Quiet
from annotruth.cli.printing import print_comparison, progress_bar, screen
from annotruth.errors import InputError

if TYPE_CHECKING:
    from annotruth.data.annotations import Annotations


def compare(
    cases: Annotated[Path, typer.Argument(help="A case folder with images/ and raters/, or a label table.")],
    output: Output,
    methods: Annotated[
        Optional[str],
        typer.Option(
            metavar="NAMES",
            help="With commas between them: by default majority,staple,mean,pixel-cm,global-cm, and for a table "
            "majority,dawid-skene,mean,global-cm.",
        ),
    ] = None,
    folds: Annotated[int, typer.Option(help="Into how many parts cases are split, each held out once.")] = 3,
    seeds: Annotated[int, typer.Option(min=1, help="Trainings of each method and fold.")] = 1,
    leave_out: Annotated[
        str,
        typer.Option(
            metavar="items|raters", help="What is held out to judge by: parts of the cases, or each rater once."
        ),
    ] = "items",
    gold: Annotated[
        Optional[Path],
        typer.Option(help="Known truth to judge by: a folder of masks, by default truth/; for a label table, a table."),
    ] = None,
    images: Images = None,
    features: Features = None,
    duplicates: Duplicates = "error",
    network: Network = None,
    epochs: Annotated[
        Optional[int], typer.Option(help="Passes over the cases at most: by default as many as `train` makes.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Find out which method to take for these cases, by cross-validation; no truth is needed. Goes on if cut off."""
    annotations = _load(cases, gold, {"images": images, "features": features}, duplicates)

    from annotruth.choosing import compare as compare_methods
    from annotruth.reporting.comparison import write_comparison

    names = None if methods is None else [name.strip() for name in methods.split(",") if name.strip()]
    settings: dict[str, Any] = {"network": network, "max_epochs": epochs, "leave_out": leave_out}
    screen.print(f"{annotations!r} in {cases}")
    with progress_bar(quiet) as tell:
        found = compare_methods(
            annotations, names, folds=folds, seeds=seeds, folder=output, progress=tell,
            **{name: value for name, value in settings.items() if value is not None},
        )  # fmt: skip
    page = write_comparison(found, output)
    print_comparison(found)
    screen.print(f"Open [bold]{page}[/] in a browser.")


def _load(cases: Path, gold: Path | None, inputs: dict[str, Path | None], duplicates: str) -> Annotations:
    """The cases with the truth to judge by."""
    from annotruth.io import describe_takers, find_source, load

    source = find_source(cases)
    for name, path in inputs.items():
        if path is not None and name not in source.inputs:
            raise InputError(f"--{name} goes with {describe_takers(name)}.")
    if source.kind == "masks" and gold is not None and "truth" not in source.inputs:
        annotations, problems = source.load_sound(cases, source.find_truth(gold))
        if problems:
            more = f" ({len(problems) - 1} more: `annotruth check` lists those of the cases.)" * (len(problems) > 1)
            raise InputError(f"{problems[0]}{more}")
        if not annotations.has_truth:
            raise InputError(f"{gold}: the folder holds the truth of no case. Its files are named <case>.<ext>.")
        return annotations
    if source.kind == "labels" and "images" in source.inputs and not any(inputs.values()):
        raise InputError(f"{cases}: a {source.name} needs its pictures, --images FOLDER, or features, --features FILE.")
    truth = None if gold is None else source.find_truth(gold)
    return load(cases, truth, images=inputs["images"], features=inputs["features"], duplicates=duplicates)
