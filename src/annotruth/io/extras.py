"""Libraries that not everybody needs: imported when they are, with a word on what to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from annotruth.errors import InputError


def need(module: str, extra: str) -> Any:
    """Import a module of an extra.

    Examples
    --------
    >>> need("no_such_module", "dicom")
    Traceback (most recent call last):
    annotruth.errors.InputError: This needs no_such_module, which is not installed: pip install "annotruth[dicom]".
    """
    try:
        return import_module(module)
    except ImportError:
        raise InputError(f'This needs {module}, which is not installed: pip install "annotruth[{extra}]".') from None
