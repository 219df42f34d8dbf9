"""annotruth check: every problem of every file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from annotruth.cli.options import Duplicates, Features, Images
from annotruth.cli.printing import plain, progress_bar, screen

if TYPE_CHECKING:
    from annotruth.io import Problem


def check(
    cases: Annotated[Path, typer.Argument(help="A case folder, or a label table.")],
    every: Annotated[
        bool, typer.Option("--all", help="Show a warning for every file, however often it recurs.")
    ] = False,
    images: Images = None,
    features: Features = None,
    duplicates: Duplicates = "error",
) -> None:
    """List every problem of every file in one go. Exit code 2 if any is fatal."""
    from annotruth.io import check as find_problems

    with progress_bar() as tell:
        problems = find_problems(
            cases, lambda done, total: tell("Reading", done, total), images=images, features=features,
            duplicates=duplicates,
        )  # fmt: skip
    if not problems:
        screen.print(f"[green]No problem found in {cases}.[/]")
        return
    for same in [[problem] for problem in problems] if every else _alike(problems):
        first = same[0]
        colour = "red" if first.severity == "fatal" else "yellow"
        also = f" The same holds for {len(same) - 1} more cases (--all lists them)." if len(same) > 1 else ""
        screen.print(f"[{colour}]{first.severity}[/] {plain(first)}{also}", highlight=False, soft_wrap=True)
    fatal = sum(problem.severity == "fatal" for problem in problems)
    screen.print(f"{fatal} fatal, {len(problems) - fatal} to look at.")
    if fatal:
        raise typer.Exit(2)


def _alike(problems: list[Problem]) -> list[list[Problem]]:
    """Put warnings together that recur over many cases of one rater; every fatal problem stands by itself."""
    groups: dict[object, list[Problem]] = {}
    for number, problem in enumerate(problems):
        fatal = problem.severity == "fatal"
        groups.setdefault(number if fatal else (problem.rater, problem.message), []).append(problem)
    return list(groups.values())
