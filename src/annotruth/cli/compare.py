"""annotruth compare: which method to take for one's own data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer
from rich.table import Table

from annotruth.cli.options import Duplicates, Features, Images, Network, Output, Quiet
from annotruth.cli.printing import escape, progress_bar, screen
from annotruth.errors import InputError

if TYPE_CHECKING:
    from annotruth.choosing import Comparison
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
    settings: dict[str, Any] = {"network": network, "max_epochs": epochs}
    screen.print(f"{annotations!r} in {cases}")
    with progress_bar(quiet) as tell:
        found = compare_methods(
            annotations, names, folds=folds, seeds=seeds, folder=output, progress=tell,
            **{name: value for name, value in settings.items() if value is not None},
        )  # fmt: skip
    page = write_comparison(found, output)
    _print_table(found)
    for sentence in found.advice:
        screen.print(escape(sentence), highlight=False)
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


def _print_table(found: Comparison) -> None:
    rows = found.table
    table = Table(title="Methods on held-out items, the best first")
    table.add_column("method")
    heads = {"message": "nats per item", "behind": "behind the best", "shorter": "shorter than without"}
    heads |= {"agreement": "agreement of seeds", found.score_name: found.score_name, "seconds": "seconds"}
    for head in (heads[name] for name in heads if name in rows):
        table.add_column(head, justify="right")
    for row in rows.to_dict("records"):
        written = {
            "message": f"{row['message']:.{found.digits}f}",
            "behind": f"{row['behind']:.{found.digits}f} ± {row['behind_error']:.{found.digits}f}"
            if row["behind"]
            else "–",
            "shorter": f"{row['shorter']:.0%}",
            "agreement": f"{row.get('agreement', 0):.3f}",
            found.score_name: f"{row.get(found.score_name, 0):.3f}",
            "seconds": f"{row['seconds']:.1f}",
        }
        style = "bold" if row["recommended"] else None
        table.add_row(escape(row["method"]), *[written[name] for name in heads if name in rows], style=style)
    screen.print(table)
