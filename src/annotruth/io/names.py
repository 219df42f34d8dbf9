"""Names of cases, raters and classes: which can be written, and how spreadsheets are kept from running them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from annotruth.errors import InputError, shorten

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def refuse_unwritable(name: str, what: str) -> str:
    """Refuse a name that is not text: a file name in another encoding than UTF-8, or half of a character in JSON.

    Examples
    --------
    >>> refuse_unwritable("Fall 3, rechts", "case")
    'Fall 3, rechts'
    >>> refuse_unwritable("caf\\udce9", "case")
    Traceback (most recent call last):
    annotruth.errors.InputError: the case 'caf\\udce9' is not written in UTF-8. Rename it.
    """
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"the {what} {name!r} is not written in UTF-8. Rename it.") from None
    return name


def file_name(name: str, what: str) -> str:
    """Refuse a name that cannot be a file's on every system, or that would lie in another folder.

    Examples
    --------
    >>> file_name("Fall 3, rechts", "item")
    'Fall 3, rechts'
    """
    refuse_unwritable(name, what)
    if not name or name.startswith(".") or name.endswith((" ", ".")) or re.search(r'[\\/:*?"<>|\x00-\x1f]', name):
        raise InputError(
            f'The {what} {name!r} cannot give a file its name; rename it without \\ / : * ? " < > | and dots.'
        )
    return name


def to_cell(name: str) -> str:
    """A name as a cell of a CSV file: one that a spreadsheet would take for a formula gets an apostrophe in front.

    Plain numbers stay as they are; :func:`from_cell` takes the apostrophe away again.

    Examples
    --------
    >>> to_cell("=1+1"), to_cell("-1"), to_cell("'=1"), to_cell("cat")
    ("'=1+1", '-1', "''=1", 'cat')
    """
    return f"'{name}" if _FORMULA.match(name) and not _NUMBER.fullmatch(name) else name


def from_cell(cell: str) -> str:
    """The name that a cell of a CSV file holds.

    Examples
    --------
    >>> from_cell("'=1+1"), from_cell("'tis")
    ('=1+1', "'tis")
    """
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def told_apart(raters: Iterable[str], classes: Iterable[str]) -> Iterator[str]:
    """Say which names differ by capitals and spaces only: one that was typed in two ways, mostly.

    Examples
    --------
    >>> list(told_apart(["ann", "bob"], ["cat", "dog", "Cat "]))
    ["the classes 'cat' and 'Cat ' differ by capitals and spaces only, and are told apart."]
    """
    for what, names in (("raters", raters), ("classes", classes)):
        groups: dict[str, list[str]] = {}
        for name in names:
            groups.setdefault(" ".join(name.casefold().split()), []).append(repr(name))
        alike = [" and ".join(group) for group in groups.values() if len(group) > 1]
        if alike:
            yield f"the {what} {shorten(alike)} differ by capitals and spaces only, and are told apart."
