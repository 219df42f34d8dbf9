"""nnU-Net: imagesTr, labelsTr and dataset.json, with disputed and unlabelled pixels under the ignore label."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from annotruth.errors import InputError
from annotruth.io.exports import Export, register_export
from annotruth.io.files import image_header, read_image, suffix_of
from annotruth.io.problems import Progress, place
from annotruth.io.results import DISPUTED, Result, ResultItem
from annotruth.io.writing import atomic, write_image_file, write_mask_file
from annotruth.validation import MISSING_PIXEL

ENDINGS = (".nii.gz", ".png", ".tif", ".tiff")
"""Formats that nnU-Net reads, of those that we write; NIfTI and TIFF hold everything."""


@register_export
class NnUNet(Export):
    """imagesTr/<case>_0000.<ext>, labelsTr/<case>.<ext>, softlabelsTr/<case>.npz, dataset.json (version 2)."""

    key = "nnunet"
    description = "an nnU-Net data set: labels with an ignore label, soft labels as NPZ"

    def write(self, result: Result, folder: Path, progress: Progress, **options: Any) -> None:
        ending = _ending(result.items)
        names = [name for name in result.classes if not (result.has_disputed and name == DISPUTED)]
        has_ignore, channels = result.has_disputed, 1
        for done, item in enumerate(result.items, 1):
            channels = _write_images(folder, item, ending)
            labels = item.read_labels()
            ignored = (labels == MISSING_PIXEL) | (labels >= len(names))
            has_ignore = has_ignore or bool(ignored.any())
            labels = np.where(ignored, len(names), labels).astype(np.uint8)
            write_mask_file(folder / "labelsTr" / f"{item.name}{ending}", labels, _like(item, ending))
            if item.read_probabilities is not None:
                _write_soft(folder / "softlabelsTr" / f"{item.name}.npz", item.read_probabilities())
            progress(done, len(result.items))
        labels_of = {("background" if number == 0 else name): number for number, name in enumerate(names)}
        content = {
            "channel_names": {str(number): f"channel_{number}" for number in range(channels)},
            "labels": labels_of | ({"ignore": len(names)} if has_ignore else {}),
            "numTraining": len(result.items), "file_ending": ending, "description": result.maker,
        }  # fmt: skip
        with atomic(folder / "dataset.json") as temporary:
            temporary.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _ending(items: list[ResultItem]) -> str:
    """One format for all files, as nnU-Net wants it: the images', where it reads that."""
    found = {(suffix_of(item.image or item.file) or "").lower() for item in items}
    if len(found) == 1 and (only := found.pop()) in ENDINGS:
        return only
    return ".png" if all(len(item.shape) == 2 and _is_plain(item) for item in items) else ".nii.gz"


def _is_plain(item: ResultItem) -> bool:
    """Whether an image's numbers fit into PNG."""
    return item.image is None or (suffix_of(item.image) or "").lower() in (".png", ".jpg", ".jpeg")


def _like(item: ResultItem, ending: str) -> Path | None:
    file = item.image if item.image is not None else item.file
    return file if (suffix_of(file) or "").lower() == ending else None


def _write_images(folder: Path, item: ResultItem, ending: str) -> int:
    """Write an item's image, a file for each channel, or one in colour; give how many channels there are."""
    if item.image is None:
        return 1
    rank = len(item.shape)
    channels = image_header(item.image, rank, place(item.image, item.name)).shape[0]
    home = folder / "imagesTr"
    home.mkdir(exist_ok=True)
    in_colour = ending == ".png" and channels == 3
    if (suffix_of(item.image) or "").lower() == ending and (channels == 1 or in_colour):
        shutil.copyfile(item.image, home / f"{item.name}_0000{ending}")
        return channels
    image = read_image(item.image, rank, place(item.image, item.name))
    if in_colour:
        write_image_file(home / f"{item.name}_0000{ending}", image, None)
        return channels
    if channels > 9999:
        raise InputError(f"{item.image} (case {item.name}): {channels} channels are more than nnU-Net can name.")
    for number, channel in enumerate(image):
        write_image_file(home / f"{item.name}_{number:04d}{ending}", channel[None], _like(item, ending))
    return channels


def _write_soft(path: Path, probabilities: np.ndarray) -> None:
    """Write (classes, *spatial) as nnU-Net keeps probabilities: volumes with their axes in turn, (classes, z, y, x)."""
    turned = probabilities.transpose(0, 3, 2, 1) if probabilities.ndim == 4 else probabilities[:, None]
    with atomic(path) as temporary:
        np.savez_compressed(temporary, probabilities=turned.astype(np.float32))
