"""Archives from the net: fetched whole or gone on with, compared with their checksum, and unpacked nowhere but below.

``published`` says which data sets there are and where. Pooch does most of this, but begins a download that broke off
anew, which for archives of many gigabytes matters more than the lines it would save.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
import time
import urllib.error
import urllib.request
import uuid
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path, PurePosixPath

from annotruth.errors import AnnotruthError, InputError
from annotruth.io.writing import atomic

CHUNK = 1 << 20
TRIES = 3
TIMEOUT = 60
RECORD_FILE = "fetched.json"
Tell = Callable[[str, int, int], None]
"""Told what is being fetched, and how many bytes of how many are there."""


@dataclass(frozen=True)
class Archive:
    """A .zip or .tar file somewhere in the net.

    Attributes
    ----------
    url : http or https
    checksum : "sha256:…" or "md5:…"; None where its makers and users tell none
    folder : where it is unpacked to, below the data set's folder
    """

    url: str
    checksum: str | None = None
    folder: str = ""

    @property
    def name(self) -> str:
        """The file's name, for messages and on disk.

        Examples
        --------
        >>> Archive("https://example.org/a/labels.tar").name
        'labels.tar'
        """
        return PurePosixPath(self.url.partition("?")[0]).name


def fetch_archive(archive: Archive, folder: Path, tell: Tell | None = None) -> str:
    """Fetch an archive and unpack it; give its SHA-256.

    What was fetched before the net failed is kept, and the next call goes on from there. What an earlier call unpacked
    is not fetched again.
    """
    if not archive.url.startswith(("https://", "http://")):
        raise InputError(f"{archive.url}: only http and https are fetched from.")
    known = _record(folder).get(archive.url)
    if known is not None:
        return known
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f".{archive.name}.part"
    _download(archive, part, tell)
    digest = _verify(archive, part)
    _unpack(archive, part, folder / archive.folder)
    part.unlink()
    with atomic(folder / RECORD_FILE) as temporary:
        temporary.write_text(json.dumps(_record(folder) | {archive.url: digest}, indent=2) + "\n", encoding="utf-8")
    return digest


def _record(folder: Path) -> dict[str, str]:
    """SHA-256 of what was fetched and unpacked, by its address."""
    try:
        content = json.loads((folder / RECORD_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(url): str(digest) for url, digest in content.items()} if isinstance(content, dict) else {}


def _download(archive: Archive, part: Path, tell: Tell | None) -> None:
    for attempt in range(1, TRIES + 1):
        try:
            _go_on(archive, part, tell)
            return
        except urllib.error.HTTPError as error:
            if error.code == 416 and part.exists():  # nothing is left to fetch, or another file is there now
                part.unlink()
                if attempt < TRIES:
                    continue
            raise AnnotruthError(f"{archive.url}: the server answers {error.code} ({error.reason}).") from error
        except (OSError, HTTPException) as error:  # URLError is an OSError
            done = part.stat().st_size if part.exists() else 0
            if attempt == TRIES:
                reason = getattr(error, "reason", None) or error
                raise AnnotruthError(
                    f"{archive.url}: the connection failed ({reason}); {done} bytes are there. Call again to go on."
                ) from error
            time.sleep(0.2 * attempt)


def _go_on(archive: Archive, part: Path, tell: Tell | None) -> None:
    """Fetch what is not there yet; begin anew with a server that gives only whole files."""
    done = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(archive.url, headers={"User-Agent": "annotruth"})
    if done:
        request.add_header("Range", f"bytes={done}-")
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        if answer.status != 206:
            done = 0
        rest = answer.headers.get("Content-Length")
        total = done + int(rest) if rest is not None and rest.isdigit() else 0
        with part.open("ab" if done else "wb") as file:
            while chunk := answer.read(CHUNK):
                file.write(chunk)
                done += len(chunk)
                if tell is not None:
                    tell(archive.name, done, total or done)
    if total and done < total:
        raise OSError(f"{done} of {total} bytes came")


def _verify(archive: Archive, part: Path) -> str:
    """Compare with the checksum, deleting what is not the file that was meant; give the SHA-256."""
    kind, _, wanted = (archive.checksum or "").partition(":")
    digests = {name: hashlib.new(name, usedforsecurity=False) for name in {"sha256", kind or "sha256"}}
    with part.open("rb") as file:
        while chunk := file.read(CHUNK):
            for digest in digests.values():
                digest.update(chunk)
    if wanted and digests[kind].hexdigest() != wanted:
        part.unlink()
        raise AnnotruthError(
            f"{archive.url}: what was fetched is not the file that is known: its {kind} is "
            f"{digests[kind].hexdigest()}, not {wanted}. It was deleted; fetch it again, or by hand if its "
            "owner has changed it."
        )
    return digests["sha256"].hexdigest()


def _unpack(archive: Archive, part: Path, folder: Path) -> None:
    """Unpack into a folder; there whole or not at all, and nothing outside."""
    fresh = part.parent / f".unpacking-{uuid.uuid4().hex[:8]}"
    fresh.mkdir()
    try:
        if archive.name.lower().endswith(".zip") or zipfile.is_zipfile(part):
            with zipfile.ZipFile(part) as opened:
                for member in opened.infolist():
                    _refuse_escape(member.filename, archive)
                opened.extractall(fresh)
        else:
            with tarfile.open(part) as opened:
                opened.extractall(fresh, filter="data")
        folder.mkdir(parents=True, exist_ok=True)
        for entry in fresh.iterdir():
            target = folder / entry.name
            if target.is_dir():
                shutil.rmtree(target)
            elif target.exists():
                target.unlink()
            entry.rename(target)
    except (tarfile.TarError, zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError) as error:
        raise AnnotruthError(f"{archive.url}: the archive cannot be unpacked ({error}). Fetch it again.") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _refuse_escape(name: str, archive: Archive) -> None:
    parts = PurePosixPath(name.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts or ":" in name.partition("/")[0]:
        raise AnnotruthError(f"{archive.url}: the archive holds {name!r}, which would lie outside. It is not unpacked.")
