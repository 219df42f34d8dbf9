"""Options that several verbs share, and values written as text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from annotruth.errors import InputError

Output = Annotated[Path, typer.Option("--output", "-o", help="Folder for the results.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier call left in the folder.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")]
Images = Annotated[
    Optional[Path], typer.Option(metavar="FOLDER", help="Label table: the items' pictures, named <item>.<ext>.")
]
Features = Annotated[
    Optional[Path],
    typer.Option(metavar="FILE", help="Label table: the items' features, a row each: .csv, .parquet, .npz or .npy."),
]
Duplicates = Annotated[
    str,
    typer.Option(metavar="error|keep-last", help="Label table: when a rater labelled an item twice and differently."),
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]

Network = Annotated[
    Optional[str],
    typer.Option(
        help="Masks: small, standard or residual; pictures of a table: resnet or cnn; features: mlp or linear; or "
        "monai:<ClassName>."
    ),
]
PatchSize = Annotated[
    Optional[str], typer.Option(help="Train on random patches, as 64,64,32; by default where cases are large.")
]


def whole_numbers(text: str | None) -> list[int] | None:
    """Read a patch size."""
    try:
        return None if text is None else [int(number) for number in text.split(",")]
    except ValueError:
        raise InputError(
            f"--patch-size is whole numbers with commas between them, as 64,64,32, not {text!r}."
        ) from None


def option_value(text: str) -> tuple[str, Any]:
    """Read an option of a method, name=value; the value is JSON or, failing that, a word."""
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"An option is written name=value, not {text!r}.")
    try:
        return name, json.loads(value)
    except RecursionError:
        raise InputError(f"The option {name} is nested too deeply.") from None
    except ValueError:  # no JSON, or a number of thousands of digits
        return name, value


def confidence_value(text: str) -> tuple[str, float]:
    """Read how far to trust a rater, rater=number."""
    name, _, value = text.rpartition("=")
    try:
        return name, float(value)
    except ValueError:
        raise InputError(f"A confidence is written rater=number, as ann=2, not {text!r}.") from None
