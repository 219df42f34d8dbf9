"""Case folders: what load gives, when it reads, and what it refuses."""

from __future__ import annotations

import pickle

import nibabel
import numpy as np
import pytest
import tifffile

import annotruth
from annotruth.errors import InputError
from annotruth.io import files as files_module
from annotruth.io import load, load_images


def test_a_sound_folder(cases, mask):
    found = load(cases)
    assert (found.items, found.raters, found.classes) == (("a", "b", "c"), ("ann", "bob"), ("0", "1"))
    assert found.kind == "masks"
    assert found.has_images
    assert not found.has_truth
    assert found.groups is None
    assert found.pixel_values is None
    assert found.sources == tuple(cases / "images" / f"{case}.png" for case in "abc")
    assert found.shape(0) == (8, 9)
    np.testing.assert_array_equal(found.masks, np.broadcast_to(mask, (3, 2, 8, 9)))
    np.testing.assert_array_equal(found.images[:, 0, 0, 0], [0, 10, 20])
    assert found.images.dtype == np.float32


def test_load_is_in_the_public_surface(cases):
    assert annotruth.load(str(cases)).items == ("a", "b", "c")


def test_a_missing_file_is_not_labelled(cases, mask):
    (cases / "raters/ann/b.png").unlink()
    found = load(cases)
    assert (found.item_masks(1)[0] == 255).all()
    np.testing.assert_array_equal(found.item_masks(1)[1], mask)
    np.testing.assert_array_equal(found.labelled(), [[True, True], [False, True], [True, True]])


def test_images_without_any_rater_are_taken(cases, put):
    put(cases / "images" / "d.png", np.zeros((4, 5), np.uint8))
    found = load(cases)
    assert found.items == ("a", "b", "c", "d")
    assert found.item_masks(3).shape == (2, 4, 5)
    assert (found.item_masks(3) == 255).all()


def test_without_images_the_first_mask_is_the_source(cases):
    for path in (cases / "images").iterdir():
        path.unlink()
    (cases / "images").rmdir()
    (cases / "raters/ann/a.png").unlink()
    found = load(cases)
    assert not found.has_images
    assert found.sources == (cases / "raters/bob/a.png", cases / "raters/ann/b.png", cases / "raters/ann/c.png")
    assert found.masks.shape == (3, 2, 8, 9)


def test_truth_where_it_is_known(cases, put, mask):
    put(cases / "truth" / "b.npy", 1 - mask)
    found = load(cases)
    np.testing.assert_array_equal(found.item_truth(1), 1 - mask)
    assert (found.item_truth(0) == 255).all()


def test_pixels_are_read_late_and_in_other_processes(cases, describe, monkeypatch):
    describe(cases, classes=["background", "lesion"], missing=255)
    reads = []
    original = files_module.read_mask
    monkeypatch.setattr(files_module, "read_mask", lambda *given: reads.append(given) or original(*given))
    found = load(cases)
    found.shape(1), found.same_shape, found.take([0])
    assert not reads
    found.item_masks(0)
    assert len(reads) == 2
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.masks, found.masks)
    np.testing.assert_array_equal(again.images, found.images)


def test_named_classes_are_trusted_after_the_first_mark(cases, describe, put):
    describe(cases, classes=["background", "lesion"])
    put(cases / "raters/bob/c.png", np.full((8, 9), 7, np.uint8))
    found = load(cases)
    with pytest.raises(
        InputError, match=r"bob.c\.png \(case c, rater bob\): label 7 lies outside the classes \(0 to 1"
    ):
        found.item_masks(2)


def test_classes_without_dataset_json_are_0_to_the_highest(cases, put):
    put(cases / "raters/bob/c.png", np.full((8, 9), 3, np.uint8))
    assert load(cases).classes == ("0", "1", "2", "3")


def test_everything_empty_still_has_two_classes(cases, put):
    for rater in ("ann", "bob"):
        for case in "abc":
            put(cases / "raters" / rater / f"{case}.png", np.zeros((8, 9), np.uint8))
    assert load(cases).classes == ("0", "1")


def test_dataset_json_is_heeded(cases, describe, put, mask):
    describe(
        cases, classes={"Hintergrund": 0, "Läsion": 200}, channels=["CT"], raters={"ann": {"years": 12}},
        groups={"a": "p1", "b": "p1", "c": 2}, missing=9,
    )  # fmt: skip
    pixels = np.where(mask == 1, 200, 0).astype(np.uint8)
    pixels[0, 0] = 9
    for rater in ("ann", "bob"):
        for case in "abc":
            put(cases / "raters" / rater / f"{case}.png", pixels)
    found = load(cases)
    assert found.classes == ("Hintergrund", "Läsion")
    assert found.groups == ("p1", "p1", "2")
    assert found.rater_info == {"ann": {"years": 12}}
    assert found.pixel_values == {0: 0, 1: 200, 255: 9}
    expected = mask.copy()
    expected[0, 0] = 255
    np.testing.assert_array_equal(found.item_masks(0), [expected, expected])


def test_pixel_values_below_zero_and_above_a_byte(cases, describe, put, mask):
    describe(cases, classes={"background": 0, "lesion": 1000}, missing=-1)
    for rater in ("ann", "bob"):
        for case in "abc":
            (cases / "raters" / rater / f"{case}.png").unlink()
            pixels = np.where(mask == 1, 1000, 0).astype(np.int16)
            pixels[0] = -1
            put(cases / "raters" / rater / f"{case}.npy", pixels)
    expected = mask.copy()
    expected[0] = 255
    np.testing.assert_array_equal(load(cases).item_masks(0)[0], expected)
    put(cases / "raters/ann/a.npy", np.full((8, 9), 70000))
    with pytest.raises(InputError, match=r"a\.npy \(case a, rater ann\): pixel value 70000 means nothing here"):
        load(cases).item_masks(0)


def test_no_value_is_missing_if_dataset_json_says_null(cases, describe, put):
    describe(cases, classes=["background", "lesion"], missing=None)
    put(cases / "raters/ann/a.png", np.full((8, 9), 255, np.uint8))
    with pytest.raises(InputError, match="pixel value 255 means nothing here"):
        load(cases).item_masks(0)


@pytest.mark.parametrize("classes", [None, ["healthy", "ill"]])
def test_masks_of_0_and_255_are_explained(cases, describe, put, mask, classes):
    if classes:
        describe(cases, classes=classes)
    for rater in ("ann", "bob"):
        for case in "abc":
            put(cases / "raters" / rater / f"{case}.png", mask * 255)
    names = classes or ["background", "marked"]
    with pytest.raises(InputError) as caught:
        load(cases)
    assert "raters: the masks hold only 0 and 255" in str(caught.value)
    assert f'{{"classes": {{"{names[0]}": 0, "{names[1]}": 255}}}}' in str(caught.value)
    describe(cases, classes={names[0]: 0, names[1]: 255})
    np.testing.assert_array_equal(load(cases).item_masks(0)[0], mask)
    describe(cases, missing=255)
    assert set(np.unique(load(cases).masks)) == {0, 255}


def test_masks_of_0_and_another_value_are_explained_too(cases, put, mask):
    for rater in ("ann", "bob"):
        for case in "abc":
            put(cases / "raters" / rater / f"{case}.png", mask * 128)
    with pytest.raises(InputError, match=r'hold only 0 and 128, but .*"classes": \{"background": 0, "marked": 128\}'):
        load(cases)


def test_system_files_are_no_cases(cases):
    for name in ("._a.png", ".DS_Store", "Thumbs.db", "desktop.ini"):
        (cases / "images" / name).touch()
        (cases / "raters" / "ann" / name).touch()
    (cases / "raters" / ".DS_Store").touch()
    assert load(cases).items == ("a", "b", "c")


def _move_away(folder, name):
    (folder / name).rename(folder.parent / "away")


SPOILT = {
    "no folder": (lambda f, put: _move_away(f, "."), r"cases: there is no such file or folder"),
    "no raters/": (lambda f, put: _move_away(f, "raters"), r"cases: there is no raters/ folder.*raters/<rater>/<case>"),
    "no image": (lambda f, put: [p.unlink() for p in (f / "images").iterdir()], r"images: the folder holds no image"),
    "no rater": (
        lambda f, put: (_move_away(f, "raters"), (f / "raters").mkdir()),
        r"raters: there is no rater's folder",
    ),
    "no mask": (lambda f, put: [p.unlink() for p in f.glob("raters/*/*")], r"raters: no rater labelled anything"),
    "stray mask": (lambda f, put: put(f / "raters/a.png", np.zeros((8, 9), np.uint8)), r"a\.png: the file lies in no"),
    "unknown format": (lambda f, put: (f / "images/d.psd").touch(), r"d\.psd: not a file of a known format.*\.nii\.gz"),
    "folder in a folder": (lambda f, put: (f / "images/d.png").mkdir(), r"d\.png: not a file of a known format"),
    "no image for a mask": (
        lambda f, put: put(f / "raters/bob/z.png", np.zeros((8, 9), np.uint8)),
        r"bob.z\.png \(case z, rater bob\): there is a mask, but images/ holds no image",
    ),
    "no image for a truth": (
        lambda f, put: put(f / "truth/z.png", np.zeros((8, 9), np.uint8)),
        r"truth.z\.png \(case z\): there is a mask, but images/ holds no image",
    ),
    "the same case twice": (
        lambda f, put: put(f / "raters/bob/a.npy", np.zeros((8, 9), np.uint8)),
        r"a\.png \(case a, rater bob\): the case is there twice, also as a\.npy",
    ),
    "another size": (
        lambda f, put: put(f / "raters/bob/b.png", np.zeros((8, 7), np.uint8)),
        r"bob.b\.png \(case b, rater bob\): the mask has size 8×7 but the image has 8×9",
    ),
    "truth of another size": (
        lambda f, put: put(f / "truth/b.png", np.zeros((8, 7), np.uint8)),
        r"truth.b\.png \(case b\): the mask has size 8×7",
    ),
    "another rank": (
        lambda f, put: [(f / "raters/bob/b.png").unlink(), put(f / "raters/bob/b.npy", np.zeros((8, 9, 2), np.uint8))],
        r"bob.b\.npy \(case b, rater bob\): the mask has size 8×9×2",
    ),
    "damaged head": (
        lambda f, put: (f / "images/c.png").write_bytes(b"nonsense"),
        r"images.c\.png \(case c\): cannot be read",
    ),
    "probabilities": (
        lambda f, put: [(f / "raters/bob/b.png").unlink(), put(f / "raters/bob/b.npy", np.full((8, 9), 0.3))],
        r"bob.b\.npy \(case b, rater bob\): labels must be whole numbers, found 0\.3",
    ),
    "too high a label": (
        lambda f, put: put(f / "raters/bob/b.png", np.full((8, 9), 4000, np.uint16)),
        r"bob.b\.png \(case b, rater bob\): label 4000 lies outside the classes",
    ),
}


@pytest.mark.parametrize("how", SPOILT)
def test_what_is_wrong_is_named(cases, put, how):
    spoil, message = SPOILT[how]
    spoil(cases, put)
    before = {path: path.read_bytes() for path in cases.parent.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match=message):
        load(cases)
    assert {path: path.read_bytes() for path in cases.parent.rglob("*") if path.is_file()} == before


def test_what_is_wrong_with_pixels_is_named_when_they_are_read(cases, put, describe):
    describe(cases, classes=["background", "lesion"])
    whole = (cases / "raters/bob/b.png").read_bytes()
    (cases / "raters/bob/b.png").write_bytes(whole[:50])
    (cases / "images/b.png").unlink()
    put(cases / "images/b.npy", np.full((8, 9), np.nan))
    found = load(cases)
    with pytest.raises(InputError, match=r"b\.npy \(case b\): the image holds 72 non-finite values"):
        found.item_image(1)
    with pytest.raises(InputError, match=r"bob.b\.png \(case b, rater bob\): cannot be read"):
        found.item_masks(1)
    put(cases / "raters/bob/c.png", np.zeros((1, 1), np.uint8))
    with pytest.raises(InputError, match=r"c\.png \(case c, rater bob\): the mask has size 1×1 but the case, when"):
        found.item_masks(2)


def test_cases_of_different_size_and_volumes_of_several_channels(tmp_path, put):
    for case, depth in (("a", 4), ("b", 6)):
        put(tmp_path / f"images/{case}.nii.gz", np.ones((3, 5, depth, 2), np.int16))
        put(tmp_path / f"raters/ann/{case}.nii.gz", np.ones((3, 5, depth), np.uint8))
    found = load(tmp_path)
    assert [found.item_image(i).shape for i in (0, 1)] == [(2, 3, 5, 4), (2, 3, 5, 6)]
    assert [found.item_masks(i).shape for i in (0, 1)] == [(1, 3, 5, 4), (1, 3, 5, 6)]
    assert not found.same_shape


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.uint16, np.int32, np.float32])
def test_label_maps_of_itk_snap_are_masks_as_they_are(tmp_path, put, kind):
    """NIfTI of whatever numbers, and a description of the labels, which is no mask."""
    labels = np.zeros((3, 5, 4), dtype=kind)
    labels[1, 2:4, 1:3], labels[0, 0, 0] = 2, 1
    put(tmp_path / "images/p.nii.gz", np.ones((3, 5, 4), np.float32))
    for rater in ("ann", "bob"):
        put(tmp_path / f"raters/{rater}/p.nii.gz", labels)
    (tmp_path / "labels.txt").write_text('0 0 0 0 0 0 0 "Clear Label"\n2 255 0 0 1 1 1 "tumour"\n')
    found = load(tmp_path)
    assert (found.items, found.raters) == (("p",), ("ann", "bob"))
    np.testing.assert_array_equal(found.item_masks(0), np.stack([labels, labels]))


def test_images_alone(cases, tmp_path, put, mask, describe):
    flat = load_images(cases / "images", rank=2, classes=["background", "lesion"])
    assert (flat.items, flat.raters, flat.classes) == (("a", "b", "c"), (), ("background", "lesion"))
    assert flat.images.shape == (3, 1, 8, 9)
    assert flat.item_masks(0).shape == (0, 8, 9)
    assert load_images(cases / "images" / "a.png", rank=2).items == ("a",)
    describe(cases, raters={"ann": {"years": 3}})
    assert load_images(cases, rank=2).items == ("a", "b", "c")
    put(cases / "truth/a.png", mask)
    with_truth = load_images(cases)
    np.testing.assert_array_equal(with_truth.item_truth(0), mask)
    assert with_truth.classes == ("0", "1")
    put(cases / "truth/a.png", mask * 255)
    with pytest.raises(InputError, match="truth: the masks hold only 0 and 255"):
        load_images(cases)


@pytest.mark.parametrize(
    ("path", "message"),
    [("images", "give the number of spatial axes"), ("nowhere", "no such folder"), ("raters", "not a file of a known")],
)
def test_images_that_cannot_be_taken(cases, path, message):
    with pytest.raises(InputError, match=message):
        load_images(cases / path)


# -- spacing: where files have it ---------------------------------------------------------------------------------


def test_spacing_of_nifti_follows_the_affine(tmp_path, put):
    volume = np.zeros((4, 5, 6), dtype=np.uint8)
    volume[1] = 1
    turned = np.array([[0, 0, 2.5, 1], [0.5, 0, 0, 2], [0, -1.5, 0, 3], [0, 0, 0, 1]])
    for case, affine in (("a", np.diag([0.7, 0.8, 3, 1])), ("b", turned)):
        put(tmp_path / f"images/{case}.nii.gz", volume.astype(np.int16), affine)
        put(tmp_path / f"raters/ann/{case}.nii.gz", volume, affine)
        put(tmp_path / f"raters/bob/{case}.nii.gz", volume, affine)
    found = load(tmp_path)
    np.testing.assert_allclose(found.spacing(0), (0.7, 0.8, 3), rtol=1e-6)
    np.testing.assert_allclose(found.spacing(1), (0.5, 1.5, 2.5), rtol=1e-6)
    assert found.take([1]).spacing(0) == found.spacing(1)
    assert load_images(tmp_path / "images", rank=3).spacing(1) == found.spacing(1)


def test_spacing_of_the_masks_where_images_have_none(tmp_path, put, mask):
    put(tmp_path / "images/a.png", mask)
    put(tmp_path / "raters/ann/a.nii.gz", mask, np.diag([0.5, 2, 1, 1]))
    put(tmp_path / "raters/bob/a.npy", mask)
    put(tmp_path / "images/b.png", mask)
    put(tmp_path / "raters/bob/b.npy", mask)
    found = load(tmp_path)
    assert [found.spacing(index) for index in (0, 1)] == [(0.5, 2.0), None]


def test_png_and_npy_have_no_spacing(cases):
    assert [load(cases).spacing(index) for index in range(3)] == [None] * 3


@pytest.mark.parametrize(("step", "expected"), [(2, (1, 1, 2)), (0, None), (np.nan, None), (np.inf, None)])
def test_an_affine_that_is_no_map_of_space_gives_no_spacing(tmp_path, step, expected):
    (tmp_path / "raters/ann").mkdir(parents=True)
    file = nibabel.Nifti1Image(np.zeros((4, 5, 6), dtype=np.uint8), np.eye(4))
    file.header["qform_code"], file.header["sform_code"] = 0, 2
    file.header["srow_z"] = [0, 0, step, 0]
    with (tmp_path / "raters/ann/a.nii").open("wb") as stream:
        file.header.write_to(stream)
        stream.write(bytes(4) + bytes(4 * 5 * 6))
    assert load(tmp_path).spacing(0) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"imagej": True, "resolution": (20, 10), "metadata": {"axes": "ZYX", "unit": "mm", "spacing": 3.0}},
         (3, 0.1, 0.05)),
        ({"imagej": True, "resolution": (2, 2), "metadata": {"axes": "ZYX", "unit": "um", "spacing": 1.5}},
         (0.0015, 0.0005, 0.0005)),
        ({"imagej": True, "resolution": (20, 10), "metadata": {"axes": "ZYX", "unit": "mm"}}, None),
        ({"imagej": True, "resolution": (20, 10), "metadata": {"axes": "ZYX", "unit": "pixel", "spacing": 3.0}}, None),
        ({"imagej": True, "metadata": {"axes": "ZYX"}}, None),
        ({"resolution": (300, 300), "resolutionunit": "INCH", "metadata": {"axes": "ZYX"}}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_spacing_of_tiff_only_where_a_unit_of_length_is_told(tmp_path, written, expected):
    (tmp_path / "raters/ann").mkdir(parents=True)
    tifffile.imwrite(
        tmp_path / "raters/ann/a.tif", np.eye(5, dtype=np.uint8)[None].repeat(4, 0), photometric="minisblack", **written
    )
    found = load(tmp_path).spacing(0)
    assert (found is None) == (expected is None)
    if expected is not None:
        np.testing.assert_allclose(found, expected)
