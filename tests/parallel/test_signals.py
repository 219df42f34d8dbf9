"""Requests to end: an exception with an exit code, or noted until it is good to end."""

from __future__ import annotations

import signal
import threading

import pytest

from annotruth.parallel.signals import Stopped, ending_on_signals, hint_if_stopped, noting_signals


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
def test_a_signal_is_an_exception_with_the_exit_code_that_shells_expect(name: str, code: int) -> None:
    with pytest.raises(Stopped, match=f"Stopped by {name}") as stopped, ending_on_signals():
        signal.raise_signal(getattr(signal, name))
    assert stopped.value.exit_code == code
    assert isinstance(stopped.value, KeyboardInterrupt)


def test_handlers_are_put_back() -> None:
    before = [signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    with ending_on_signals(), noting_signals():
        pass
    assert [signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


def test_a_noted_signal_waits_until_it_is_heeded() -> None:
    with ending_on_signals(), noting_signals() as request:
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Stopped):
            request.heed()


def test_a_second_signal_does_not_wait() -> None:
    with noting_signals():
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Stopped):
            signal.raise_signal(signal.SIGINT)


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with ending_on_signals():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_other_threads_leave_signals_alone() -> None:
    found = []

    def look() -> None:
        with ending_on_signals():
            found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(signal.SIGTERM)]


def test_a_hint_is_made_when_it_is_needed_and_the_inner_one_stays() -> None:
    with pytest.raises(Stopped) as stopped, hint_if_stopped(lambda: "outer"), hint_if_stopped(lambda: "inner"):
        raise Stopped
    assert stopped.value.hint == "inner"
