"""annotruth simulate: raters with known errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from annotruth.cli.options import Output, Overwrite, Seed
from annotruth.cli.printing import screen
from annotruth.errors import InputError


def simulate(
    source: Annotated[Path, typer.Argument(help="A folder with images/ and truth/.")],
    output: Output,
    raters: Annotated[str, typer.Option(help="Kinds of raters.")] = "good,over,under,wrong,blank",
    strength: Annotated[float, typer.Option(help="How strongly they err; 0 = not at all.")] = 1.0,
    keep: Annotated[str, typer.Option(help="Labels kept: all, or how many raters label each case.")] = "all",
    drawings: Annotated[
        Optional[float],
        typer.Option(help="Strokes of one person, what is there and what is not, on this share; 0.01 = scribbles."),
    ] = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Draw masks, or coarse strokes, as raters with known errors would; write a case folder with confusion.json."""
    from annotruth.data.annotations import Annotations
    from annotruth.io import atomic, load_images, write_case_folder
    from annotruth.simulate import simulate_drawings, simulate_masks

    data = load_images(source)
    if not data.has_truth:
        raise InputError(f"{source}: there is no truth/ folder to simulate raters on.")
    if keep != "all" and not keep.isdigit():
        raise InputError(f"--keep is 'all' or a whole number, not {keep!r}.")
    truth = [data.item_truth(index) for index in range(len(data))]
    how: dict[str, Any] = {"n_classes": len(data.classes), "strength": strength, "seed": seed}
    if drawings is not None:
        simulation = simulate_drawings(truth, positive=drawings, negative=drawings, **how)
    else:
        kinds = [kind.strip() for kind in raters.split(",")]
        simulation = simulate_masks(truth, kinds, keep="all" if keep == "all" else int(keep), **how)
    drawn = Annotations(
        kind="masks", items=data.items, raters=simulation.raters, classes=data.classes, masks=simulation.masks,
        negatives=simulation.negatives, images=[data.item_image(index) for index in range(len(data))], truth=truth,
        groups=data.groups, sources=data.sources, pixel_values=data.pixel_values,
    )  # fmt: skip
    write_case_folder(output, drawn, overwrite=overwrite)
    with atomic(output / "confusion.json") as temporary:
        known = {name: matrix.tolist() for name, matrix in zip(simulation.raters, simulation.confusion)}
        temporary.write_text(json.dumps({"orientation": "[true][observed]", "raters": known}, indent=2) + "\n")
    screen.print(f"{len(data)} cases by {len(simulation.raters)} raters written to {output}.")
