"""ZIP archives, as labelling tools export them: unpacked into a folder of their own, where nothing can get out.

The folder lasts as long as the process, so that masks and images can be read when they are needed.
"""

from __future__ import annotations

import lzma
import stat
import struct
import tempfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from annotruth.errors import InputError

MAX_BYTES = 64 * 2**30
"""Of all files in an archive."""
MAX_RATIO = 1000
"""By how much a file of more than a megabyte may have been compressed; text of masks comes near a hundred."""
MAX_FILES = 10**6
DAMAGED = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, NotImplementedError,
    RuntimeError, ValueError,
)  # fmt: skip
"""What a damaged archive may raise, beside InputError, which is a ValueError too."""

_unpacked: dict[tuple[tuple[Path, int, int], ...], tempfile.TemporaryDirectory[str]] = {}


def open_archive(path: str | Path) -> Path:
    """Give the folder of an archive's files, unpacked once; any other path as it is.

    Of a folder that holds archives and nothing else, as jobs are downloaded one by one, it gives a folder with a folder
    for each.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with zipfile.ZipFile(Path(folder) / "job.zip", "w") as archive:
    ...         archive.writestr("annotations.xml", "<annotations/>")
    ...     [file.name for file in open_archive(Path(folder) / "job.zip").iterdir()]
    ['annotations.xml']
    """
    path = Path(path)
    archives = [path] if _is_archive(path) else _archives_in(path)
    if not archives:
        return path
    about = [(archive, archive.stat()) for archive in archives]
    key = tuple((archive.resolve(), known.st_mtime_ns, known.st_size) for archive, known in about)
    name = path.stem if path.is_file() else path.resolve().name
    if key not in _unpacked:
        folder: tempfile.TemporaryDirectory[str] = tempfile.TemporaryDirectory(prefix="annotruth-")
        home = Path(folder.name) / name
        if path.is_dir():
            home.mkdir()
        for archive in archives:
            _unpack(archive, home / archive.stem if path.is_dir() else home)
        _unpacked[key] = folder
    return Path(_unpacked[key].name) / name


def _is_archive(path: Path) -> bool:
    return path.suffix.lower() == ".zip" and path.is_file()


def _archives_in(folder: Path) -> list[Path]:
    """The archives in a folder that holds nothing else; those of one name but for capitals are somebody's mistake."""
    try:
        entries = sorted(each for each in folder.iterdir() if not each.name.startswith("."))
    except OSError:  # a file, or nothing at all
        return []
    alike = len({each.stem for each in entries}) < len(entries)
    return entries if entries and not alike and all(_is_archive(each) for each in entries) else []


def _unpack(path: Path, folder: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            _refuse_hostile(path, members)
            folder.mkdir()
            for member in members:
                archive.extract(member, folder)
    except InputError:
        raise
    except DAMAGED as error:
        raise InputError(f"{path}: cannot be unpacked ({error}). Download or export it anew.") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be unpacked ({error.strerror or error}).") from error


def _refuse_hostile(path: Path, members: list[zipfile.ZipInfo]) -> None:
    """Refuse what would be written elsewhere, or would fill the disk."""
    if len(members) > MAX_FILES or sum(member.file_size for member in members) > MAX_BYTES:
        raise InputError(
            f"{path}: the archive holds more than {MAX_BYTES >> 30} GB or {MAX_FILES} files. Unpack it yourself."
        )
    for member in members:
        name = PurePosixPath(member.filename.replace("\\", "/"))
        is_link = stat.S_ISLNK(member.external_attr >> 16)
        if name.is_absolute() or ".." in name.parts or ":" in name.parts[0] or is_link:
            raise InputError(f"{path}: the archive's {member.filename} would lie outside its folder. Do not trust it.")
        if member.file_size > max(MAX_RATIO * member.compress_size, 2**20):
            raise InputError(f"{path}: the archive's {member.filename} is a bomb of {member.file_size} bytes.")
