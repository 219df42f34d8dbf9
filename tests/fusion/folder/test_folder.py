"""Case folders and label tables on disk: the truth that estimators give, known truth, bad cases set aside."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from PIL import Image

import annotruth as at
from annotruth.errors import InputError
from annotruth.fusion.checks import noisy_masks
from annotruth.fusion.folder import fuse
from annotruth.fusion.registry import make_estimator, method_names
from annotruth.io import write_case_folder

RATERS = ["ann", "bob", "cy", "di", "ed"]

Read = Callable[[Path], dict[str, Any]]

CASES = ["case_0", "case_1", "case_2"]
NEEDED = {"kos": {"foreground": "land"}, "ordinal-dawid-skene": {"ordered": True}}
"""What these methods must be told of three classes without an order."""


def write_images(cases: Path) -> None:
    (cases / "images").mkdir()
    for case in CASES:
        np.save(cases / "images" / f"{case}.npy", np.random.default_rng(0).normal(size=(1, 24, 20)).astype(np.float32))


@pytest.mark.parametrize("scope", ["dataset", "case"])
@pytest.mark.parametrize("method", method_names())
def test_results_are_the_estimators(note: Read, cases: Path, out: Path, method: str, scope: str) -> None:
    options = NEEDED.get(method, {})
    if make_estimator(method).looks_at_images:
        write_images(cases)
    fusion = fuse(cases, out, method, scope=scope, options=options)
    expected = make_estimator(method, scope, options).fit(at.load(cases))
    assert fusion.set_aside == fusion.warnings == []
    for index, name in enumerate(CASES):
        np.testing.assert_array_equal(np.load(out / "labels" / f"{name}.npy"), expected.predict_item(index))
        posterior = np.load(out / "probabilities" / f"{name}.npy")
        np.testing.assert_array_equal(posterior, expected.predict_proba_item(index))
    np.testing.assert_array_equal(fusion.fused.confusion_, expected.confusion_)
    content = note(out)
    np.testing.assert_array_equal(content["confusion"], expected.confusion_)
    np.testing.assert_array_equal(content["prior"], expected.prior_)
    np.testing.assert_array_equal(content["log_likelihood"], getattr(expected, "log_likelihood_", []))
    assert content["n_iter"] == getattr(expected, "n_iter_", 0)
    if scope == "case":
        np.testing.assert_array_equal(content["case_confusion"]["case_2"], expected.case_confusion_[2])


def test_smoothed_and_one_class_results_are_the_estimators(note: Read, cases: Path, tmp_path: Path) -> None:
    for number, options in enumerate([{"smoothing": 0.5}, {"foreground": "land", "exclude_consensus": True}]):
        out = tmp_path / str(number)
        fuse(cases, out, options=options)
        expected = at.STAPLE(**options).fit(at.load(cases))
        np.testing.assert_array_equal(np.load(out / "labels" / "case_1.npy"), expected.predict_item(1))
        posterior = np.load(out / "probabilities" / "case_1.npy")
        np.testing.assert_array_equal(posterior, expected.predict_proba_item(1))
    assert note(out)["classes"] == ["not land", "land"]
    assert note(out)["pixel_values"] == {"not land": 0, "land": 1}


def test_models_with_images_ask_for_them_before_anything_is_made(cases: Path, out: Path) -> None:
    with pytest.raises(InputError, match="NonLocalSTAPLE needs the images"):
        fuse(cases, out, "non-local-staple")
    with pytest.raises(InputError, match="ranking='atlases' needs the images"):
        fuse(cases, out, "steps", options={"ranking": "atlases"})
    assert not out.exists()
    write_images(cases)
    with pytest.raises(InputError, match="6 channels"):
        fuse(cases, out, "non-local-staple", options={"atlases": True})


def test_distances_in_a_folder_know_the_spacing(tmp_path: Path, out: Path) -> None:
    nibabel = pytest.importorskip("nibabel")
    rng = np.random.default_rng(0)
    for rater in ("ann", "bob", "cy"):
        (tmp_path / "cases" / "raters" / rater).mkdir(parents=True)
        mask = (rng.random((8, 9, 5)) < 0.4).astype(np.uint8)
        image = nibabel.Nifti1Image(mask, np.diag([0.5, 0.5, 4.0, 1.0]))
        nibabel.save(image, tmp_path / "cases" / "raters" / rater / "case_0.nii.gz")
    fuse(tmp_path / "cases", out, "shape-based")
    written = np.asanyarray(nibabel.load(out / "labels" / "case_0.nii.gz").dataobj)
    annotations = at.load(tmp_path / "cases")
    assert annotations.spacing(0) == (0.5, 0.5, 4.0)
    np.testing.assert_array_equal(written, at.ShapeBasedAverage().fit(annotations).predict_item(0))
    blind = at.Annotations.from_masks(annotations.masks)
    assert (written != at.ShapeBasedAverage().fit(blind).predict_item(0)).any()


@pytest.mark.parametrize("scope", ["dataset", "case"])
@pytest.mark.parametrize("shape", [(5, 7, 6), (6, 6, 6), (9, 4)])
@pytest.mark.parametrize("method", ["staple", "majority", "graph-cut-staple"])
def test_volumes_come_back_with_their_axes_in_order(
    tmp_path: Path, out: Path, method: str, shape: tuple[int, ...], scope: str
) -> None:
    """NIfTI has its first axis run fastest, and masks are fused as they lie in memory."""
    nibabel = pytest.importorskip("nibabel")
    masks, truth = noisy_masks(shape, 2)
    known = np.where(np.random.default_rng(0).random(truth.shape) < 0.2, truth, 255).astype(np.uint8)
    whole = at.Annotations.from_masks(masks, classes=["sky", "sea", "land"], truth=known)
    write_case_folder(tmp_path / "cases", whole, ".nii.gz")
    next((tmp_path / "cases" / "raters").iterdir()).joinpath(f"{whole.items[1]}.nii.gz").unlink()  # a rater is missing
    fuse(tmp_path / "cases", out, method, scope=scope, gold=tmp_path / "cases" / "truth")
    annotations = at.load(tmp_path / "cases")
    in_rows = at.Annotations.from_masks(
        [np.ascontiguousarray(annotations.item_masks(index)) for index in range(2)],
        classes=annotations.classes, truth=[annotations.item_truth(index) for index in range(2)],
    )  # fmt: skip
    expected = make_estimator(method, scope).fit(in_rows, "truth")
    for index, item in enumerate(whole.items):
        labels, posterior = (nibabel.load(out / kind / f"{item}.nii.gz") for kind in ("labels", "probabilities"))
        np.testing.assert_array_equal(np.asanyarray(labels.dataobj), expected.predict_item(index))
        found = np.moveaxis(np.asanyarray(posterior.dataobj), -1, 0).reshape(3, *shape)
        np.testing.assert_array_equal(found, expected.predict_proba_item(index))


def test_a_table_gives_a_table(note: Read, tmp_path: Path, out: Path) -> None:
    table = tmp_path / "answers.csv"
    table.write_text("item,rater,label\na,ann,cat\na,bob,dog\na,cy,cat\nb,ann,dog\nb,bob,dog\nb,cy,dog\n")
    fuse(table, out, "dawid-skene", jobs=2)
    expected = at.DawidSkene().fit(at.load(table))
    rows = list(csv.DictReader((out / "truth.csv").open()))
    assert [row["truth"] for row in rows] == ["cat", "dog"]
    np.testing.assert_allclose([float(row["probability of dog"]) for row in rows], expected.predict_proba()[:, 1])
    rater = next(csv.DictReader((out / "raters.csv").open()))
    assert (rater["rater"], rater["labelled items"]) == ("ann", "2")
    assert note(out)["items"] == 2


def test_one_class_of_a_table_against_all_others(note: Read, tmp_path: Path, out: Path) -> None:
    table = tmp_path / "answers.csv"
    table.write_text("item,rater,label\na,ann,cat\na,bob,dog\na,cy,cat\nb,ann,dog\nb,bob,dog\nb,cy,cow\n")
    fuse(table, out, "staple", options={"foreground": "dog"})
    assert [row["truth"] for row in csv.DictReader((out / "truth.csv").open())] == ["not dog", "dog"]
    assert note(out)["classes"] == ["not dog", "dog"]


def test_known_masks_are_taken_as_they_are(cases: Path, out: Path, tmp_path: Path) -> None:
    known = np.full((24, 20), 255, dtype=np.uint8)
    known[:4] = 2
    (tmp_path / "gold").mkdir()
    np.save(tmp_path / "gold" / "case_1.npy", known)
    for number, method in enumerate(["staple", "spatial-staple"]):
        fuse(cases, out / str(number), method, gold=tmp_path / "gold")
        assert (np.load(out / str(number) / "labels" / "case_1.npy")[:4] == 2).all()
        expected = make_estimator(method).fit(at.load(cases), gold={"case_1": known})
        posterior = np.load(out / str(number) / "probabilities" / "case_1.npy")
        np.testing.assert_array_equal(posterior, expected.predict_proba_item(1))


def test_the_folders_own_truth_counts_only_as_gold(tmp_path: Path, out: Path) -> None:
    masks, truth = noisy_masks()
    folder = write_case_folder(tmp_path / "cases", at.Annotations.from_masks(masks, truth=truth))
    fuse(folder, out / "without")
    fuse(folder, out / "with", gold=folder)
    assert (np.load(out / "without" / "labels" / "item_0.npy") != truth[0]).any()
    np.testing.assert_array_equal(np.load(out / "with" / "labels" / "item_0.npy"), truth[0])


def test_known_answers(tmp_path: Path, out: Path) -> None:
    table, gold = tmp_path / "answers.csv", tmp_path / "gold.csv"
    table.write_text("item,rater,label\na,ann,cat\na,bob,cat\na,cy,cat\nb,ann,dog\nb,bob,dog\nb,cy,dog\n")
    gold.write_text("item,truth\na,dog\n")
    fuse(table, out, "majority", gold=gold)
    assert [row["truth"] for row in csv.DictReader((out / "truth.csv").open())] == ["dog", "dog"]
    for text, message in [
        ("item,truth\na,dog\na,cat\n", "a has two truths, dog and cat"),
        ("item,truth\nz,dog\n", "items that do not exist: z"),
        ("item,colour\na,red\n", "truth"),
    ]:
        gold.write_text(text)
        with pytest.raises(InputError, match=message):
            fuse(table, out, gold=gold, overwrite=True)


def test_gold_of_the_wrong_form_is_refused(cases: Path, out: Path, tmp_path: Path) -> None:
    (tmp_path / "gold.csv").write_text("item,truth\na,dog\n")
    (tmp_path / "answers.csv").write_text("item,rater,label\na,ann,cat\n")
    for source, gold, message in [
        (cases, tmp_path / "gold.csv", "folder of masks"),
        (tmp_path / "answers.csv", cases, "a table with the columns item and truth"),
        (cases, tmp_path / "nowhere", "no such file or folder of known truth"),
    ]:
        with pytest.raises(InputError, match=message):
            fuse(source, out, gold=gold)
    assert not out.exists()


def test_contradictory_and_stray_gold_masks_set_their_cases_aside(
    note: Read, cases: Path, out: Path, tmp_path: Path
) -> None:
    gold = tmp_path / "gold"
    gold.mkdir()
    for name in ("case_0.npy", "elsewhere.npy"):
        np.save(gold / name, np.zeros((24, 20), dtype=np.uint8))
    Image.fromarray(np.ones((24, 20), dtype=np.uint8)).save(gold / "case_0.png")
    with pytest.raises(InputError, match="truth of no case"):
        fuse(cases, out, gold=gold)
    assert not out.exists()
    np.save(gold / "case_2.npy", np.full((24, 20), 255, dtype=np.uint8))
    fusion = fuse(cases, out, gold=gold)
    reasons = {each.case: each.reason for each in fusion.set_aside}
    assert "there twice, also as case_0.npy" in reasons["case_0"]
    assert "no rater labelled the case" in reasons["elsewhere"]
    assert note(out)["cases"] == ["case_1", "case_2"]


BAD = {
    "another size": "size 23×20 but",
    "a label outside": "label 7 lies outside",
    "fractions": "whole numbers, found",
    "damaged": "cannot be read",
    "300 classes": "label 300, 301, 302 lies outside",
    "another format": "not a file of a known format",
}


@pytest.mark.parametrize("scope", ["dataset", "case"])
@pytest.mark.parametrize("how", BAD)
def test_a_bad_case_is_set_aside(
    spoil: Callable[[Path, str], None],
    results: Read,
    note: Read,
    cases: Path,
    out: Path,
    tmp_path: Path,
    how: str,
    scope: str,
) -> None:
    spoil(cases, how)
    fusion = fuse(cases, out, scope=scope)
    assert [each.case for each in fusion.set_aside] == [None if how == "another format" else "case_1"]
    assert BAD[how] in fusion.set_aside[0].reason
    assert "bob" in fusion.set_aside[0].reason
    assert note(out)["set_aside"] == [vars(each) for each in fusion.set_aside]
    assert note(out)["cases"] == ["case_0", "case_2"]
    for rater in RATERS:
        for file in (cases / "raters" / rater).glob("case_1.*"):
            file.unlink()
    fuse(cases, tmp_path / "without", scope=scope)
    assert results(out) == results(tmp_path / "without")


@pytest.mark.parametrize("how", ["another size", "fractions", "damaged", "300 classes"])
def test_a_bad_case_is_set_aside_when_classes_are_not_named(
    spoil: Callable[[Path, str], None], note: Read, cases: Path, out: Path, how: str
) -> None:
    (cases / "dataset.json").unlink()
    spoil(cases, how)
    fusion = fuse(cases, out)
    assert [each.case for each in fusion.set_aside] == ["case_1"]
    assert BAD[how] in fusion.set_aside[0].reason
    assert note(out)["cases"] == ["case_0", "case_2"]


@pytest.mark.parametrize("method", ["staple", "spatial-staple"])
@pytest.mark.parametrize("how", ["gone", "another size", "damaged", "another drawing"])
def test_a_case_that_changes_between_counting_and_writing_is_set_aside(
    note: Read, cases: Path, out: Path, spoil: Callable[[Path, str], None], monkeypatch: pytest.MonkeyPatch, how: str,
    method: str,
) -> None:  # fmt: skip
    monkeypatch.setattr("annotruth.io.kept.MAX_KEPT_BYTES", 0)  # as with masks too large to be kept
    file, changed = cases / "raters" / "bob" / "case_1.npy", False

    def change(stage: str, done: int, total: int) -> None:
        nonlocal changed
        if stage in ("Refining", "Writing") and not changed:
            changed = True
            if how == "gone":
                file.unlink()
            elif how == "another drawing":
                np.save(file, 2 - np.load(file))
            else:
                spoil(cases, how)

    fusion = fuse(cases, out, method, progress=change)
    aside = {each.case: each.reason for each in fusion.set_aside}
    assert list(aside) == ["case_1"], aside
    assert "case_1" in aside["case_1"]
    assert note(out)["cases"] == ["case_0", "case_2"]
    assert sorted(path.stem for path in (out / "labels").iterdir()) == ["case_0", "case_2"]


def test_where_every_case_is_bad_nothing_is_made(cases: Path, out: Path) -> None:
    for file in (cases / "raters" / "bob").iterdir():
        file.write_bytes(b"no mask")
    with pytest.raises(InputError, match=r"wrong with every case.*case_0, rater bob.*2 more: `annotruth check`"):
        fuse(cases, out)
    assert not out.exists()


def test_where_every_case_turns_out_bad_nothing_is_fused(cases: Path, out: Path) -> None:
    for file in (cases / "raters" / "bob").iterdir():
        np.save(file, np.full((24, 20), 9, dtype=np.uint8))
    for scope in ("dataset", "case"):
        with pytest.raises(InputError, match=r"wrong with every case.*label 9 lies outside"):
            fuse(cases, out, scope=scope)
        assert not out.exists()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder.mkdir(), "no raters/ folder"),
        (lambda folder: None, "no such file or folder"),
        (lambda folder: (folder / "raters" / "ann").mkdir(parents=True), "not a single mask"),
        (lambda folder: folder.write_text("words"), "not a data set of a known kind"),
    ],
    ids=["empty", "missing", "no mask", "a file"],
)
def test_nothing_to_fuse(tmp_path: Path, out: Path, make: Callable[[Path], None], message: str) -> None:
    make(tmp_path / "cases")
    with pytest.raises(InputError, match=message):
        fuse(tmp_path / "cases", out)
    assert not out.exists()


def test_a_damaged_description_is_everybodys(cases: Path, out: Path) -> None:
    (cases / "dataset.json").write_text("{")
    with pytest.raises(InputError, match="not JSON"):
        fuse(cases, out)


def test_pixels_nobody_labelled_are_flagged(note: Read, cases: Path, out: Path) -> None:
    for rater in RATERS:
        file = cases / "raters" / rater / "case_1.npy"
        mask = np.load(file)
        mask[0, :3] = 255
        np.save(file, mask)
    fusion = fuse(cases, out)
    assert "the posterior is the prior" in str(fusion.warnings[0])
    assert note(out)["unlabelled"] == {"case_1": 3}
    posterior = np.load(out / "probabilities" / "case_1.npy")
    np.testing.assert_allclose(posterior[:, 0, :3], np.tile(fusion.fused.prior_[:, None], 3), atol=1e-6)


def test_doubts_about_the_truth_are_noted(note: Read, cases: Path, out: Path) -> None:
    for rater in RATERS[1:]:
        shutil.rmtree(cases / "raters" / rater)
    fuse(cases, out)
    assert "Only one rater labelled anything" in note(out)["identifiability"][0]


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("stable", {}, "Unknown method 'stable'. Did you mean 'staple'. Known: averaged, .*, staple, .*wawa"),
        ("staple", {"windows": 3}, "staple has no option 'windows'. Its options: .*smoothing"),
        ("majority", {"tol": 3}, "majority has no option 'tol'. It has none"),
        ("staple", {"max_iter": "many"}, "max_iter must be a whole number"),
        ("staple", {"max_iter": 0}, "max_iter must be at least 1"),
        ("staple", {"exclude_consensus": "no"}, "exclude_consensus must be true or false"),
        ("staple", {"tol": [1, 2]}, "unfit value"),
        ("staple", {"foreground": "moon"}, "'moon' is not among the classes"),
        ("staple", {"foreground": 0.5}, "unfit value"),
        ("staple", {"prior": [0.5, 0.5]}, "one number for each of the 3 classes"),
        ("staple", {"confusion_prior": {"zoe": [[1]]}}, "raters without labels: zoe"),
        ("staple", {"confusion_prior": [[1, 2], [3]]}, "unfit value"),
        ("spatial-staple", {"window": 4}, "window must be odd"),
        ("spatial-staple", {"window": [3, 3, 3]}, "3 sides but the masks have"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_made(
    cases: Path, out: Path, method: str, options: dict, message: str
) -> None:
    for scope in ("dataset", "case"):
        with pytest.raises(InputError, match=message):
            fuse(cases, out, method, scope=scope, options=options)
    assert not out.exists()


def test_wrong_scopes_are_refused(cases: Path, out: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Unknown scope 'world'"):
        fuse(cases, out, scope="world")
    (tmp_path / "answers.csv").write_text("item,rater,label\na,ann,cat\n")
    with pytest.raises(InputError, match="needs masks"):
        fuse(tmp_path / "answers.csv", out, scope="case")


def test_local_iterations_are_known_of_a_folder_too(cases: Path, out: Path) -> None:
    for scope in ("dataset", "case"):
        fused = fuse(cases, out, "spatial-staple", scope=scope, overwrite=True).fused
        expected = make_estimator("spatial-staple", scope).fit(at.load(cases))
        np.testing.assert_array_equal(fused.local_n_iter_, expected.local_n_iter_)
        np.testing.assert_array_equal(fused.predict_proba_item(1), expected.predict_proba_item(1))


def test_of_twenty_fusions_into_one_folder_one_is_written_and_the_others_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("item,rater,label\na,ann,cat\na,bob,dog\na,cy,cat\nb,ann,dog\nb,bob,dog\n")
    together = Barrier(20)

    def run(number: int) -> str:
        together.wait()
        try:
            fuse(tmp_path / "a.csv", tmp_path / "out", "majority")
            return "done"
        except InputError as error:
            return str(error)

    with ThreadPoolExecutor(20) as threads:
        ended = list(threads.map(run, range(20)))
    assert ended.count("done") == 1
    assert all("is writing there" in text or "already holds files" in text for text in ended if text != "done")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["fusion.json", "raters.csv", "truth.csv"]


@pytest.mark.parametrize("stream", [False, True])
def test_names_that_are_written_in_two_ways_are_pointed_out(tmp_path: Path, stream: bool) -> None:
    rows = [("a", "ann", "cat"), ("a", "bob", "Cat"), ("b", "ann ", "dog"), ("b", "bob", "dog"), ("b", "cy", "cat")]
    (tmp_path / "a.csv").write_text("item,rater,label\n" + "".join(f"{','.join(row)}\n" for row in rows))
    told = {str(each) for each in fuse(tmp_path / "a.csv", tmp_path / "out", stream=stream).warnings}
    why = "differ by capitals and spaces only, and are told apart. If they are one, write it in one way."
    assert told >= {f"The raters 'ann' and 'ann ' {why}", f"The classes 'Cat' and 'cat' {why}"}
