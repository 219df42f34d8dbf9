"""Commands shown in the documentation exist, and the reference tells of every option there is."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from annotruth.cli import app
from annotruth.experiments import EXPERIMENTS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
REFERENCE = (ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")

command_line = typer.main.get_command(app)
shown = [
    pytest.param(line, id=f"{page.relative_to(ROOT)}: {line}")
    for page in PAGES
    for line in re.findall(r"^\$ (annotruth .*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
]


def rows_of(verb: str) -> dict[tuple[str, ...], list[str]]:
    """The table of a verb's options: the names of each, and the other cells of its row."""
    assert f"\n## {verb}\n" in REFERENCE
    section = re.split(r"^## ", REFERENCE.split(f"\n## {verb}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in section.splitlines() if row.startswith("|")]
    return {names: cells for first, *cells in rows if (names := tuple(re.findall(r"`(--?[a-z-]+)`", first)))}


@pytest.mark.parametrize("line", shown)
def test_shown_command_is_understood(line: str) -> None:
    """Its arguments are parsed, but nothing is run."""
    verb, *arguments = shlex.split(line, comments=True)[1:]
    assert command_line.commands[verb].make_context(verb, arguments).params


@pytest.mark.parametrize("verb", command_line.commands)
def test_reference_tells_of_every_option(verb: str) -> None:
    parameters = command_line.commands[verb].params
    names = {name for one in parameters for name in (*one.opts, *one.secondary_opts)}
    options = {name for name in names if name.startswith("-")} - {"--help", "-h"}
    assert {name for names in rows_of(verb) for name in names} == options


@pytest.mark.parametrize("verb", command_line.commands)
def test_reference_tells_the_defaults(verb: str) -> None:
    """A switch has none; where the program finds out by itself, words may stand there."""
    told = {name: cells[0] for names, cells in rows_of(verb).items() for name in names}
    for option in command_line.commands[verb].params:
        if option.param_type_name != "option" or option.name == "help":
            continue
        default = told[option.opts[0]].strip("`")
        if option.required:
            assert default == "required"
        elif option.default is not None and option.default is not False:
            assert default == str(option.default), option.opts


def test_reference_tells_of_every_experiment() -> None:
    table = REFERENCE.split("\n| experiment |")[1].split("\n\n")[0]
    named = re.findall(r"`([a-z0-9-]+)`", " ".join(row.split("|")[1] for row in table.splitlines()[2:]))
    assert sorted(named) == sorted(EXPERIMENTS)


def test_makefile_has_the_shown_targets() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    called = {name for page in PAGES for name in re.findall(r"(?:^\$ |`)make (\w+)", page.read_text(), re.MULTILINE)}
    assert called <= targets
    assert {"demo", "test"} <= called
