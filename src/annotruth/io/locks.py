"""One writer at a time: a folder of results is locked while a job writes into it.

The lock is a hidden file that names its owner and that the operating system holds for it: when the owner ends, even
killed, the lock is free, and the file that is left behind stands in nobody's way.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from annotruth.errors import InputError

if sys.platform == "win32":
    import msvcrt

    def _hold(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _hold(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


LOCK_FILE = ".annotruth.lock"
_HELD = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)


@contextmanager
def only_writer(folder: str | Path, name: str = LOCK_FILE) -> Iterator[Path]:
    """Hold a folder's lock in the body, or refuse at once where another job holds it.

    The folder is made if there is none; one that was made and is still empty at the end is removed again, so that a job
    that fails early leaves nothing.

    Parameters
    ----------
    name : of the lock file, where several jobs may share a folder as long as they write different things

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, only_writer(folder):
    ...     with only_writer(folder):
    ...         pass
    Traceback (most recent call last):
    annotruth.errors.InputError: ...: another job (process ...) is writing there. Wait for it, or choose another folder.
    """
    folder = Path(folder)
    made = _make(folder)
    path = folder / name
    try:
        file = _lock(path)
        try:
            yield folder
        finally:
            with suppress(OSError):  # the disk may be gone; who finds the file finds it unlocked
                path.unlink()
            os.close(file)
    finally:
        for parent in made:
            with suppress(OSError):  # it holds something by now
                parent.rmdir()


def _make(folder: Path) -> list[Path]:
    """Make a folder; give those that were not there before, the innermost first."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, not a folder; choose another output folder.")
    lacking = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: the folder cannot be made: {error.strerror or error}.") from error
    return lacking


def _lock(path: Path) -> int:
    """Open and lock a lock file, and write into it whose it is."""
    while True:
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        except OSError as error:
            raise InputError(f"{path.parent}: cannot be written into: {error.strerror or error}.") from error
        try:
            _hold(file)
        except OSError as error:
            if error.errno in _HELD:
                owner = _owner(file)
                os.close(file)
                raise InputError(
                    f"{path.parent}: another job ({owner}) is writing there. Wait for it, or choose another folder."
                ) from None
            # A file system that knows no locks: two jobs there are the user's to keep apart.
        if _is_still(file, path):
            with suppress(OSError):
                os.ftruncate(file, 0)
                os.write(file, json.dumps({"process": os.getpid(), "machine": socket.gethostname()}).encode())
            return file
        os.close(file)  # its owner removed it in between: begin anew


def _is_still(file: int, path: Path) -> bool:
    """Whether the file that was opened is the one that others will find."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except OSError:
        return False


def _owner(file: int) -> str:
    with suppress(OSError, ValueError, KeyError, TypeError):
        os.lseek(file, 0, os.SEEK_SET)
        owner = json.loads(os.read(file, 4096))
        there = "" if owner["machine"] == socket.gethostname() else f" on {owner['machine']}"
        return f"process {owner['process']}{there}"
    return "of an unknown process"
