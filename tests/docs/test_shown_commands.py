"""Commands shown in the documentation exist, and the reference tells of every option there is."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from annotruth.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
REFERENCE = (ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")

command_line = typer.main.get_command(app)
shown = [
    pytest.param(line, id=f"{page.relative_to(ROOT)}: {line}")
    for page in PAGES
    for line in re.findall(r"^\$ (annotruth .*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
]


@pytest.mark.parametrize("line", shown)
def test_shown_command_is_understood(line: str) -> None:
    """Its arguments are parsed, but nothing is run."""
    verb, *arguments = shlex.split(line, comments=True)[1:]
    assert command_line.commands[verb].make_context(verb, arguments).params


@pytest.mark.parametrize("verb", command_line.commands)
def test_reference_tells_of_every_option(verb: str) -> None:
    parameters = command_line.commands[verb].params
    options = {name for one in parameters for name in one.opts if name.startswith("-")} - {"--help", "-h"}
    assert f"\n## {verb}\n" in REFERENCE
    section = re.split(r"^## ", REFERENCE.split(f"\n## {verb}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]
    table = " ".join(row.split("|")[1] for row in section.splitlines() if row.startswith("|"))
    assert set(re.findall(r"`(--?[a-z-]+)`", table)) == options


def test_makefile_has_the_shown_targets() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    called = {name for page in PAGES for name in re.findall(r"(?:^\$ |`)make (\w+)", page.read_text(), re.MULTILINE)}
    assert called <= targets
    assert {"demo", "test"} <= called
