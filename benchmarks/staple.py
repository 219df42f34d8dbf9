"""STAPLE beside SimpleITK, and beside the time that moving the data takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import SimpleITK as sitk

import annotruth as at
from benchmarks import data
from benchmarks.measure import Row, in_fresh_process, in_turns, seconds


def run(size: int) -> Iterator[Row]:
    """Compare on volumes of size³ voxels and five raters."""
    yield from _binary(size)
    yield from _many_classes(size)


def _binary(size: int) -> Iterator[Row]:
    masks = data.volumes(size, 2)
    annotations = at.Annotations.from_masks(masks[None])
    peer = sitk.STAPLEImageFilter()
    peer.SetForegroundValue(1)

    def itk() -> Any:
        return peer.Execute([sitk.GetImageFromArray(mask) for mask in masks])

    theirs, fused = sitk.GetArrayFromImage(itk()), at.STAPLE().fit(annotations)
    difference = float(np.abs(fused.predict_proba_item(0)[1] - theirs).max())
    details = {
        "largest difference of probabilities": difference,
        "iterations": fused.n_iter_,
        "peer's iterations": peer.GetElapsedIterations() + 1,
    }
    times = _times(annotations, masks, itk)
    yield Row(f"binary STAPLE, {size}³ voxels, 5 raters, posterior out", "SimpleITK STAPLE",
              times["peer seconds"] / times["seconds, posterior out"], "× faster", 80, same=difference <= 1e-5,
              details=times | details)  # fmt: skip
    yield from _limits(2, size, times)
    images = [sitk.GetImageFromArray(mask) for mask in masks]

    def from_arrays() -> Any:
        return at.STAPLE().fit(at.Annotations.from_masks(masks[None])).predict_proba()

    whole, given = in_turns(from_arrays, lambda: peer.Execute(images), repeats=3)
    copied, checked = in_turns(masks.copy, lambda: at.Annotations.from_masks(masks[None]), repeats=7)
    details = {"seconds": whole, "peer seconds": given}
    yield Row("the same from arrays to posterior, from_masks included", "SimpleITK, its images made beforehand",
              given / whole, "× faster", 80, details=details)  # fmt: skip
    yield Row("Annotations.from_masks of these arrays", "one NumPy copy of them", checked / copied, "× its time", 1,
              at_most=True, details={"seconds": checked, "seconds, copy": copied})  # fmt: skip


def _many_classes(size: int) -> Iterator[Row]:
    masks = data.volumes(size, 4)
    annotations = at.Annotations.from_masks(masks[None], classes=4)

    def itk() -> Any:
        return sitk.MultiLabelSTAPLEImageFilter().Execute([sitk.GetImageFromArray(mask) for mask in masks])

    fused = at.STAPLE().fit(annotations)
    labels, best = fused.predict()[0], np.sort(fused.predict_proba_item(0), axis=0)[-2:]
    untied = best[1] - best[0] > 1e-4
    differing = int((sitk.GetArrayFromImage(itk()) != labels)[untied].sum())
    details = {
        "labels that differ off ties": differing,
        "voxels tied": int((~untied).sum()),
        "iterations": fused.n_iter_,
    }
    times = _times(annotations, masks, itk)
    work, name = f"{size}³ voxels, 5 raters, 4 classes", "SimpleITK MultiLabelSTAPLE"
    yield Row(f"multi-label STAPLE, {work}, labels out: all that the peer gives", name,
              times["peer seconds"] / times["seconds, labels out"], "× faster", 80, same=differing == 0,
              details=times | details)  # fmt: skip
    yield Row(f"multi-label STAPLE with posteriors, {work}, which the peer does not give", name,
              times["peer seconds"] / times["seconds, posterior out"], "× faster", None, details=times)  # fmt: skip
    yield from _limits(4, size, times)


def _times(annotations: at.Annotations, masks: np.ndarray, itk: Callable[[], Any]) -> dict[str, float]:
    """Seconds of fusion, of the peer, and of moving the data; taken in turn, the shortest of each."""
    n_classes = len(annotations.classes)

    def move() -> Any:
        return masks.copy(), np.full((1, n_classes, *masks.shape[1:]), 0.5, dtype=np.float32)

    def posterior() -> Any:
        return at.STAPLE().fit(annotations).predict_proba()

    def labels() -> Any:
        return at.STAPLE().fit(annotations).predict()

    rounds = [(seconds(posterior), seconds(labels), seconds(move)) for _ in range(7)]
    names = ("seconds, posterior out", "seconds, labels out", "seconds, copy and write")
    return {name: min(times) for name, times in zip(names, zip(*rounds))} | {"peer seconds": seconds(itk, repeats=2)}


def _limits(n_classes: int, size: int, times: dict[str, float]) -> Iterator[Row]:
    """How near fusion comes to what any program needs: reading the masks, writing and holding the posterior."""
    ratio = times["seconds, posterior out"] / times["seconds, copy and write"]
    peer = "one NumPy copy of the input + one write of the output"
    yield Row(
        f"the same, {n_classes} classes, posterior out", peer, ratio, "× its time", 2.5, at_most=True, details=times
    )
    memory = in_fresh_process("staple_memory", str(size), str(n_classes))
    yield Row(f"peak extra memory, {n_classes} classes, posterior out", "the output's own size",
              memory["extra"] / memory["output"], "× its size", 1.5, at_most=True, details=memory)  # fmt: skip
