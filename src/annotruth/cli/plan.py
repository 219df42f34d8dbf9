"""annotruth plan: how a training would treat these cases, to read and to change."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from annotruth.cli.options import Network, PatchSize, Quiet, whole_numbers
from annotruth.cli.printing import progress_bar, screen
from annotruth.errors import InputError


def plan(
    cases: Annotated[Path, typer.Argument(help="A case folder with images/ and raters/.")],
    output: Annotated[
        Optional[Path], typer.Option("--output", "-o", metavar="FILE", help="Write it here, as JSON.")
    ] = None,
    network: Network = None,
    patch_size: PatchSize = None,
    batch_size: Annotated[Optional[int], typer.Option(help="Cases per step; by default by their size.")] = None,
    deep_supervision: Annotated[
        bool, typer.Option("--deep-supervision", help="Coarse stages of the network give class scores, too.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Show how a training would treat these cases: spacing, patches, network. Change it, and train with --plan."""
    from annotruth.io import atomic, load

    annotations = load(cases)
    if annotations.kind != "masks":
        raise InputError(f"{cases}: a plan is made for masks, and this is a label table; train it as it is.")

    from annotruth.training import Segmenter

    model = Segmenter(
        "majority", network=network, patch_size=whole_numbers(patch_size), batch_size=batch_size,
        deep_supervision=deep_supervision,
    )  # fmt: skip
    with progress_bar(quiet) as tell:
        record = model.make_plan(annotations, lambda done, total: tell("Reading", done, total)).to_json()
    if output is None:
        typer.echo(record, nl=False)
        return
    if output.is_dir():
        raise InputError(f"{output} is a folder; name the file to write the plan to, as {output / 'plan.json'}.")
    with atomic(output) as temporary:
        temporary.write_text(record)
    screen.print(f"Plan: {output}. Change it, then `annotruth train {cases} --plan {output} -o RUN`.")
