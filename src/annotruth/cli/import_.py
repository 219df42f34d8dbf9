"""annotruth import: what a labelling tool exported, or a paper laid out, as cases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from annotruth.cli.check import print_problems
from annotruth.cli.options import Overwrite, Quiet, option_value
from annotruth.cli.printing import escape, progress_bar, screen

if TYPE_CHECKING:
    from annotruth.io import Imported


def import_(
    source: Annotated[Path, typer.Argument(help="A labelling tool's export, or another data set: a file or a folder.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The new case folder, or folder with a label table.")],
    kind: Annotated[
        Optional[str], typer.Option("--from", metavar="NAME", help="What the source is; found by looking at it.")
    ] = None,
    images: Annotated[Optional[Path], typer.Option(metavar="FOLDER", help="Where the images lie.")] = None,
    duplicates: Annotated[
        Optional[str], typer.Option(metavar="error|keep-last", help="When a rater labelled an item twice.")
    ] = None,
    item: Annotated[Optional[str], typer.Option(metavar="COLUMN", help="Table: which column names the item.")] = None,
    rater: Annotated[Optional[str], typer.Option(metavar="COLUMN", help="Table: which column names the rater.")] = None,
    label: Annotated[
        Optional[str], typer.Option(metavar="COLUMN", help="Table: which column holds the answer.")
    ] = None,
    raters: Annotated[
        Optional[str], typer.Option(metavar="COLUMNS", help="Table with a column per rater: which, as ann,bob.")
    ] = None,
    colour: Annotated[
        Optional[list[str]], typer.Option(metavar="COLOUR=CLASS", help='Masks in colour: as "#ff0000=tumour", each.')
    ] = None,
    resize: Annotated[
        bool, typer.Option("--resize", help="Masks larger or smaller than the image by a whole number are resized.")
    ] = False,
    option: Annotated[Optional[list[str]], typer.Option(help="An option of the source, as name=value.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first thing that is wrong.")] = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Turn another data set into a case folder, or a label table, keeping who labelled what.

    What is wrong is left out and listed, here and in the new folder's dataset.json, and the exit code is 1. The source
    stays as it is.
    """
    from annotruth.io import import_source
    from annotruth.parallel.signals import hint_if_stopped

    columns = {"item": item, "rater": rater, "label": label, "raters": raters}
    masks = {"colours": colour or None, "resize": resize or None}
    kind = kind or _kind_by_options(source, columns, masks)
    inputs = {"images": images, "duplicates": duplicates, **columns, **masks}
    inputs |= dict(option_value(text) for text in option or [])
    hint = "Nothing was written, as the folder appears when it is whole: the same command begins again."
    with hint_if_stopped(lambda: hint), progress_bar(quiet) as tell:
        imported = import_source(
            source, output, kind, strict=strict, overwrite=overwrite,
            progress=lambda done, total: tell("Importing", done, total),
            **{name: value for name, value in inputs.items() if value is not None},
        )  # fmt: skip
    print_imported(imported)
    if not imported.is_whole:
        raise typer.Exit(1)


def _kind_by_options(source: Path, columns: dict[str, Any], masks: dict[str, Any]) -> str | None:
    """What a source is that looks like one of our own, where options say how to read it otherwise."""
    from annotruth.io import find_source

    named, drawn = (any(value is not None for value in given.values()) for given in (columns, masks))
    if not (named or drawn):
        return None
    found = find_source(source).key
    return {"label-table": "table" if named else None, "case-folder": "mask-folder" if drawn else None}.get(found)


def print_imported(imported: Imported, most: int = 20) -> None:
    """Print what was understood, and what was left out."""
    from annotruth.errors import shorten

    raters = [f"{name} ({count})" for name, count in imported.raters.items()]
    screen.print(f"Read as {escape(imported.source)}: {imported.items} items.", highlight=False)
    screen.print(f"Raters: {escape(shorten(raters, most))}.", highlight=False)
    screen.print(f"Classes: {escape(shorten(list(imported.classes), most))}.", highlight=False)
    for note in imported.notes:
        screen.print(escape(note), highlight=False)
    print_problems(imported.problems, listed_by="dataset.json lists them")
    if imported.skipped:
        screen.print(f"{len(imported.skipped)} left out because something is wrong; dataset.json lists them.")
    screen.print(f"Written to {escape(imported.output)}.", highlight=False)
