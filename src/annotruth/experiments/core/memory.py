"""How much memory a piece of work takes at most, where the system tells."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def peak_memory() -> Iterator[Callable[[], float | None]]:
    """Give a function that tells, inside the block, by how many megabytes the process has grown at most.

    It gives None on systems other than Linux, whose kernel keeps and resets a high-water mark.

    Examples
    --------
    >>> import numpy as np
    >>> with peak_memory() as grown:
    ...     values = np.ones(2**24)
    ...     size = grown()
    >>> size is None or 100 < size < 200
    True
    """
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # what earlier work has freed would hide what this one needs
    try:
        Path("/proc/self/clear_refs").write_text("5")  # sets the high-water mark back to what is resident now
        before = _resident("VmRSS")
    except OSError:
        yield lambda: None
    else:
        yield lambda: _resident("VmHWM") - before


def _resident(entry: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(entry))
