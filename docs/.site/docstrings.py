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
        joined = "\n\n".join(lines)
        yield f"```pycon\n{joined}\n```" if is_example else _plain(joined)


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
