"""Being asked to end: by Ctrl-C, by a cluster (SIGTERM), by a terminal that was closed (SIGHUP).

Inside :func:`ending_on_signals` such a request is the exception :class:`Stopped`, so that files half-written are
removed and locks released; the program ends with the exit code that clusters and shells expect, 128 and the signal's
number. A job that is better ended between two steps notes requests with :func:`noting_signals`, and heeds them there.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")  # there is no SIGHUP on Windows
SIGNALS = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))


class Stopped(KeyboardInterrupt):
    """Somebody asked the program to end.

    Attributes
    ----------
    signum : which signal it was
    hint : how to go on later, for the user; empty where there is nothing to go on with

    Examples
    --------
    >>> Stopped(signal.SIGTERM).exit_code
    143
    """

    def __init__(self, signum: int = signal.SIGINT, hint: str = "") -> None:
        super().__init__(f"Stopped by {signal.Signals(signum).name}.")
        self.signum, self.hint = signum, hint

    @property
    def exit_code(self) -> int:
        return 128 + self.signum


class Request:
    """Whether the program was asked to end, and by which signal; a second request does not wait."""

    def __init__(self) -> None:
        self.signum: int | None = None

    def note(self, signum: int, frame: FrameType | None = None) -> None:
        if self.signum is not None:
            raise Stopped(signum)
        self.signum = signum

    def heed(self) -> None:
        """Raise :class:`Stopped` if there was a request; to be called where it is good to end."""
        if self.signum is not None:
            raise Stopped(self.signum)


def _stop(signum: int, frame: FrameType | None) -> None:
    raise Stopped(signum)


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """Turn requests to end into :class:`Stopped`, raised wherever the main thread is.

    Signals that somebody ignores (as ``nohup`` does with SIGHUP) or handles in their own way are left alone.
    """
    with _handled_by(_stop):
        yield


@contextmanager
def noting_signals() -> Iterator[Request]:
    """Only note a request to end; the body calls ``heed`` where it is good to end.

    Examples
    --------
    >>> with noting_signals() as request:
    ...     signal.raise_signal(signal.SIGTERM)  # nothing happens yet
    ...     try:
    ...         request.heed()
    ...     except Stopped as stopped:
    ...         print(stopped)
    Stopped by SIGTERM.
    """
    request = Request()
    with _handled_by(request.note):
        yield request


@contextmanager
def hint_if_stopped(hint: Callable[[], str]) -> Iterator[None]:
    """Let a request to end that comes in the body carry a hint how to go on.

    Examples
    --------
    >>> try:
    ...     with hint_if_stopped(lambda: "Go on with --resume."):
    ...         raise Stopped()
    ... except Stopped as stopped:
    ...     stopped.hint
    'Go on with --resume.'
    """
    try:
        yield
    except Stopped as stopped:
        stopped.hint = stopped.hint or hint()
        raise


@contextmanager
def _handled_by(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # Python gives signals to the main one only
        yield
        return
    before = {signum: signal.getsignal(signum) for signum in SIGNALS}
    ours = [signum for signum, current in before.items() if _may_replace(current)]
    for signum in ours:
        signal.signal(signum, handler)
    try:
        yield
    finally:
        for signum in ours:
            signal.signal(signum, before[signum])


def _may_replace(handler: object) -> bool:
    """Whether a handler is the system's, Python's or one of ours, and not some other program's own."""
    owner = getattr(handler, "__self__", None)
    return handler in (signal.SIG_DFL, signal.default_int_handler, _stop) or isinstance(owner, Request)
