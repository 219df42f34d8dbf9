"""Contents of other people's data sets: names that files can have, and masks that are read when they are needed."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from annotruth.errors import InputError
from annotruth.io.contents import Contents, Item, Mask, name_items, name_raters, safe_name
from annotruth.io.problems import Problem


def broken() -> np.ndarray:
    raise InputError("the mask is torn. Mend it.")


def contents(*masks: dict[str, Mask]) -> Contents:
    return Contents(("background", "cell"), [Item(f"i{number}", (2, 3), each) for number, each in enumerate(masks)])


GOOD = Mask(Path("good.xml"), partial(np.ones, (2, 3), np.uint8))
BAD = Mask(Path("bad.xml"), broken)
SMALL = Mask(Path("small.xml"), partial(np.ones, (2, 2), np.uint8))
STRANGE = Mask(Path("strange.xml"), partial(np.full, (2, 3), 9, np.uint8))


def test_masks_are_read_late_and_name_file_item_and_rater() -> None:
    made = contents({"ann": GOOD, "bob": BAD}, {"ann": GOOD}).annotations()
    assert (made.items, made.raters, made.shape(0)) == (("i0", "i1"), ("ann", "bob"), (2, 3))
    assert made.item_masks(1)[:, 0, 0].tolist() == [1, 255]
    with pytest.raises(InputError, match=r"bad\.xml \(case i0, rater bob\): the mask is torn"):
        made.item_masks(0)


def fail(error: Exception) -> np.ndarray:
    raise error


@pytest.mark.parametrize(
    ("error", "message"), [(ZeroDivisionError(), "ZeroDivisionError"), (MemoryError(), "more memory than there is")]
)
def test_whatever_a_reader_raises_names_whose_mask_it_is(error: Exception, message: str) -> None:
    made = contents({"ann": Mask(Path("odd.xml"), partial(fail, error))}).annotations()
    with pytest.raises(InputError, match=rf"odd\.xml \(case i0, rater ann\): .*{message}"):
        made.item_masks(0)


def test_bad_masks_are_left_out_and_an_item_only_if_nothing_is_left() -> None:
    problems: list[Problem] = []
    found = contents({"ann": GOOD, "bob": SMALL}, {"bob": BAD}, {"ann": STRANGE, "cy": GOOD}, {})
    sound = {item.name: sorted(masks) for item, masks in found.sound_masks(problems.append)}
    assert sound == {"i0": ["ann"], "i2": ["cy"], "i3": []}
    assert [(problem.case, problem.rater) for problem in problems] == [("i0", "bob"), ("i1", "bob"), ("i2", "ann")]


def test_images_that_nobody_labelled_are_a_warning() -> None:
    problems: list[Problem] = []
    contents({"ann": GOOD, "bob": GOOD}, {}).warn(Path("x"), problems.append)
    assert [(problem.severity, problem.message) for problem in problems] == [
        ("warning", "nobody labelled 1 of the images: i1.")
    ]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (["a.png", "b.nii.gz"], ["a", "b"]),
        (["x/a.png", "y/a.png"], ["x_a", "y_a"]),
        (["a.png", "a.jpg"], ["a", "a_2"]),
        (["A.png", "a.png"], ["A", "a_2"]),
        (["../../etc/passwd", "c:\\\\x\\\\y.png"], ["passwd", "y"]),
    ],
)
def test_items_are_named_after_files(given: list[str], named: list[str]) -> None:
    assert list(name_items(given).values()) == named


def test_raters_shown_alike_are_told_apart() -> None:
    assert name_raters({1: "Ann", 2: "ann", 3: "bob"}) == {1: "Ann (1)", 2: "ann (2)", 3: "bob"}
    assert safe_name("ann.negative") == "ann"
    assert safe_name("...") == safe_name("") == "unnamed"
