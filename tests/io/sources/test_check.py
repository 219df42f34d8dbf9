"""check lists every problem of every file in one go, by the rules of load."""

from __future__ import annotations

import gzip
import os
import shutil

import numpy as np
import pytest
from PIL import Image

from annotruth.errors import InputError
from annotruth.io import check, find_source, load


def _found(problems, severity=None):
    """(file name, case, rater, start of the message) of each problem."""
    return {
        (problem.file.name, problem.case, problem.rater, " ".join(problem.message.split()[:5]))
        for problem in problems
        if severity in (None, problem.severity)
    }


def test_a_sound_folder_has_no_problem(cases):
    told = []
    assert check(cases, progress=lambda done, total: told.append((done, total))) == []
    assert told == [(done, 9) for done in (2, 4, 6, 7, 8, 9)]  # the masks of a case at once, then each image


def test_many_broken_files_are_all_listed_in_one_go(cases, put, mask, describe):
    for case in "defghi":
        put(cases / f"images/{case}.png", np.zeros((8, 9), np.uint8))
        for rater in ("ann", "bob"):
            put(cases / f"raters/{rater}/{case}.png", mask)
    put(cases / "raters/ann/a.png", mask[:, :5])
    (cases / "raters/ann/b.png").write_bytes((cases / "raters/bob/b.png").read_bytes()[:50])
    put(cases / "raters/ann/c.png", np.dstack([mask] * 3))
    put(cases / "raters/ann/d.png", mask * 7)
    (cases / "raters/ann/e.png").unlink()
    put(cases / "raters/ann/e.npy", mask * 0.5)
    put(cases / "raters/ann/f.npy", mask)
    put(cases / "raters/ann/z.png", mask)
    put(cases / "raters/bob/g.png", mask * 0)
    put(cases / "raters/bob/h.png", mask * 0 + 255)
    (cases / "images/h.png").unlink()
    put(cases / "images/h.npy", np.full((8, 9), np.inf))
    (cases / "images/i.png").write_bytes(b"nonsense")
    put(cases / "images/j.png", np.zeros((8, 9, 3), np.uint8))
    put(cases / "truth/a.png", mask * 9)
    (cases / "images/k.psd").touch()
    (cases / "raters/cy").mkdir()
    describe(cases, classes=["background", "lesion"], raters={"dan": {}})

    problems = check(cases)
    assert _found(problems, "fatal") == {
        ("a.png", "a", "ann", "the mask has size 8×5"),
        ("b.png", "b", "ann", "cannot be read (Truncated File"),
        ("c.png", "c", "ann", "the mask has 3 colour"),
        ("d.png", "d", "ann", "label 7 lies outside the"),
        ("e.npy", "e", "ann", "labels must be whole numbers,"),
        ("f.png", "f", "ann", "the case is there twice,"),
        ("z.png", "z", "ann", "there is a mask, but"),
        ("h.npy", "h", None, "the image holds 72 non-finite"),
        ("i.png", "i", None, "cannot be read (cannot identify"),
        ("a.png", "a", None, "label 9 lies outside the"),
        ("j.png", "j", None, "the image has 3 channels,"),
        ("k.psd", None, None, "not a file of a"),
        ("dataset.json", None, None, "raters names raters the folder"),
    }
    assert _found(problems, "warning") == {
        ("g.png", "g", "bob", "the mask is empty: every"),
        ("h.png", "h", "bob", "the mask is empty: no"),
        ("j.png", "j", None, "no rater labelled this image."),
        ("cy", None, "cy", "the rater labelled nothing."),
    }
    assert [problem.severity for problem in problems] == ["fatal"] * 13 + ["warning"] * 4


def test_what_check_finds_load_refuses_in_the_same_words(cases, put, mask):
    put(cases / "raters/ann/a.png", mask[:, :5])
    [problem] = check(cases)
    assert (problem.message, problem.advice) == (
        "the mask has size 8×5 but the image has 8×9.",
        "Resample the mask to that grid.",
    )
    with pytest.raises(InputError) as refused:
        load(cases)
    assert str(refused.value) == str(problem)


def test_damaged_nifti_files(tmp_path, put):
    volume = np.random.default_rng(0).integers(0, 2, (20, 20, 20)).astype(np.uint8)
    for case in "abc":
        put(tmp_path / f"images/{case}.nii.gz", volume.astype(np.int16))
        for rater in ("ann", "bob"):
            put(tmp_path / f"raters/{rater}/{case}.nii.gz", volume)
    cut = tmp_path / "raters/ann/a.nii.gz"
    cut.write_bytes(cut.read_bytes()[:-200])
    short = tmp_path / "images/b.nii.gz"
    short.write_bytes(gzip.compress(gzip.decompress(short.read_bytes())[:-200]))
    (tmp_path / "raters/bob/c.nii.gz").write_bytes(b"not gzip")
    problems = check(tmp_path)
    assert {(p.file.name, p.case, p.rater) for p in problems} == {
        ("a.nii.gz", "a", "ann"), ("b.nii.gz", "b", None), ("c.nii.gz", "c", "bob"),
    }  # fmt: skip
    assert all(problem.message.startswith("cannot be read") for problem in problems)


def test_0_and_255_are_one_problem_of_the_folder(cases, put, mask):
    for path in (cases / "raters").glob("*/*"):
        put(path, mask * 255)
    fatal = [problem for problem in check(cases) if problem.severity == "fatal"]
    assert [(problem.file, problem.case) for problem in fatal] == [(cases / "raters", None)]
    assert '{"classes": {"background": 0, "marked": 255}}' in fatal[0].advice


def test_a_broken_dataset_json_hides_nothing_else(cases, put, mask):
    (cases / "dataset.json").write_text("{")
    put(cases / "raters/ann/a.png", mask[:, :5])
    assert {problem.file.name for problem in check(cases)} == {"dataset.json", "a.png"}


def test_one_rater_and_unused_classes_are_warnings(cases, describe):
    for path in (cases / "raters/bob").iterdir():
        path.unlink()
    (cases / "raters/bob").rmdir()
    describe(cases, classes=["background", "lesion", "vessel"])
    problems = check(cases)
    assert _found(problems) == {
        ("cases", None, "ann", "ann is the only rater:"),
        ("cases", None, None, "no mask holds the classes"),
    }
    assert {problem.severity for problem in problems} == {"warning"}
    assert load(cases).raters == ("ann",)


def test_without_a_single_sound_mask_check_still_ends(cases):
    for path in (cases / "raters").glob("*/*"):
        path.write_bytes(b"nonsense")
    assert len(check(cases)) == 6


@pytest.mark.parametrize("name", ["nowhere", "a.zip"])
def test_paths_that_are_no_data_set(tmp_path, name):
    (tmp_path / "a.zip").touch()
    [problem] = check(tmp_path / name)
    assert problem.severity == "fatal"
    assert problem.file == tmp_path / name
    with pytest.raises(InputError, match=name):
        load(tmp_path / name)


def test_check_leaves_everything_as_it_was(cases):
    Image.new("RGB", (3, 3)).save(cases / "raters/ann/a.png")
    before = {path: path.read_bytes() for path in cases.rglob("*") if path.is_file()}
    check(cases)
    assert {path: path.read_bytes() for path in cases.rglob("*") if path.is_file()} == before


def test_every_problem_of_a_table(tmp_path):
    table = tmp_path / "answers.csv"
    table.write_text("item,rater,label\na,ann,cat\na,ann,dog\n,ann,cat\nb,,cat\nc,bob,\nd,bob,\n")
    messages = [problem.message for problem in check(table)]
    assert messages == [
        "row 3 has no item.",
        "row 4 has no rater.",
        "2 rows (5, 6) have no label.",
        "The same rater gave the same item different labels: a by ann (cat and dog).",
    ]
    with pytest.raises(InputError, match=r"answers\.csv: row 3 has no item"):
        load(table)


def test_warnings_of_a_table(tmp_path):
    table = tmp_path / "answers.csv"
    table.write_text("item,rater,label\na,ann,cat\nb,ann,cat\n")
    assert _found(check(table), "warning") == {
        ("answers.csv", None, "ann", "ann is the only rater:"),
        ("answers.csv", None, None, "every answer is cat."),
    }
    table.write_text("item,label\na,cat\n")
    assert [problem.message[:26] for problem in check(table)] == ["there is no column 'rater'"]


def test_what_is_no_plain_file_is_named_and_not_opened(cases, tmp_path):
    os.mkfifo(cases / "images" / "d.png")
    (cases / "raters" / "ann" / "e.png").symlink_to("/dev/zero")
    fatal = _found(check(cases), "fatal")
    assert ("d.png", "d", None, "this is a pipe, not") in fatal
    assert ("e.png", "e", "ann", "this is a device, not") in fatal
    with pytest.raises(InputError, match="this is a"):
        load(cases)


@pytest.mark.parametrize("name", ["a\nb", "a|b", "a<b", 'a"b', "a:b"])
def test_a_case_whose_results_could_not_be_written_is_refused_before_anything_is_fused(cases, put, mask, name):
    for folder in ("images", "raters/ann", "raters/bob"):
        put(cases / folder / f"{name}.png", mask)
    assert any("cannot give a file its name" in str(problem) for problem in check(cases))
    with pytest.raises(InputError, match="cannot give a file its name"):
        load(cases)


def test_names_in_another_encoding_are_refused(cases, mask):
    bad = os.fsdecode(b"caf\xe9")
    shutil.copytree(cases / "raters" / "ann", cases / "raters" / bad)
    shutil.copy(cases / "images" / "a.png", cases / "images" / f"{bad}.png")
    messages = [problem.message for problem in check(cases) if problem.severity == "fatal"]
    assert "the rater 'caf\\udce9' is not written in UTF-8." in messages
    assert "the case 'caf\\udce9' is not written in UTF-8." in messages
    with pytest.raises(InputError, match="not written in UTF-8"):
        load(cases)


def test_images_of_complex_numbers_are_refused(cases):
    (cases / "images" / "a.png").unlink()
    np.save(cases / "images" / "a.npy", np.zeros((8, 9), dtype=np.complex64))
    assert ("a.npy", "a", None, "the image holds complex64 values.") in _found(check(cases), "fatal")
    with pytest.raises(InputError, match="complex64"):
        load(cases).item_image(0)


def test_images_of_mixed_channels_are_refused_but_fusion_needs_none(cases):
    Image.fromarray(np.zeros((8, 9, 3), np.uint8)).save(cases / "images" / "a.png")
    assert ("a.png", "a", None, "the image has 3 channels,") in _found(check(cases), "fatal")
    with pytest.raises(InputError, match="the image has 3 channels, most have 1"):
        load(cases)
    assert find_source(cases).load_sound(cases)[1] == []
