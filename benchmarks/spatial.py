"""Spatial STAPLE: the window must not matter for time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import annotruth as at
from benchmarks import data
from benchmarks.measure import Row, seconds


def run(size: int, small: int = 5, large: int = 65) -> Iterator[Row]:
    """Compare windows on a picture of size² pixels and five raters."""
    annotations = at.Annotations.from_masks(data.pictures(size)[None])

    def fuse(window: int) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return at.SpatialSTAPLE(window=window, max_iter=10, tol=0).fit(annotations).predict_proba()

    fuse(small)
    pairs = [(seconds(lambda: fuse(small)), seconds(lambda: fuse(large))) for _ in range(5)]
    narrow, wide = (min(times) for times in zip(*pairs))
    details = {f"seconds, window {small}": narrow, f"seconds, window {large}": wide}
    work = f"Spatial STAPLE, {size}² pixels, 5 raters, 10 iterations, window {small} → {large}"
    yield Row(work, "itself", wide / narrow, "× the time", 1.3, at_most=True, details=details)
