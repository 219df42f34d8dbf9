"""Small files of settings, read with care: regular files only, of a sensible size, whatever they hold."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

from annotruth.errors import InputError

MAX_SETTINGS_BYTES = 2**26
"""More than any file of settings needs: a hundred thousand cases' groups take a tenth of it."""


def refuse_irregular(path: Path) -> None:
    """Refuse what is not a plain file: reading a pipe may wait for ever, and a device may have no end.

    Links to plain files pass, and a path at which nothing is.

    Examples
    --------
    >>> refuse_irregular(Path("/dev/null"))
    Traceback (most recent call last):
    annotruth.errors.InputError: this is a device, not a file. Replace it.
    """
    try:
        mode = path.stat().st_mode
    except OSError:  # whoever opens it will say what is wrong
        return
    if not stat.S_ISREG(mode):
        kinds = {"a folder": stat.S_ISDIR, "a pipe": stat.S_ISFIFO, "a socket": stat.S_ISSOCK}
        kind = next((name for name, is_one in kinds.items() if is_one(mode)), "a device")
        raise InputError(f"this is {kind}, not a file. Replace it.")


def read_text(path: Path, max_bytes: int = MAX_SETTINGS_BYTES) -> str:
    """Read a text file in UTF-8; what is wrong with it names the file."""
    try:
        refuse_irregular(path)
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
        if len(content) > max_bytes:
            raise InputError(f"the file has more than {max_bytes // 2**20} MB, too many for what it is. Replace it.")
        return content.decode("utf-8-sig")
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: cannot be read: {error}. Save it as UTF-8 text.") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be opened: {error.strerror or error}.") from error


def read_json(path: Path, max_bytes: int = MAX_SETTINGS_BYTES) -> Any:
    """Read a JSON file; what is wrong with it names the file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.json"
    ...     _ = path.write_text("[" * 100_000)
    ...     read_json(path)
    Traceback (most recent call last):
    annotruth.errors.InputError: .../a.json: the JSON is nested too deeply. Replace the file.
    """
    return parse_json(read_text(path, max_bytes), str(path))


def parse_json(text: str, where: str) -> Any:
    """Turn JSON text into plain values; ``where`` it stood is for the message."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{where}: line {error.lineno}, column {error.colno} is not JSON: {error.msg}.") from None
    except RecursionError:
        raise InputError(f"{where}: the JSON is nested too deeply. Replace the file.") from None
    except ValueError as error:  # a number of thousands of digits
        raise InputError(f"{where}: the JSON holds a number that is too long ({error}). Replace the file.") from None
