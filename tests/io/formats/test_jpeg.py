"""JPEG: pictures in grey and in colour, upright; never masks."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import ExifTags, Image, ImageOps

from annotruth import load
from annotruth.errors import InputError
from annotruth.io import check, files, load_images, write_case_folder, write_mask, write_probabilities, writing

RNG = np.random.default_rng(0)
SMOOTH = np.linspace(0, 255, 12 * 20).reshape(12, 20).astype(np.uint8)


def save(path: Path, pixels: np.ndarray, orientation: int | None = None) -> Path:
    exif = Image.Exif()
    if orientation is not None:
        exif[ExifTags.Base.Orientation] = orientation
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, quality=95, exif=exif)
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Answers on three pictures in the folder ``pictures``, all of a size once they are upright."""
    rows = [f"{item},{rater},{label}" for item, label in zip("abc", "xyx") for rater in ("ann", "bob")]
    (tmp_path / "labels.csv").write_text("\n".join(["item,rater,label", *rows]))
    save(tmp_path / "pictures" / "a.jpg", SMOOTH)
    save(tmp_path / "pictures" / "b.JPEG", SMOOTH.T, orientation=6)
    save(tmp_path / "pictures" / "c.jpeg", SMOOTH)
    return tmp_path / "labels.csv"


@pytest.mark.parametrize("channels", [1, 3])
def test_grey_and_colour(tmp_path: Path, channels: int) -> None:
    pixels = np.stack([SMOOTH, SMOOTH // 2, 255 - SMOOTH])[:channels]
    path = save(tmp_path / "a.jpg", pixels[0] if channels == 1 else np.moveaxis(pixels, 0, -1))
    image = files.read_image(path, 2, "")
    assert image.dtype == np.float32
    assert files.image_header(path, 2, "").shape == image.shape == (channels, 12, 20)
    assert np.abs(image - pixels).mean() < 6


def test_print_colours_become_red_green_blue(tmp_path: Path) -> None:
    Image.new("CMYK", (20, 12), (0, 255, 255, 0)).save(tmp_path / "a.jpg")
    np.testing.assert_allclose(files.read_image(tmp_path / "a.jpg", 2, "")[:, 0, 0], [255, 0, 0], atol=6)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_are_turned_upright(tmp_path: Path, orientation: int) -> None:
    path = save(tmp_path / "a.jpg", RNG.integers(0, 255, (12, 20), dtype=np.uint8), orientation)
    upright = np.asarray(ImageOps.exif_transpose(Image.open(path)))
    assert files.image_header(path, 2, "").shape == (1, *upright.shape)
    assert upright.shape == ((12, 20) if orientation < 5 else (20, 12))
    np.testing.assert_array_equal(files.read_image(path, 2, "")[0], upright)


@pytest.mark.parametrize("lost", [2, 200, "all but 40", "all"])
def test_damaged_pictures_are_named(table: Path, lost: int | str) -> None:
    path = table.parent / "pictures" / "c.jpeg"
    left = {"all but 40": 40, "all": 0}.get(str(lost))
    os.truncate(path, path.stat().st_size - int(lost) if left is None else left)
    problems = [str(problem) for problem in check(table, images=path.parent)]
    assert len(problems) == 1
    assert problems[0].startswith(f"{path} (case c): cannot be read (")
    assert "The file is damaged" in problems[0]


def test_other_formats_do_not_pass_for_jpeg(tmp_path: Path) -> None:
    Image.fromarray(SMOOTH).save(tmp_path / "a.png")
    (tmp_path / "a.png").rename(tmp_path / "a.jpg")
    with pytest.raises(InputError, match=r"^here: cannot be read .* not what its suffix says"):
        files.read_image(tmp_path / "a.jpg", 2, "here")
    with pytest.raises(InputError, match=r"^here: the image has 2 axes \(12×20\), but the masks have 3"):
        files.read_image(save(tmp_path / "b.jpg", SMOOTH), 3, "here")


def test_pictures_of_a_label_table(table: Path) -> None:
    pictures = table.parent / "pictures"
    assert check(table, images=pictures) == []
    assert load(table, images=pictures).images.shape == (3, 1, 12, 20)
    assert load_images(pictures, rank=2).items == ("a", "b", "c")
    save(pictures / "c.jpeg", np.stack([SMOOTH] * 3, axis=-1))
    with pytest.raises(InputError, match=r"c\.jpeg .* size 3×12×20 .*most have 1×12×20.* save it in grey or in colour"):
        load(table, images=pictures)


def test_masks_in_jpeg_are_refused(cases: Path, mask: np.ndarray) -> None:
    (cases / "raters/bob/b.png").unlink()
    save(cases / "raters/bob/b.jpg", mask)
    with pytest.raises(InputError, match=r"b\.jpg \(case b, rater bob\): a mask cannot be a JPEG.* Save it as \.png"):
        load(cases)
    assert [problem.case for problem in check(cases)] == ["b"]


def test_results_beside_jpeg_images_are_exact(cases: Path, mask: np.ndarray, tmp_path: Path) -> None:
    for path in (cases / "images").iterdir():
        save(path.with_suffix(".jpg"), SMOOTH[:8, :9])
        path.unlink()
    found = load(cases)
    assert write_mask(tmp_path / "out", found, 0, mask).name == "a.png"
    assert write_probabilities(tmp_path / "out", found, 0, np.stack([mask, 1 - mask])).name == "a.tiff"
    again = load(write_case_folder(tmp_path / "copy", found))
    np.testing.assert_array_equal(again.images, found.images)
    np.testing.assert_array_equal(again.masks, found.masks)
    with pytest.raises(InputError, match=r"\.jpg"):
        write_case_folder(tmp_path / "other", found, suffix=".jpg")
    for write, array in ((writing.write_mask_file, mask), (writing.write_image_file, mask[None])):
        with pytest.raises(InputError, match=r"x\.jpg: .*JPEG"):
            write(tmp_path / "x.jpg", array, None)
