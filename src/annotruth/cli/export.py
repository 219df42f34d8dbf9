"""annotruth export: fused or predicted labels, back to a labelling tool or on to another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from annotruth.cli.options import Output, Overwrite, Quiet, option_value
from annotruth.cli.printing import escape, progress_bar, screen


def export(
    result: Annotated[Path, typer.Argument(help="What fuse or predict wrote, or a case folder with truth/.")],
    output: Output,
    to: Annotated[str, typer.Option(metavar="NAME", help="cvat, label-studio, coco, nnunet, slicer or dicom.")],
    cases: Annotated[
        Optional[Path], typer.Option(metavar="FOLDER", help="The cases: images, classes, the source's own names.")
    ] = None,
    disputed: Annotated[
        Optional[float], typer.Option(help="Pixels less probable than this become a class of their own.")
    ] = None,
    option: Annotated[Optional[list[str]], typer.Option(help="An option of the form, as name=value.")] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Write labels as a labelling tool's pre-annotations, or as another program reads them."""
    from annotruth.io.exports import export_result

    with progress_bar(quiet) as tell:
        folder = export_result(
            result, output, to, cases=cases, disputed=disputed, overwrite=overwrite,
            progress=lambda done, total: tell("Exporting", done, total),
            **dict(option_value(text) for text in option or []),
        )  # fmt: skip
    screen.print(f"Written to {escape(folder)}.", highlight=False)
