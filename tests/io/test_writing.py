"""Results come out as the inputs came in; annotations come back from a case folder as they were."""

from __future__ import annotations

import nibabel
import numpy as np
import pytest
import tifffile
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from annotruth import Annotations
from annotruth.errors import AnnotruthError, InputError
from annotruth.io import (
    atomic,
    fresh_folder,
    load,
    load_images,
    write_case_folder,
    write_mask,
    write_probabilities,
)
from annotruth.io.formats import EXACT_SUFFIXES

AFFINE = np.diag([1.5, 1.5, 3.0, 1.0])


def test_masks_keep_the_pixel_values_of_the_input(cases, put, mask, describe, tmp_path):
    describe(cases, classes={"background": 0, "lesion": 200}, missing=9)
    for path in (cases / "raters").glob("*/*"):
        put(path, mask * 200)
    path = write_mask(tmp_path / "out", load(cases), 1, mask)
    assert path == tmp_path / "out" / "b.png"
    np.testing.assert_array_equal(np.asarray(Image.open(path)), mask * 200)
    unsure = mask.copy()
    unsure[0] = 255
    written = np.asarray(Image.open(write_mask(tmp_path / "out", load(cases).take([2, 1]), 1, unsure)))
    assert set(np.unique(written)) == {0, 9, 200}


def test_pixels_without_a_label_need_a_value(cases, put, mask, describe, tmp_path):
    describe(cases, classes={"background": 0, "lesion": 255})
    for path in (cases / "raters").glob("*/*"):
        put(path, mask * 255)
    with pytest.raises(InputError, match=r'a\.png: some pixels have no label.*"missing": 254'):
        write_mask(tmp_path / "out", load(cases), 0, np.full_like(mask, 255))
    assert not (tmp_path / "out").exists()


def test_nifti_results_lie_where_the_image_lies(tmp_path, put):
    put(tmp_path / "c/images/a.nii.gz", np.zeros((4, 5, 6, 2), np.int16), AFFINE)
    put(tmp_path / "c/raters/ann/a.nii", np.ones((4, 5, 6), np.uint8), AFFINE)
    found = load(tmp_path / "c")
    path = write_mask(tmp_path / "out/truth", found, 0, found.item_masks(0)[0])
    assert path.name == "a.nii.gz"
    np.testing.assert_array_equal(nibabel.load(path).affine, AFFINE)
    probabilities = np.random.default_rng(0).random((2, 4, 5, 6))
    path = write_probabilities(tmp_path / "out/probabilities", found, 0, probabilities)
    written = nibabel.load(path)
    assert written.shape == (4, 5, 6, 2)
    assert written.get_data_dtype() == np.float32
    np.testing.assert_array_equal(written.affine, AFFINE)
    np.testing.assert_array_equal(written.get_fdata(), np.moveaxis(probabilities.astype(np.float32), 0, -1))


def test_probabilities_of_a_nifti_plane_stand_in_the_fourth_axis(tmp_path, put):
    put(tmp_path / "c/raters/ann/a.nii", np.ones((4, 5), np.uint8), AFFINE)
    path = write_probabilities(tmp_path / "out", load(tmp_path / "c"), 0, np.zeros((2, 4, 5)))
    assert nibabel.load(path).shape == (4, 5, 1, 2)


def test_probabilities_beside_png_and_tiff_are_pages_of_a_tiff(cases, tmp_path, put):
    probabilities = np.random.default_rng(0).random((2, 8, 9)).astype(np.float32)
    path = write_probabilities(tmp_path / "out", load(cases), 0, probabilities)
    assert path.name == "a.tiff"
    np.testing.assert_array_equal(tifffile.imread(path), probabilities)
    put(tmp_path / "t/raters/ann/x.tif", np.ones((3, 8, 9), np.uint8))
    volume = np.stack([probabilities] * 3, axis=1)
    path = write_probabilities(tmp_path / "out", load(tmp_path / "t"), 0, volume)
    assert path.name == "x.tif"
    with tifffile.TiffFile(path) as file:
        assert (file.series[0].axes, len(file.pages)) == ("CZYX", 6)
        np.testing.assert_array_equal(file.asarray(), volume)


def test_without_files_results_are_npy(tmp_path):
    annotations = Annotations.from_masks(np.ones((1, 2, 3, 4), np.uint8), items=["Fall 1"])
    path = write_mask(tmp_path, annotations, 0, np.ones((3, 4), np.int64))
    assert path.name == "Fall 1.npy"
    assert np.load(path).dtype == np.uint8
    path = write_probabilities(tmp_path / "p", annotations, 0, np.zeros((2, 3, 4)))
    assert (np.load(path).dtype, np.load(path).shape) == (np.float32, (2, 3, 4))


def test_results_for_images_without_raters(cases, tmp_path, mask):
    images = load_images(cases / "images", rank=2, classes=["background", "lesion"])
    np.testing.assert_array_equal(np.asarray(Image.open(write_mask(tmp_path / "o", images, 2, mask))), mask)


def test_wrong_results_are_not_written(cases, tmp_path, mask):
    found = load(cases)
    with pytest.raises(InputError, match="Item a: the mask has size 8×5 but the item has 8×9"):
        write_mask(tmp_path / "out", found, 0, mask[:, :5])
    with pytest.raises(InputError, match="Item a: label 5 lies outside"):
        write_mask(tmp_path / "out", found, 0, mask * 5)
    with pytest.raises(InputError, match="Item a: the mask has size 8×5"):
        write_probabilities(tmp_path / "out", found, 0, np.zeros((2, 8, 5)))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["../evil", "a/b", "", ".hidden", "con: 1", "a\\b", "end."])
def test_names_that_are_no_file_names_are_refused(tmp_path, name):
    annotations = Annotations.from_masks(np.ones((1, 1, 3, 4), np.uint8), items=[name])
    with pytest.raises(InputError, match="cannot give a file its name"):
        write_mask(tmp_path / "out", annotations, 0, np.ones((3, 4), np.uint8))
    with pytest.raises(InputError, match="cannot give a file its name"):
        write_case_folder(tmp_path / "out", annotations)
    assert list(tmp_path.iterdir()) == []


def _equal(one: Annotations, other: Annotations) -> None:
    assert (one.items, one.raters, one.classes) == (other.items, other.raters, other.classes)
    assert (one.groups, one.rater_info) == (other.groups, other.rater_info)
    assert (one.has_images, one.has_truth) == (other.has_images, other.has_truth)
    for index in range(len(one)):
        np.testing.assert_array_equal(one.item_masks(index), other.item_masks(index))
        if one.has_images:
            np.testing.assert_array_equal(one.item_image(index), other.item_image(index))
        if one.has_truth:
            np.testing.assert_array_equal(one.item_truth(index), other.item_truth(index))


@st.composite
def annotations(draw):
    suffix = draw(st.sampled_from(EXACT_SUFFIXES))
    rank = 2 if suffix == ".png" else draw(st.sampled_from([2, 3]))
    items, raters, classes = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(2, 4))
    labels = st.sampled_from([*range(classes), 255])
    shapes = [draw(hnp.array_shapes(min_dims=rank, max_dims=rank, max_side=4)) for _ in range(items)]
    masks = [draw(hnp.arrays(np.uint8, (raters, *shape), elements=labels)) for shape in shapes]
    truth = [draw(hnp.arrays(np.uint8, shape, elements=labels)) for shape in shapes]
    whole = st.integers(0, 255)
    channels = draw(st.sampled_from([1, 3]))
    images = [draw(hnp.arrays(np.uint8, (channels, *shape), elements=whole)).astype(np.float32) for shape in shapes]
    return suffix, Annotations.from_masks(
        masks,
        images=images if draw(st.booleans()) else None,
        truth=truth if draw(st.booleans()) else None,
        classes=["Hintergrund", "Läsion", "血管", "Ödem"][:classes],
        items=[f"Fall {number}" for number in range(items)],
        raters=[f"Dr. {letter}" for letter in "ABC"[:raters]],
        groups=["p"] * items if draw(st.booleans()) else None,
        rater_info={"Dr. A": {"years": 7}},
    )


@settings(max_examples=30, deadline=None)
@given(example=annotations())
def test_a_case_folder_gives_back_what_was_written(tmp_path_factory, example):
    suffix, given_ = example
    folder = write_case_folder(tmp_path_factory.mktemp("cases") / "new", given_, suffix)
    _equal(load(folder), given_)


def test_images_that_nobody_labelled_come_back_too(tmp_path):
    nobody = Annotations.from_masks(
        np.full((2, 2, 5, 4), 255, dtype=np.uint8), images=np.zeros((2, 1, 5, 4), np.float32), classes=["a", "b"]
    )
    _equal(load(write_case_folder(tmp_path / "new", nobody)), nobody)


def test_a_case_folder_keeps_format_and_geometry(tmp_path, put):
    for case in "ab":
        put(tmp_path / f"c/images/{case}.nii.gz", np.random.default_rng(0).random((4, 5, 6)), AFFINE)
        put(tmp_path / f"c/raters/ann/{case}.nii.gz", np.ones((4, 5, 6), np.uint8), AFFINE)
    (tmp_path / "c/raters/idle").mkdir()
    found = load(tmp_path / "c")
    folder = write_case_folder(tmp_path / "new", found)
    assert {path.name for path in folder.rglob("*.*")} == {"a.nii.gz", "b.nii.gz", "dataset.json"}
    np.testing.assert_array_equal(nibabel.load(folder / "raters/ann/a.nii.gz").affine, AFFINE)
    _equal(load(folder), found)


def test_the_folders_of_others_are_left_alone(tmp_path, cases):
    found = load(cases)
    before = {path: path.read_bytes() for path in cases.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match="already holds files"):
        write_case_folder(cases, found)
    with pytest.raises(InputError, match=r"Unknown suffix '\.jpg'\. Known: \.nii"):
        write_case_folder(tmp_path / "new", found, ".jpg")
    with pytest.raises(InputError, match="label table"):
        write_case_folder(tmp_path / "new", Annotations.from_answers(np.array([[0, 1]])))
    assert not (tmp_path / "new").exists()
    assert {path: path.read_bytes() for path in cases.rglob("*") if path.is_file()} == before


# -- whole or not at all ------------------------------------------------------------------------------------------


def test_a_failed_write_leaves_the_old_file_and_no_debris(tmp_path):
    target = tmp_path / "result.json"
    target.write_text("old")
    with pytest.raises(ZeroDivisionError), atomic(target) as temporary:
        temporary.write_text("half") / 0
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("name", ["a.nii.gz", "case.1.2.nii.gz", "a.png", "notes", "a.tar.gz"])
def test_temporary_names_keep_the_suffix_and_are_hidden(tmp_path, name):
    with atomic(tmp_path / name) as temporary:
        assert temporary.name.startswith(".")
        assert temporary.parent == tmp_path
        assert "".join(temporary.suffixes) in name
        temporary.touch()
    assert (tmp_path / name).exists()


def test_long_names_and_missing_folders_are_fine(tmp_path):
    target = tmp_path / "new" / "folder" / ("x" * 240 + ".npy")
    with atomic(target) as temporary:
        temporary.write_bytes(b"1")
    assert target.read_bytes() == b"1"


def test_failures_of_the_disk_name_the_file(tmp_path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(AnnotruthError, match=r"file.inside\.txt: could not be written"),
        atomic(tmp_path / "file/inside.txt"),
    ):
        pass


def test_fresh_folder_refuses_a_folder_with_files(tmp_path):
    (tmp_path / "old.txt").write_text("mine")
    with pytest.raises(InputError, match=r"already holds files \(old.txt\); choose another folder or pass --overwrite"):
        fresh_folder(tmp_path)
    assert fresh_folder(tmp_path, overwrite=True) == tmp_path
    assert (tmp_path / "old.txt").read_text() == "mine"


def test_fresh_folder_takes_new_and_empty_folders(tmp_path):
    made = fresh_folder(tmp_path / "a" / "b")
    assert made.is_dir()
    (made / ".DS_Store").touch()
    assert fresh_folder(made) == made


def test_fresh_folder_refuses_a_file(tmp_path):
    (tmp_path / "x").touch()
    with pytest.raises(InputError, match="is a file"):
        fresh_folder(tmp_path / "x")
