"""Outputs that are there whole or not at all, and output folders that hold nobody else's files."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from annotruth.errors import AnnotruthError, InputError, shorten


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; what is written there takes ``path``'s place when all went well.

    The temporary name is hidden and keeps the suffix (``.nii.gz`` too), because writers choose the format by it.
    If the body fails, ``path`` stays as it was and nothing is left behind. Missing folders are made.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic(Path(folder) / "notes.txt") as temporary:
    ...         _ = temporary.write_text("done")
    ...     [file.name for file in Path(folder).iterdir()]
    ['notes.txt']
    """
    path = Path(path)
    suffix = "".join(path.suffixes[-2:]) if path.suffix.lower() == ".gz" else path.suffix
    temporary = path.with_name(f".annotruth-{uuid.uuid4().hex}{suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise AnnotruthError(f"{path}: could not be written: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):  # gone already after a good end; after a bad one the first error is the one to show
            temporary.unlink()


def fresh_folder(path: str | Path, overwrite: bool = False) -> Path:
    """Make an output folder, refusing one that already holds files unless ``overwrite``.

    Overwriting replaces files of the same name; it deletes nothing. Hidden files (``.DS_Store``) do not count.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fresh_folder(Path(folder) / "out").name
    'out'
    """
    path = Path(path)
    refuse_used_folder(path, overwrite)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: the folder cannot be made: {error.strerror or error}.") from error
    return path


def refuse_used_folder(path: Path, overwrite: bool = False) -> None:
    """Refuse what :func:`fresh_folder` would, without making anything yet.

    Examples
    --------
    >>> refuse_used_folder(Path("no such folder"))
    """
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file, not a folder; choose another output folder.")
    if path.is_dir() and not overwrite:
        held = sorted(entry.name for entry in path.iterdir() if not entry.name.startswith("."))
        if held:
            raise InputError(
                f"{path} already holds files ({shorten(held, 3)}); choose another folder or pass --overwrite."
            )
