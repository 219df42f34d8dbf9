"""The log of decisions: one line of JSON each, only ever added to, on the disk before anybody is told that it is.

It holds all there is to know, masks too: the files beside it can be made anew from it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

from annotruth.errors import AnnotruthError, InputError

ACTIONS = {
    "accept": "a label as it was proposed is the truth from now on",
    "edit": "a label that the curator drew or chose is the truth from now on",
    "ambiguous": "nobody can tell: there is no truth, and nobody needs to be asked again",
    "send": "a rater is asked to label the case",
    "reopen": "an earlier decision no longer holds",
    "label": "a rater labelled the case",
}
"""What a line can tell of."""


@dataclass(frozen=True)
class Entry:
    """One line of the log.

    Attributes
    ----------
    number : 1, 2, … in the order of the log
    time : when, in UTC, ISO 8601
    who, role : the curator's or rater's name, and "curator" or "rater"
    case : the item's name
    action : one of ``ACTIONS``
    source : what was accepted or edited: "fused", "rater ann", "method majority", "drawing" …
    why : the curator's words
    rater : who is asked, or who labelled
    label : the class's name, in a label table
    mask, shape : the mask, as ``annotruth.desk.coding.to_text`` writes it, and its size
    """

    number: int
    time: str
    who: str
    role: str
    case: str
    action: str
    source: str = ""
    why: str = ""
    rater: str = ""
    label: str | None = None
    mask: str | None = None
    shape: tuple[int, ...] | None = None

    def line(self) -> bytes:
        """The line, without what it does not tell."""
        told = {name: value for name, value in asdict(self).items() if value not in ("", None)}
        return json.dumps(told, ensure_ascii=False).encode() + b"\n"


class Journal:
    """A log that is open for writing.

    Parameters
    ----------
    path : of the file; made when there is something to write

    Attributes
    ----------
    torn : what a process that was killed while it wrote left of a last line; put aside beside the log

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     journal = Journal(Path(folder) / "decisions.jsonl")
    ...     _ = journal.append(who="ann", role="curator", case="scan 3", action="ambiguous", why="too dark")
    ...     [(entry.number, entry.case, entry.why) for entry in Journal(journal.path).entries]
    [(1, 'scan 3', 'too dark')]
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries, self.torn, end = read_journal(path)
        self._end, self._is_torn = end, False
        if self.torn:
            aside = path.with_suffix(".torn")
            with aside.open("ab") as file:
                file.write(self.torn + b"\n")
            os.truncate(path, end)

    def append(self, *, who: str, role: str, case: str, action: str, **told: object) -> Entry:
        """Add a line; when this returns it is on the disk. If that fails, the log is as it was before."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        number = self.entries[-1].number + 1 if self.entries else 1
        entry = Entry(number, now, who, role, case, action, **told)  # type: ignore[arg-type]
        line = entry.line()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            try:
                if self._is_torn:
                    os.ftruncate(file, self._end)
                self._is_torn = True
                _write_all(file, line)
                os.fsync(file)
                if not self._end:
                    sync_folder(self.path.parent)
                self._is_torn = False
            except BaseException:
                with suppress(OSError):  # then it is cut off before the next line
                    os.ftruncate(file, self._end)
                raise
            finally:
                os.close(file)
        except OSError as error:
            raise AnnotruthError(
                f"{self.path}: the decision could not be written: {error.strerror or error}. Nothing was changed."
            ) from error
        self._end += len(line)
        self.entries.append(entry)
        return entry


def read_journal(path: Path) -> tuple[list[Entry], bytes, int]:
    """Read a log.

    Returns
    -------
    entries : in order
    torn : what was written of a last line when its writer was killed, mostly nothing
    end : the length of the log without it
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return [], b"", 0
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}.") from error
    whole, newline, torn = content.rpartition(b"\n")
    end = len(whole) + len(newline)
    return list(_parse(path, whole)), torn, end


def _parse(path: Path, content: bytes) -> Iterator[Entry]:
    known = {field.name for field in fields(Entry)}
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            told = json.loads(line)
            told = {name: value for name, value in told.items() if name in known}
            entry = Entry(**told | ({"shape": tuple(told["shape"])} if "shape" in told else {}))
            if entry.action not in ACTIONS:
                raise ValueError(entry.action)
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise InputError(
                f"{path}, line {number}: this is no decision that the desk wrote. Put the line right, or remove it; "
                "all others can be read."
            ) from None
        yield entry


def sync_folder(folder: Path) -> None:
    """Let names of files in a folder reach the disk, where the system knows how."""
    if os.name == "posix":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _write_all(file: int, content: bytes) -> None:
    """Write every byte: a disk that is nearly full takes only some at first."""
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]
