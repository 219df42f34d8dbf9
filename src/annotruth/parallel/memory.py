"""How much memory this process may still take."""

from __future__ import annotations

import os
from contextlib import suppress


def available_memory() -> int:
    """Bytes of memory that are free, or that a limit of this process leaves; a guess where the system does not tell.

    Examples
    --------
    >>> available_memory() > 0
    True
    """
    free = 2**33
    with suppress(OSError, ValueError, AttributeError):
        free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError, IndexError), open("/proc/meminfo", encoding="ascii") as lines:
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    with suppress(ImportError, OSError, ValueError):
        import resource  # which Windows lacks

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        free = free if limit == resource.RLIM_INFINITY else min(free, limit)
    return free
