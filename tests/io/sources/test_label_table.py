"""Label tables with the pictures of their items, contradictory answers and odd raters."""

from __future__ import annotations

from pathlib import Path

import nibabel
import numpy as np
import pytest
from PIL import Image

from annotruth import load
from annotruth.errors import InputError
from annotruth.io import check

ITEMS = ("b 1", "ä", "c")


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    (tmp_path / "pictures").mkdir()
    for number, item in enumerate(ITEMS):
        Image.fromarray(np.full((4, 5), number, np.uint8)).save(tmp_path / "pictures" / f"{item}.png")
    return tmp_path / "pictures"


def test_pictures_by_name_with_or_without_suffix(table: Path, pictures: Path) -> None:
    found = load(table, images=pictures)
    np.testing.assert_array_equal(found.images[:, 0, 0, 0], [2, 0, 1])
    assert found.images.shape == (3, 1, 4, 5)
    assert [source.name for source in found.sources or () if source] == ["c.png", "b 1.png", "ä.png"]
    table.write_text("item,rater,label\nc.png,ann,x\n")
    assert load(table, images=pictures).item_image(0)[0, 0, 0] == 2


@pytest.mark.parametrize(
    ("shape", "suffix", "expected"),
    [
        ((4, 5), ".npy", (1, 4, 5)),
        ((3, 4, 5), ".npy", (3, 4, 5)),
        ((2, 4, 5, 6), ".npy", (2, 4, 5, 6)),
        ((4, 5), ".nii.gz", (1, 4, 5)),
        ((4, 5, 1), ".nii.gz", (1, 4, 5)),
        ((4, 5, 6), ".nii.gz", (1, 4, 5, 6)),
        ((4, 5, 6, 2), ".nii.gz", (2, 4, 5, 6)),
    ],
)
def test_planes_and_volumes(tmp_path: Path, shape: tuple[int, ...], suffix: str, expected: tuple[int, ...]) -> None:
    (tmp_path / "labels.csv").write_text("item,rater,label\na,ann,x\n")
    path = tmp_path / "images" / f"a{suffix}"
    path.parent.mkdir()
    if suffix == ".npy":
        np.save(path, np.ones(shape))
    else:
        nibabel.save(nibabel.Nifti1Image(np.ones(shape, np.float32), np.eye(4)), path)
    assert load(tmp_path / "labels.csv", images=tmp_path).item_image(0).shape == expected


def test_bad_pictures_are_named_and_all_of_them_listed(table: Path, pictures: Path) -> None:
    (pictures / "c.png").unlink()
    with pytest.raises(InputError, match=r"pictures: items of the label table without a picture, 1 of 3: c\. Add"):
        load(table, images=pictures)
    (pictures / "ä.png").write_bytes(b"rubbish")
    (pictures / "d.png").write_bytes((pictures / "b 1.png").read_bytes())
    found = check(table, images=pictures)
    assert [problem.severity for problem in found] == ["fatal", "fatal", "warning"]
    assert "cannot be read" in str(found[1])
    assert "nobody labelled 1 of the pictures: d.png" in str(found[2])
    with pytest.raises(InputError, match="no such folder of pictures"):
        load(table, images=pictures / "none")


def test_pictures_of_another_size_are_named(table: Path, pictures: Path) -> None:
    Image.fromarray(np.zeros((4, 6), np.uint8)).save(pictures / "c.png")
    with pytest.raises(InputError, match=r"c\.png \(case c\): the picture has size 1×4×6 .*most have 1×4×5.*resize it"):
        load(table, images=pictures)


def test_either_pictures_or_features_and_only_with_a_table(table: Path, pictures: Path) -> None:
    np.save(table.parent / "f.npy", np.arange(6, dtype=np.float32).reshape(3, 2))
    with pytest.raises(InputError, match="either pictures or features"):
        load(table, images=pictures, features=table.parent / "f.npy")
    with pytest.raises(InputError, match="images= goes with a label table"):
        load(table.parent, images=pictures)


def test_duplicates(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("item,rater,label\na,ann,x\nb,ann,x\na,ann,y\nb,ann,x\n")
    with pytest.raises(InputError, match=r"a\.csv: .*different labels: a by ann \(x and y\)\. .*keep-last"):
        load(tmp_path / "a.csv")
    kept = load(tmp_path / "a.csv", duplicates="keep-last")
    np.testing.assert_array_equal(kept.answer_matrix(), [[1], [0]])
    with pytest.raises(InputError, match=r"Unknown way with duplicates 'first'\. Known: error, keep-last"):
        load(tmp_path / "a.csv", duplicates="first")
    assert check(tmp_path / "a.csv")[0].severity == "fatal"
    assert {problem.severity for problem in check(tmp_path / "a.csv", duplicates="keep-last")} == {"warning"}


def test_odd_raters_are_pointed_out(tmp_path: Path) -> None:
    answers = {"ann": "xyxyxy", "bob": "xxxxxx", "cy": "y"}
    rows = [f"{item},{rater},{label}" for rater, labels in answers.items() for item, label in enumerate(labels)]
    (tmp_path / "a.csv").write_text("item,rater,label\n" + "\n".join(rows))
    found = {problem.rater: problem.message for problem in check(tmp_path / "a.csv")}
    assert found == {"bob": "every one of the rater's 6 answers is x.", "cy": "the rater gave one answer only."}


def test_names_that_are_written_in_two_ways_are_pointed_out(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "item,rater,label\na,ann,cat\nb,ann ,Cat\na,bob,dog\nb,ann,dog\nb,bob,cat\na,ann ,dog\n"
    )
    found = [problem.message for problem in check(tmp_path / "a.csv")]
    assert "the raters 'ann' and 'ann ' differ by capitals and spaces only, and are told apart." in found
    assert "the classes 'cat' and 'Cat' differ by capitals and spaces only, and are told apart." in found
