"""STAPLE beside SimpleITK, and beside the time that moving the data takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import SimpleITK as sitk

import annotruth as at
from benchmarks import data
from benchmarks.measure import Row, in_fresh_process, seconds


def run(size: int) -> Iterator[Row]:
    """Compare on volumes of size³ voxels and five raters."""
    yield from _binary(size)
    yield from _many_classes(size)


def _binary(size: int) -> Iterator[Row]:
    masks = data.volumes(size, 2)
    annotations = at.Annotations.from_masks(masks[None])

    def itk() -> Any:
        peer = sitk.STAPLEImageFilter()
        peer.SetForegroundValue(1)
        return peer.Execute([sitk.GetImageFromArray(mask) for mask in masks])

    ours, theirs = at.STAPLE().fit(annotations).predict_proba(), sitk.GetArrayFromImage(itk())
    difference = float(np.abs(np.asarray(ours)[0, 1] - theirs).max())
    del theirs
    yield from _rows(f"binary STAPLE, {size}³ voxels, 5 raters, posterior out", annotations, masks, itk, "STAPLE",
                     difference <= 1e-5, {"largest difference of probabilities": difference})  # fmt: skip


def _many_classes(size: int) -> Iterator[Row]:
    masks = data.volumes(size, 4)
    annotations = at.Annotations.from_masks(masks[None], classes=4)

    def itk() -> Any:
        return sitk.MultiLabelSTAPLEImageFilter().Execute([sitk.GetImageFromArray(mask) for mask in masks])

    fused = at.STAPLE().fit(annotations)
    labels, best = fused.predict()[0], np.sort(fused.predict_proba_item(0), axis=0)[-2:]
    untied = best[1] - best[0] > 1e-4
    differing = int((sitk.GetArrayFromImage(itk()) != labels)[untied].sum())
    details = {"labels that differ off ties": differing, "voxels tied": int((~untied).sum())}
    yield from _rows(f"multi-label STAPLE, {size}³ voxels, 5 raters, 4 classes, posterior out", annotations, masks, itk,
                     "MultiLabelSTAPLE", differing == 0, details)  # fmt: skip


def _rows(
    work: str, annotations: at.Annotations, masks: np.ndarray, itk: Any, name: str, same: bool, details: dict[str, Any]
) -> Iterator[Row]:
    n_classes, size = len(annotations.classes), masks.shape[-1]

    def move() -> Any:
        return masks.copy(), np.full((1, n_classes, *masks.shape[1:]), 0.5, dtype=np.float32)

    def fuse() -> Any:
        return at.STAPLE().fit(annotations).predict_proba()

    peer = seconds(itk)
    ours, limit = (min(pair) for pair in zip(*[(seconds(fuse), seconds(move)) for _ in range(7)]))
    times = {"seconds": ours, "peer seconds": peer, "copy and write seconds": limit}
    yield Row(work, f"SimpleITK {name}", peer / ours, "× faster", 80, same=same, details=times | details)
    yield Row(f"the same, {n_classes} classes", "one NumPy copy of the input + one write of the output", ours / limit,
              "× its time", 2.5, at_most=True, details=times)  # fmt: skip
    memory = in_fresh_process("staple_memory", str(size), str(n_classes))
    yield Row(f"peak extra memory, {n_classes} classes", "the output's own size", memory["extra"] / memory["output"],
              "× its size", 1.5, at_most=True, details=memory)  # fmt: skip
