"""Case folders in which something is wrong with some of the cases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from annotruth.errors import InputError
from annotruth.io import SOURCES, load

Put = Callable[..., Path]
load_sound = SOURCES["case folder"].load_sound


def test_a_sound_folder_is_loaded_as_ever(cases: Path) -> None:
    sound, problems = load_sound(cases)
    expected = load(cases)
    assert problems == []
    assert (sound.items, sound.raters, sound.classes) == (expected.items, expected.raters, expected.classes)
    np.testing.assert_array_equal(sound.masks, expected.masks)
    np.testing.assert_array_equal(sound.images, expected.images)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("images/b.png", b"no picture"),
        ("raters/bob/b.png", b"no picture"),
        ("raters/bob/b.psd", b"a format of its own"),
        ("raters/bob/b.tiff", b"the case again"),
    ],
)
def test_a_file_takes_its_case_with_it(cases: Path, file: str, content: bytes) -> None:
    (cases / file).write_bytes(content)
    sound, problems = load_sound(cases)
    assert sound.items == ("a", "c")
    assert {problem.file.name for problem in problems} == {Path(file).name}


def test_a_mask_without_image_and_a_stray_file_take_no_other_case(cases: Path, put: Put, mask: np.ndarray) -> None:
    put(cases / "raters" / "ann" / "z.png", mask)
    (cases / "raters" / "notes.txt").write_text("hello")
    sound, problems = load_sound(cases)
    assert sound.items == ("a", "b", "c")
    assert sorted(problem.file.name for problem in problems) == ["notes.txt", "z.png"]


def test_pixels_are_looked_at_where_classes_are_not_named(
    cases: Path, put: Put, mask: np.ndarray, describe: Callable[..., None]
) -> None:
    put(cases / "raters" / "ann" / "b.png", mask.astype(np.uint16) + 300)
    sound, problems = load_sound(cases)
    assert sound.items == ("a", "c")
    assert "300, 301" in problems[0].message
    describe(cases, classes=["background", "lesion"])
    assert load_sound(cases)[0].items == ("a", "b", "c"), "else they are met when they are read"


def test_a_rater_stays_known_without_a_sound_mask(cases: Path) -> None:
    for case in "bc":
        (cases / "raters" / "bob" / f"{case}.png").unlink()
    (cases / "raters" / "bob" / "a.png").write_bytes(b"no picture")
    assert load_sound(cases)[0].raters == ("ann", "bob")


def test_what_is_wrong_with_all_is_raised(cases: Path, put: Put, mask: np.ndarray) -> None:
    for file in (cases / "raters" / "bob").iterdir():
        file.write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"wrong with every case.*case a, rater bob.*2 more"):
        load_sound(cases)
    for rater in ("ann", "bob"):
        for case in "abc":
            put(cases / "raters" / rater / f"{case}.png", 255 * mask)
    with pytest.raises(InputError, match="masks hold only 0 and 255"):
        load_sound(cases)


def test_true_masks_count_only_where_they_are_named(cases: Path, put: Put, mask: np.ndarray, tmp_path: Path) -> None:
    put(cases / "truth" / "a.png", mask)
    (cases / "truth" / "b.png").write_bytes(b"no picture")
    sound, problems = load_sound(cases)
    assert not sound.has_truth
    assert problems == []
    sound, problems = load_sound(cases, cases / "truth")
    assert sound.items == ("a", "c")
    np.testing.assert_array_equal(sound.truth, [mask, np.full_like(mask, 255)])
    put(tmp_path / "elsewhere" / "c.png", mask)
    sound, problems = load_sound(cases, tmp_path / "elsewhere")
    np.testing.assert_array_equal(sound.item_truth(2), mask)
    assert problems == []


def test_others_may_do_the_reading(cases: Path) -> None:
    asked = []

    def across(work: Callable[[object], object], tasks: list[object]) -> list[object]:
        asked.extend(tasks)
        return [work(task) for task in tasks]

    told = []
    load_sound(cases, progress=lambda done, total: told.append((done, total)), across=across)
    assert sum(map(len, asked)) == 6  # masks, those of a case together
    assert told[-1] == (6, 6)
