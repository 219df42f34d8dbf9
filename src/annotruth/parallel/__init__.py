"""The same work on many things at once: in threads, in other processes, on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

MapFunction = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""Calls a function on each of many things, giving the answers in order: ``map``, or workers."""
