"""Masks as people save them, in a folder per rater: what they hold is found, said and imported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import annotruth as at
from annotruth.errors import InputError
from annotruth.io import check, find_source, import_source

SQUARE = np.zeros((16, 20), dtype=np.uint8)
SQUARE[4:12, 5:15] = 1
INNER = np.zeros((16, 20), dtype=np.uint8)
INNER[6:10, 8:12] = 1


def save(path: Path, pixels: np.ndarray, **options: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for case in ("a", "b"):
        save(tmp_path / "data" / "images" / f"{case}.png", np.zeros((16, 20), dtype=np.uint8))
    return tmp_path / "data"


def test_masks_in_colour_with_equal_channels(example_mask_folder: Path, tmp_path: Path) -> None:
    imported = import_source(example_mask_folder, tmp_path / "cases")
    assert imported.source == "mask-folder"
    assert imported.notes == [
        "6 of 6 masks are in colour with equal channels: one of them is read.",
        "Masks hold 0 and 255: 255 is taken as marked.",
    ]
    assert imported.skipped == []
    cases = at.load(tmp_path / "cases")
    assert (cases.items, cases.raters, cases.classes) == (("c1", "c2", "c10"), ("ann", "bob"), ("background", "marked"))
    np.testing.assert_array_equal(cases.masks, at.load(example_mask_folder).masks)
    np.testing.assert_array_equal(cases.masks[0, 0], SQUARE)
    assert at.io.check(tmp_path / "cases") == []


@pytest.mark.parametrize("name", ["labels", "masks", "raters"])
def test_soft_edges_as_jpeg_under_the_usual_names_of_folders(folder: Path, name: str) -> None:
    for case in ("a", "b"):
        for expert in ("expert_1", "expert_2"):
            save(folder / name / expert / f"{case}.jpg", SQUARE * 255, quality=70)
    loaded = at.load(folder)
    assert loaded.raters == ("expert_1", "expert_2")
    np.testing.assert_array_equal(loaded.masks[1, 1], SQUARE)


def test_colours_are_named_by_an_option(folder: Path) -> None:
    colours = np.array([[0, 0, 0], [255, 0, 0], [0, 255, 0]], dtype=np.uint8)
    save(folder / "raters" / "ann" / "a.png", colours[SQUARE + INNER])
    save(folder / "raters" / "ann" / "b.png", colours[SQUARE])
    loaded = at.load(folder, colours="#ff0000=organ,#00ff00=tumour")
    assert loaded.classes == ("background", "organ", "tumour")
    np.testing.assert_array_equal(loaded.masks[0, 0], SQUARE + INNER)
    assert at.load(folder).classes == ("background", "#00ff00", "#ff0000")
    with pytest.raises(InputError, match="#00ff00 fills areas and has no class"):
        at.load(folder, colours=["#ff0000=organ"])


@pytest.mark.parametrize("form", ["{case}_{label}.png", "{label}/{case}.png", "{case}/{label}.png"])
def test_a_file_for_each_class(folder: Path, form: str) -> None:
    for case in ("a", "b"):
        for label, mask in (("cup", INNER), ("disc", SQUARE)):
            save(folder / "raters" / "ann" / form.format(case=case, label=label), mask * 255)
    loaded = at.load(folder, source="mask-folder")
    assert loaded.classes == ("background", "disc", "cup"), "the larger one lies below"
    np.testing.assert_array_equal(loaded.masks[0, 0], SQUARE + INNER)
    named = at.load(folder, source="mask-folder", classes="background,cup,disc")
    np.testing.assert_array_equal(named.masks[0, 0], 2 * SQUARE)


def test_sizes_that_differ_by_a_whole_number_are_refused_unless_asked(folder: Path, tmp_path: Path) -> None:
    for case in ("a", "b"):
        large = np.repeat(np.repeat(SQUARE * 255, 3, axis=0), 3, axis=1)
        save(folder / "raters" / "ann" / f"{case}.png", np.repeat(large[..., None], 3, axis=2))
    problems = [problem for problem in check(folder) if problem.severity == "fatal"]
    assert [problem.case for problem in problems] == ["a", "b"]
    assert "it is 3 times larger" in problems[0].message
    imported = import_source(folder, tmp_path / "cases", resize=True)
    assert imported.skipped == []
    np.testing.assert_array_equal(at.load(tmp_path / "cases").masks[0, 0], SQUARE)


def test_what_belongs_to_no_image_is_left_out_and_said(example_mask_folder: Path, tmp_path: Path) -> None:
    save(example_mask_folder / "raters" / "bob" / "x9.png", np.zeros((16, 20, 3), dtype=np.uint8))
    (example_mask_folder / "raters" / "ann" / "c2.png").write_bytes(b"nonsense")
    imported = import_source(example_mask_folder, tmp_path / "cases")
    assert imported.raters == {"ann": 2, "bob": 3}
    assert [(problem.case, problem.rater) for problem in imported.skipped] == [("x9", "bob"), ("c2", "ann")]
    with pytest.raises(InputError, match="x9"):
        at.load(example_mask_folder)


def test_class_numbers_are_a_case_folders_and_mixed_ways_are_refused(folder: Path) -> None:
    save(folder / "raters" / "ann" / "a.png", SQUARE)
    assert find_source(folder).key == "case-folder"
    save(folder / "raters" / "ann" / "b_cup.png", SQUARE)
    with pytest.raises(InputError, match=r"a\.png: names no class, while others do \(cup\)"):
        at.load(folder, source="mask-folder")
    with pytest.raises(InputError, match="there is no folder raters or labels"):
        at.load(folder / "images", source="mask-folder")


def test_binary_masks_of_a_case_folder_are_read_if_asked(folder: Path) -> None:
    for case in ("a", "b"):
        save(folder / "raters" / "ann" / f"{case}.png", SQUARE * 255)
    with pytest.raises(InputError, match="mask-folder"):
        at.load(folder)
    np.testing.assert_array_equal(at.load(folder, source="mask-folder").masks[0, 0], SQUARE)


def test_layers_of_volumes(tmp_path: Path) -> None:
    folder = tmp_path / "volumes"
    for case in ("a", "b"):
        (folder / "images").mkdir(parents=True, exist_ok=True)
        np.save(folder / "images" / f"{case}.npy", np.zeros((16, 20, 6), dtype=np.float32))
        (folder / "raters" / "ann").mkdir(parents=True, exist_ok=True)
        whole = np.stack([SQUARE] * 6, axis=-1)
        layers = np.stack([whole == 0, whole == 1]).astype(np.uint8)
        np.save(folder / "raters" / "ann" / f"{case}.npy", layers)
    loaded = at.load(folder, source="mask-folder")
    np.testing.assert_array_equal(loaded.masks[0, 0], whole)
