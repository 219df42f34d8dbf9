"""Problems of files: found by rules that both ``load`` (stops at the first) and ``check`` (lists all) go through."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from annotruth.errors import InputError


@dataclass(frozen=True)
class Problem:
    """Something wrong with a file or a folder.

    Attributes
    ----------
    severity : "fatal" (``load`` refuses it) or "warning"
    file : the file or folder
    case, rater : whose it is, where it is somebody's
    message : what is wrong
    advice : what to do about it
    incomplete : of a warning, whether what was read is not all that is there, or not as it is there (images without
        labels, raters of one name): an import then ends with exit code 1

    Examples
    --------
    >>> print(Problem("fatal", Path("raters/ann/a.png"), "a", "ann", "the mask is blue.", "Make it grey."))
    raters/ann/a.png (case a, rater ann): the mask is blue. Make it grey.
    """

    severity: Literal["fatal", "warning"]
    file: Path
    case: str | None
    rater: str | None
    message: str
    advice: str = ""
    incomplete: bool = False

    def __str__(self) -> str:
        return f"{place(self.file, self.case, self.rater)}: {self.message} {self.advice}".rstrip()


Report = Callable[[Problem], None]
"""Where rules take what they find: ``refuse``, or a list's ``append``."""
Progress = Callable[[int, int], None]
"""Told how many files are done, of how many."""


class Refused(InputError):
    """A problem that was raised; who reports it further reports the very same."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem

    def __reduce__(self) -> tuple[type[Refused], tuple[Problem]]:
        return Refused, (self.problem,)


def refuse(problem: Problem) -> None:
    """Raise a fatal problem; let warnings pass."""
    if problem.severity == "fatal":
        raise Refused(problem)


def place(file: Path, case: str | None = None, rater: str | None = None) -> str:
    """Name a file with its case and rater, for a message."""
    owners = [f"{what} {name}" for what, name in (("case", case), ("rater", rater)) if name is not None]
    return f"{file} ({', '.join(owners)})" if owners else str(file)


@contextmanager
def reporting(report: Report, file: Path, case: str | None = None, rater: str | None = None) -> Iterator[None]:
    """Report an InputError raised inside as a problem: its first sentence says what is wrong, the rest what to do.

    One that names another file that is there is that file's problem.
    """
    try:
        yield
    except Refused as error:
        report(error.problem)
    except InputError as error:
        text = str(error).removeprefix(f"{place(file, case, rater)}: ")
        named = re.match(r"(.+?)(?: \((?:case ([^()]*?))?(?:, )?(?:rater ([^()]*))?\))?: ", text)
        if named is not None and text == str(error) and _is_file(named[1]):
            text = text[named.end() :]
            if Path(named[1]) != file:
                file, case, rater = Path(named[1]), named[2], named[3]
        message, stop, advice = text.partition(". ")
        report(Problem("fatal", file, case, rater, message + stop.strip(), advice))


def _is_file(name: str) -> bool:
    try:
        return ("/" in name or "\\" in name) and Path(name).is_file()
    except (OSError, ValueError):
        return False


def only_rater(path: Path, rater: str) -> Problem:
    """Make the warning for labels of one rater alone."""
    message = f"{rater} is the only rater: nothing can tell errors from the truth."
    return Problem("warning", path, None, rater, message, "Add a second rater's labels of at least some cases.")
