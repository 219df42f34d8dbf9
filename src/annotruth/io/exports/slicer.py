"""3D Slicer: <case>.seg.nrrd, a segment per class; disputed voxels in a layer of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from annotruth.io.exports import Export, register_export
from annotruth.io.extras import need
from annotruth.io.grids import LPS_TO_RAS
from annotruth.io.problems import Progress
from annotruth.io.results import Result, ResultItem
from annotruth.io.writing import atomic

COLOURS = ("0.9 0.2 0.2", "0.2 0.6 0.9", "0.2 0.8 0.3", "0.9 0.8 0.2", "0.7 0.3 0.9", "0.3 0.9 0.9", "0.9 0.5 0.2")


@register_export
class Slicer(Export):
    """NRRD with Slicer's keys for segments; a plane becomes a volume of one slice."""

    key = "slicer"
    description = "3D Slicer's segmentations, <case>.seg.nrrd"

    def write(self, result: Result, folder: Path, progress: Progress, **options: Any) -> None:
        nrrd = need("nrrd", "nrrd")
        for done, item in enumerate(result.items, 1):
            voxels, header = _segmentation(result, item)
            with atomic(folder / f"{item.name}.seg.nrrd") as temporary:
                nrrd.write(str(temporary), voxels, header)
            progress(done, len(result.items))


def _segmentation(result: Result, item: ResultItem) -> tuple[np.ndarray, dict[str, Any]]:
    labels = item.read_labels()
    labels = labels if labels.ndim == 3 else labels[..., None]
    n_plain = len(result.classes) - result.has_disputed
    layers = [np.where(labels < n_plain, labels, 0).astype(np.uint8)]
    if result.has_disputed:
        layers.append((labels == n_plain).astype(np.uint8))
    affine = LPS_TO_RAS @ item.affine  # its own inverse
    directions = affine[:3, :3].T
    header: dict[str, Any] = {
        "space": "left-posterior-superior", "space origin": affine[:3, 3], "encoding": "gzip",
        "space directions": directions if len(layers) == 1 else np.vstack([np.full(3, np.nan), directions]),
        "kinds": ["list"] * (len(layers) > 1) + ["domain"] * 3,
        "Segmentation_MasterRepresentation": "Binary labelmap",
        "Segmentation_ContainedRepresentationNames": "Binary labelmap|",
    }  # fmt: skip
    extent = " ".join(f"0 {size - 1}" for size in labels.shape)
    for number, name in enumerate(result.classes[1:]):
        is_layer = result.has_disputed and number == n_plain - 1
        header |= {
            f"Segment{number}_ID": f"Segment_{number + 1}", f"Segment{number}_Name": name,
            f"Segment{number}_Color": COLOURS[number % len(COLOURS)], f"Segment{number}_Extent": extent,
            f"Segment{number}_LabelValue": "1" if is_layer else str(number + 1),
            f"Segment{number}_Layer": "1" if is_layer else "0",
        }  # fmt: skip
    return (layers[0] if len(layers) == 1 else np.stack(layers)), header
