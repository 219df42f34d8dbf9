"""Exports: a fusion goes out to each tool's form, and what is read back is the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.io.exports import EXPORTS, Export, export_result, register_export
from annotruth.io.results import read_result


def labels_of(fused: Path) -> np.ndarray:
    return np.stack([item.read_labels() for item in read_result(fused).items])


@pytest.mark.parametrize("to", ["cvat", "coco"])
def test_masks_come_back_under_their_own_names(fused: Path, tmp_path: Path, to: str) -> None:
    again = at.load(export_result(fused, tmp_path / "out", to))
    assert (again.items, again.classes) == (("a", "b"), ("background", "cell", "wall"))
    np.testing.assert_array_equal(again.masks[:, 0], labels_of(fused))
    assert "in/b.png" in next((tmp_path / "out").iterdir()).read_text()


@pytest.mark.parametrize("to", ["cvat", "coco", "label-studio"])
def test_disputed_pixels_are_a_layer(fused: Path, tmp_path: Path, to: str) -> None:
    """Of three raters, one drew to the eighth column: pixels that one or two marked are disputed at 0.8."""
    out = export_result(fused, tmp_path / "out", to, disputed=0.8)
    assert "disputed" in "".join(file.read_text() for file in out.iterdir())
    assert (labels_of(fused)[0] == 1).sum() == 15
    item = read_result(fused, disputed=0.8).items[0]
    assert (item.read_labels() == 3).sum() == 6


def test_answers_go_back_as_tags(fused_answers: Path, tmp_path: Path) -> None:
    again = at.load(export_result(fused_answers, tmp_path / "out", "cvat"), source="cvat-tags")
    assert again.items == ("cat", "dog")
    assert again.answer_matrix().tolist() == [[0], [1]]


def test_what_does_not_fit_is_refused(fused: Path, fused_answers: Path, fused_volumes: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no export called 'paint'; there are .*coco"):
        export_result(fused, tmp_path / "out", "paint")
    with pytest.raises(InputError, match="one class per item, which coco cannot hold; cvat, label-studio can"):
        export_result(fused_answers, tmp_path / "out", "coco")
    with pytest.raises(InputError, match="colour is not an option of the export cvat; it takes none"):
        export_result(fused, tmp_path / "out", "cvat", colour="red")
    with pytest.raises(InputError, match=r"case P 7\): a volume \(10×8×4\), and this export holds planes"):
        export_result(fused_volumes, tmp_path / "volume", "cvat")
    export_result(fused, tmp_path / "out", "cvat")
    with pytest.raises(InputError, match="already holds files"):
        export_result(fused, tmp_path / "out", "cvat")
    export_result(fused, tmp_path / "out", "cvat", overwrite=True)


def test_a_key_is_given_once() -> None:
    with pytest.raises(InputError, match="already an export called 'cvat'"):
        register_export(type("Other", (Export,), {"key": "cvat", "description": "x", "write": lambda self: None}))


def test_every_export_says_what_it_is() -> None:
    assert sorted(EXPORTS) == ["coco", "cvat", "dicom", "label-studio", "nnunet", "slicer"]
    for export in EXPORTS.values():
        assert export.description
        assert set(export.kinds) <= {"masks", "labels"}
