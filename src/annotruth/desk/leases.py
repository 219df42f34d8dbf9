"""Who has which case open: a case is one curator's at a time, as long as their page says that it is there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

SECONDS = 30.0
"""A case is free again when its holder was not heard of for so long."""


@dataclass(frozen=True)
class Lease:
    """A case that somebody has open; ``session`` tells apart pages, also of the same person."""

    session: str
    who: str
    until: float


class Leases:
    """Cases that are open, by number.

    Examples
    --------
    >>> leases = Leases()
    >>> leases.take(3, "page 1", "ann"), leases.take(3, "page 2", "bob")
    (None, 'ann')
    >>> leases.give_back(3, "page 1")
    >>> leases.take(3, "page 2", "bob") is None
    True
    """

    def __init__(self, seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._held: dict[int, Lease] = {}
        self._lock = threading.Lock()

    def take(self, case: int, session: str, who: str) -> str | None:
        """Take a case, or keep it for longer; give the name of whoever else holds it, else None."""
        with self._lock:
            now = self._clock()
            held = self._held.get(case)
            if held is not None and held.session != session and held.until > now:
                return held.who
            for other in [each for each, lease in self._held.items() if lease.session == session and each != case]:
                del self._held[other]  # a page shows one case
            self._held[case] = Lease(session, who, now + self._seconds)
            return None

    def give_back(self, case: int, session: str) -> None:
        """Let a case go, if it is this page's."""
        with self._lock:
            held = self._held.get(case)
            if held is not None and held.session == session:
                del self._held[case]

    def holders(self, session: str = "") -> dict[int, str]:
        """Who holds which case, other than this page."""
        with self._lock:
            now = self._clock()
            return {
                case: lease.who for case, lease in self._held.items() if lease.until > now and lease.session != session
            }
