"""annotruth check: every problem of every file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from annotruth.cli.options import Features, option_value
from annotruth.cli.printing import escape, progress_bar, screen

if TYPE_CHECKING:
    from annotruth.io import Problem

MAX_SHOWN = 3
"""Files named under a problem that many have, unless all are asked for."""


def check(
    cases: Annotated[Path, typer.Argument(help="A case folder, a label table, or another data set.")],
    every: Annotated[bool, typer.Option("--all", help="Name every file, however many have the same problem.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all problems as a JSON list, and nothing else.")
    ] = False,
    images: Annotated[
        Optional[Path],
        typer.Option(metavar="FOLDER", help="Where the images lie; of a label table, named <item>.<ext>."),
    ] = None,
    features: Features = None,
    duplicates: Annotated[
        str, typer.Option(metavar="error|keep-last", help="When a rater labelled an item twice and differently.")
    ] = "error",
    kind: Annotated[
        Optional[str], typer.Option("--from", metavar="NAME", help="What it is; found by looking at it.")
    ] = None,
    option: Annotated[Optional[list[str]], typer.Option(help="An option of the source, as name=value.")] = None,
) -> None:
    """List every problem of every file in one go. Exit code 2 if any is fatal."""
    from annotruth.io import check as find_problems

    with progress_bar() as tell:
        problems = find_problems(
            cases, lambda done, total: tell("Reading", done, total), images=images, features=features,
            duplicates=duplicates, source=kind, **dict(option_value(text) for text in option or []),
        )  # fmt: skip
    fatal = sum(problem.severity == "fatal" for problem in problems)
    if as_json:
        typer.echo(json.dumps([_as_dict(problem) for problem in problems], ensure_ascii=False, indent=2))
    elif not problems:
        screen.print(f"[green]No problem found in {escape(cases)}.[/]")
    else:
        print_problems(problems, every)
        screen.print(f"{fatal} fatal, {len(problems) - fatal} to look at.")
    if fatal:
        raise typer.Exit(2)


def print_problems(problems: list[Problem], every: bool = False, listed_by: str = "--all lists them") -> None:
    """Print problems, those that are alike as one unless every single one is wanted; ``listed_by`` lists the others."""
    for alike in [[problem] for problem in problems] if every else group_alike(problems):
        _print(alike, listed_by)


def group_alike(problems: list[Problem]) -> list[list[Problem]]:
    """Put problems together that differ only in whose they are: in names of files, cases and raters, and in numbers.

    Examples
    --------
    >>> from annotruth.io import Problem
    >>> sizes = [Problem("fatal", Path(f"{case}.png"), case, "ann", f"{case}.png has size 8×{n}.") for case, n in
    ...          (("case_1", 5), ("case_2", 7))]
    >>> [len(group) for group in group_alike([*sizes, Problem("warning", Path("a.png"), "a", None, "empty.")])]
    [2, 1]
    """
    groups: dict[object, list[Problem]] = {}
    for problem in problems:
        groups.setdefault((problem.severity, _without_names(problem)), []).append(problem)
    return list(groups.values())


def _without_names(problem: Problem) -> str:
    """A problem's message without what is its file's, its case's or its rater's own, and without numbers."""
    names = [str(problem.file), problem.file.name, problem.case, problem.rater]
    text = problem.message
    for name in names:
        if name is not None and len(name) > 1:  # a case called "a" would take the word "a" with it
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "…", text)
    text = re.sub(r"\S*[/\\]\S*", "…", text)  # other files, such as the mask that this one was compared with
    return re.sub(r"[0-9]+", "0", text)


def _print(alike: list[Problem], listed_by: str) -> None:
    """Print a problem; of many that are alike the message once, how often it holds, and the first files."""
    from annotruth.io.problems import place

    first, count = alike[0], len(alike)
    colour = "red" if first.severity == "fatal" else "yellow"
    if count == 1:
        _say(f"[{colour}]{first.severity}[/] {escape(first)}")
        return
    differ = " (Names and numbers differ.)" if len({problem.message for problem in alike}) > 1 else ""
    text = f"{first.message} {first.advice}".rstrip()
    _say(f"[{colour}]{first.severity}[/] {count} times: {escape(text)}{differ}")
    for problem in alike[:MAX_SHOWN]:
        _say(f"  {escape(place(problem.file, problem.case, problem.rater))}")
    if count > MAX_SHOWN:
        _say(f"  … and {count - MAX_SHOWN} more ({listed_by}).")


def _say(line: str) -> None:
    screen.print(line, highlight=False, soft_wrap=True)


def _as_dict(problem: Problem) -> dict[str, str | None]:
    return {
        "severity": problem.severity, "file": str(problem.file), "case": problem.case, "rater": problem.rater,
        "message": problem.message, "advice": problem.advice,
    }  # fmt: skip
