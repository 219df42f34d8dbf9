"""What an attack is: a bad input that is laid out in a folder, and the command that meets it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

CANARY = "executed"
"""A file that only code hidden in an input would make, in the folder in which the command runs."""


@dataclass(frozen=True)
class Attack:
    """A bad input.

    Attributes
    ----------
    kind : what is attacked: "masks", "dataset.json", "label tables" …
    name : what is wrong
    lay_out : makes the input in an empty folder, given the folder of sound things; everything in it must stay as it is
    command : of the command line; or ``load PATH``, ``load_model PATH`` of the Python interface
    harmless : whether it may turn out to be none, as a changed number that means nothing
    """

    kind: str
    name: str
    lay_out: Callable[[Path, Path], None]
    command: tuple[str, ...]
    harmless: bool = False


Attacks = Iterator[Attack]


def verbs(path: str, *names: str) -> list[tuple[str, ...]]:
    """Commands of some verbs on a path; those that write do so into ``out``."""
    quick = ("--epochs", "1", "--quiet", "--accelerator", "cpu")
    known = {
        "check": ("check", path),
        "load": ("load", path),
        "fuse": ("fuse", path, "-o", "out"),
        "train": ("train", path, "-o", "out", *quick),
    }
    return [known[name] for name in names]


class Pickled:
    """What makes the canary when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (CANARY, "w")
