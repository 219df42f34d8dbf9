"""Docstrings as Markdown, for the API reference.

The package's docstrings follow numpydoc's sections, but say in words what a parameter is where numpydoc has its type:
the signature shows the types already. So they are turned into Markdown here instead of being parsed as numpydoc.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import griffe

LISTED = ("Parameters", "Attributes", "Options", "Returns")
_HEADING = re.compile(r"(?m)^([A-Z]\w+)\n-{3,}\n")
_ENTRY = re.compile(r"^([*\w]+(?:, [*\w]+)*) : (.*)$")
_TWO_ENTRIES = re.compile(r";  (\w+) : ")
_RULE = re.compile(r"={3,}  +={3,}")
_ROLE = re.compile(r":(?:func|class|meth|mod|attr):`(~?)([\w.]+)`")


def to_markdown(docstring: str) -> str:
    """Turn a whole docstring into Markdown."""
    first, *rest = _HEADING.split(docstring)
    parts = [_text(first)]
    for title, body in zip(rest[::2], rest[1::2]):
        parts += [f"**{title}**", _entries(body) if title in LISTED else _text(body)]
    return "\n\n".join(part.strip("\n") for part in parts)


def _entries(body: str) -> str:
    """Make a list of ``name : words``; whatever else stands there stays a paragraph."""
    lines = _TWO_ENTRIES.sub(r"\n\1 : ", body).split("\n")
    return _text("\n".join(_ENTRY.sub(r"- **\1**: \2", line) for line in lines))


def _text(body: str) -> str:
    return "\n\n".join(_paragraphs(body))


def _paragraphs(body: str) -> Iterator[str]:
    """Give paragraphs, examples fenced; what is shown as code keeps its characters."""
    for is_example, lines in groupby(re.split(r"\n{2,}", body.strip("\n")), lambda text: text.startswith(">>>")):
        if is_example:
            yield "```pycon\n" + "\n\n".join(lines) + "\n```"
        else:
            yield "\n\n".join(_table(text) if _RULE.match(text) else _plain(text) for text in lines)


def _table(text: str) -> str:
    """Turn lines between two rules of ``====`` into a table; its columns stand two spaces or more apart."""
    rule, *lines = text.split("\n")
    columns = len(rule.split())
    rows = [re.split(r" {2,}", _plain(line), maxsplit=columns - 1) for line in lines if not _RULE.match(line)]
    head = ["|" + " |" * columns, "|" + " --- |" * columns]
    return "\n".join(head + [f"| {' | '.join(row)} |" for row in rows])


def _plain(text: str) -> str:
    text = re.sub(r"::(?=\n\n)", ":", text)
    text = _ROLE.sub(lambda role: f"`{role[2].rpartition('.')[2] if role[1] else role[2]}`", text)
    by_code = re.split(r"(``.*?``|`.*?`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"(?<!\*)\*(?=\w)", r"\\*", part) for part in by_code)


class MarkdownDocstrings(griffe.Extension):
    """Rewrites every docstring that griffe finds."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value)
