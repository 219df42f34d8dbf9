"""LIDC's XML: outlines, what is left out of them, readers that saw nothing, and hostile files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import annotruth as at
from annotruth.errors import InputError
from annotruth.io import import_source
from annotruth.io.sources import lidc
from annotruth.io.sources.lidc import Outline, fill_outlines


def test_slices_readers_and_what_is_left_out(example_lidc: Path, tmp_path: Path) -> None:
    imported = import_source(example_lidc, tmp_path / "cases")
    assert imported.raters == {"rater_1": 1, "rater_2": 1, "rater_3": 1}
    assert any("1 nodules under 3 mm" in note for note in imported.notes)
    loaded = at.load(tmp_path / "cases")
    assert loaded.items == ("1.2.158_-20",)
    assert loaded.groups == ("1.2.158",)
    assert loaded.masks[0].reshape(3, -1).sum(axis=1).tolist() == [9, 9, 0], "a reader who drew nothing saw nothing"
    np.testing.assert_array_equal(np.argwhere(loaded.masks[0, 0])[[0, -1]], [[11, 11], [13, 13]])


def test_outlines_lie_outside_and_holes_are_cut() -> None:
    def ring(low: int, high: int, inclusion: bool) -> Outline:
        return Outline(((low, low), (high, low), (high, high), (low, high)), inclusion)

    mask = fill_outlines((ring(4, 8, False), ring(1, 11, True)), (14, 14))
    assert mask.sum() == 9 * 9 - 3 * 3
    assert fill_outlines((ring(-3, 3, True),), (14, 14)).sum() == 9, "what lies outside the image is cut off"


def test_images_are_found_by_the_slices_identifier(example_lidc: Path, tmp_path: Path) -> None:
    (tmp_path / "slices").mkdir()
    Image.fromarray(np.zeros((512, 512), dtype=np.uint8)).save(tmp_path / "slices" / "9.1.png")
    assert at.load(example_lidc, images=tmp_path / "slices").images.shape == (1, 1, 512, 512)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("<xCoord>10</xCoord>", "<xCoord>1e999</xCoord>"), "is no coordinate"),
        (("<imageSOP_UID>9.1</imageSOP_UID>", ""), "lacks 'imageSOP_UID'"),
        (('encoding="UTF-8"?>', 'encoding="UTF-8"?><!DOCTYPE x [<!ENTITY a "b">]>'), "declares a document type"),
    ],
)
def test_bad_files_are_named(example_lidc: Path, change: tuple[str, str], message: str) -> None:
    file = example_lidc / "157" / "158.xml"
    file.write_text(file.read_text().replace(*change))
    with pytest.raises(InputError, match=rf"158\.xml: .*{message}"):
        at.load(example_lidc)


def test_long_edges_cost_no_more_than_what_is_seen_of_them() -> None:
    """An edge that leaves the slice far away takes off the same pixels as one that ends beside it."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        here, there = rng.integers(-40, 40, (2, 2)).astype(float)
        steps = int(np.abs(there - here).max())
        first, last = lidc._seen(here, there, steps, (16, 20))
        places = np.rint(here + (there - here) * np.arange(1, max(steps, 1))[:, None] / max(steps, 1))
        inside = (places >= 0).all(axis=1) & (places < (20, 16)).all(axis=1)
        kept = np.zeros(len(places), dtype=bool)
        kept[first - 1 : max(last - 1, first - 1)] = True
        assert not (inside & ~kept).any()
    assert lidc._seen(np.array([3.0, 3.0]), np.array([3e8, 3.0]), 3 * 10**8, (16, 20))[1] < 30
