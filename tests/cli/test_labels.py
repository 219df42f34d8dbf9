"""The command line on label tables, from end to end on small digits, and what it says of bad input."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from annotruth import Annotations
from annotruth.cli import app
from annotruth.errors import AnnotruthWarning
from annotruth.io import write_table
from annotruth.simulate import label_group, simulate_labels

# Trainings of an epoch or two: a model that knows little is rightly doubted.
pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")

Run = Callable[..., Any]
QUICK = ("--epochs", 2, "--quiet", "--accelerator", "cpu")
CLASSES = ("größte Null", "eins", "二 two")
RATERS = ("Ann", "Bob", "Cé", "once", "always")


def write_study(home: Path) -> None:
    """labels.csv, pictures/, features.csv and truth.csv of ninety digits; two odd raters among five."""
    data = load_digits(n_class=3)
    truth, images, features = data.target[:90], data.images[:90], data.data[:90]
    answers = simulate_labels(truth, label_group("hammer-spammer", 3, 3, skill=0.8), seed=1).answers
    once, always = np.where(np.arange(90) == 5, truth, -1), np.ones(90, dtype=int)
    items = [f"digit {number}" for number in range(90)]
    table = Annotations.from_answers(
        np.column_stack([answers, once, always]), items=items, raters=RATERS, classes=CLASSES
    )
    write_table(home / "labels.csv", table)
    (home / "pictures").mkdir()
    for item, image in zip(items, images):
        Image.fromarray((15 * image).astype(np.uint8)).save(home / "pictures" / f"{item}.png")
    frame = pd.DataFrame(features).set_axis([f"pixel {c}" for c in range(64)], axis=1)
    frame.insert(0, "item", items)
    frame.to_csv(home / "features.csv", index=False)
    pd.DataFrame({"item": items, "truth": [CLASSES[label] for label in truth]}).to_csv(home / "truth.csv", index=False)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study and two runs on it: ``run_pictures`` and ``run_features``."""
    home = tmp_path_factory.mktemp("study")
    write_study(home)
    for kind, given in (
        ("pictures", ("--images", home / "pictures")),
        ("features", ("--features", home / "features.csv")),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AnnotruthWarning)
            command = ("train", home / "labels.csv", *given, "-o", home / f"run_{kind}", *QUICK)
            app([str(word) for word in command], standalone_mode=False)
    return home


@pytest.fixture
def home(study: Path, tmp_path: Path) -> Path:
    """A copy, to be spoilt."""
    return Path(shutil.copytree(study, tmp_path / "home"))


# -- the way through --------------------------------------------------------------------------------------------


def test_a_trained_run(study: Path) -> None:
    asked = json.loads((study / "run_pictures" / "run.json").read_text())
    assert asked["cases"] == str((study / "labels.csv").resolve())
    assert asked["inputs"] == {"images": str((study / "pictures").resolve())}
    assert asked["params"]["method"] == "global-cm"
    assert asked["params"]["max_epochs"] == 2


@pytest.mark.parametrize(("kind", "given"), [("pictures", "pictures"), ("features", "features.csv")])
def test_predicting_writes_a_table(annotruth: Run, study: Path, out: Path, kind: str, given: str) -> None:
    ended = annotruth("predict", study / f"run_{kind}", study / given, "-o", out, "-q")
    assert (ended.code, ended.err) == (0, "")
    assert "90 items labelled" in ended.out
    assert [path.name for path in out.iterdir()] == ["labels.csv"]
    table = pd.read_csv(out / "labels.csv").set_index("item")
    assert list(table.columns) == ["label", *(f"probability of {name}" for name in sorted(CLASSES))]
    np.testing.assert_allclose(table.iloc[:, 1:].sum(axis=1), 1, atol=1e-5)
    assert set(table["label"]) <= set(CLASSES)
    assert set(table.index) == {f"digit {number}" for number in range(90)}


def test_features_in_another_order_are_put_right(annotruth: Run, study: Path, out: Path) -> None:
    frame = pd.read_csv(study / "features.csv")
    frame[frame.columns[::-1]].assign(more=1.0).to_parquet(out.with_suffix(".parquet"))
    for name, given in (("a", study / "features.csv"), ("b", out.with_suffix(".parquet"))):
        assert annotruth("predict", study / "run_features", given, "-o", out / name).code == 0
    pd.testing.assert_frame_equal(pd.read_csv(out / "a" / "labels.csv"), pd.read_csv(out / "b" / "labels.csv"))


def test_predicting_one_picture(annotruth: Run, study: Path, out: Path) -> None:
    model = study / "run_pictures" / "model.annotruth"
    assert annotruth("predict", model, study / "pictures" / "digit 3.png", "-o", out).code == 0
    assert len(pd.read_csv(out / "labels.csv")) == 1


def test_pictures_may_be_jpegs(annotruth: Run, study: Path, out: Path) -> None:
    out.mkdir()
    (out / "jpegs").mkdir()
    for path in (study / "pictures").iterdir():
        Image.open(path).save(out / "jpegs" / f"{path.stem}.jpg", quality=95)
    given = (study / "labels.csv", "--images", out / "jpegs")
    assert annotruth("check", *given).code == 0
    ended = annotruth("train", *given, "-o", out / "run", *QUICK)
    assert ended.code == 0, ended.err
    assert annotruth("predict", out / "run", out / "jpegs", "-o", out / "labelled").code == 0
    assert len(pd.read_csv(out / "labelled" / "labels.csv")) == 90


@pytest.mark.parametrize("kind", ["pictures", "features"])
def test_reporting(annotruth: Run, study: Path, out: Path, kind: str) -> None:
    ended = annotruth("report", study / f"run_{kind}", "-o", out / "seen.html")
    assert ended.code == 0
    page = (out / "seen.html").read_text(encoding="utf-8")
    assert all(name in page for name in (*RATERS, *CLASSES))
    assert "Items most likely mislabelled" in page


def test_a_run_goes_on_with_what_it_learnt_from(annotruth: Run, home: Path) -> None:
    given = ("--features", home / "features.csv")
    ended = annotruth("train", home / "labels.csv", *given, "-o", home / "run_features", *QUICK)
    assert ended.code == 2
    assert "go on with --resume" in ended.err
    run = home / "run_features" / "run.json"
    asked = json.loads(run.read_text())
    asked |= {"cases": str(home / "labels.csv"), "inputs": {"features": str(home / "features.csv")}}
    run.write_text(json.dumps(asked))
    ended = annotruth("train", home / "labels.csv", "-o", home / "run_features", "--resume", "--quiet")
    assert ended.code == 0, ended.err
    for given, message in (
        (("--features", home / "labels.csv"), "learns from"),
        (("--images", home / "pictures"), "learns from no images"),
    ):
        ended = annotruth("train", home / "labels.csv", "-o", home / "run_features", "--resume", "-q", *given)
        assert (ended.code, message in ended.err) == (2, True), ended.err


def test_folds_of_a_table(annotruth: Run, study: Path, out: Path) -> None:
    given = ("--features", study / "features.csv", "--network", "linear")
    ended = annotruth(
        "train", study / "labels.csv", *given, "-o", out / "folds", "--fold", "all", "--folds", 3, *QUICK
    )  # fmt: skip
    assert ended.code == 0, ended.err
    assert f"annotruth predict {out / 'folds'} FEATURES" in ended.out
    unseen = pd.concat([pd.read_csv(path) for path in (out / "folds").glob("fold_*/held_out.csv")])
    assert sorted(unseen.item) == sorted(pd.read_csv(study / "truth.csv").item), "each item once"
    turned = out / "turned.csv"
    frame = pd.read_csv(study / "features.csv")
    frame[frame.columns[::-1]].to_csv(turned, index=False)
    tables = {}
    for name in ("folds", "folds/fold_0", "folds/fold_1", "folds/fold_2"):
        assert annotruth("predict", out / name, turned, "-o", out / f"of {name}", "-q").code == 0
        tables[name] = pd.read_csv(out / f"of {name}" / "labels.csv").filter(like="probability").to_numpy()
    np.testing.assert_allclose(tables.pop("folds"), np.mean(list(tables.values()), axis=0), rtol=1e-6)


def test_models_of_other_features_do_not_predict_together(annotruth: Run, home: Path, out: Path) -> None:
    shutil.copytree(home / "run_features", home / "other")
    asked = json.loads((home / "other" / "run.json").read_text())
    asked["columns"].reverse()
    (home / "other" / "run.json").write_text(json.dumps(asked))
    ended = annotruth("predict", home / "run_features", home / "other", home / "features.csv", "-o", out)
    assert ended.code == 2
    assert "cannot predict together, as they learnt from other features" in ended.err
    assert not out.exists()


def test_a_table_with_fewer_items_than_folds(annotruth: Run, study: Path, out: Path) -> None:
    given = ("--features", study / "features.csv", "--fold", 0, "--folds", 91)
    ended = annotruth("train", study / "labels.csv", *given, "-o", out, *QUICK)
    assert ended.code == 2
    assert "more folds than cases, 91 and 90; take at most 90 folds" in ended.err
    assert not out.exists()


def test_truth_serves_the_methods_that_need_it(annotruth: Run, study: Path, out: Path) -> None:
    given = ("--features", study / "features.csv", "--method", "clean", "--network", "linear", *QUICK)
    ended = annotruth("train", study / "labels.csv", "-o", out, *given)
    assert ended.code == 2
    ended = annotruth("train", study / "labels.csv", "-o", out, *given, "--truth", study / "truth.csv")
    assert ended.code == 0, ended.err
    annotruth("report", out)
    assert "of the items whose truth is known" in (out / "report.html").read_text(encoding="utf-8")


# -- bad input --------------------------------------------------------------------------------------------------


def rewrite(path: Path, change: Callable[[str], str]) -> None:
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


SPOILT: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "items without a picture": (
        "images", lambda f: rewrite(f / "labels.csv", lambda text: text + "cat,Ann,eins\ndog,Ann,eins\n"),
        "items of the label table without a picture, 2 of 92: cat, dog. Add them",
    ),
    "items without features": (
        "features", lambda f: rewrite(f / "labels.csv", lambda text: text + "cat,Ann,eins\n"),
        "items of the label table without features, 1 of 91: cat. Add",
    ),
    "features with NaN": (
        "features", lambda f: rewrite(f / "features.csv", lambda text: text.replace("digit 7,0.0", "digit 7,nan")),
        "features.csv: item digit 7, column pixel 0: the value is missing, NaN or infinite. Fill it in",
    ),
    "duplicates": (
        "images", lambda f: rewrite(f / "labels.csv", lambda text: text + "digit 3,always,二 two\n"),
        "different labels: digit 3 by always (eins and 二 two). Remove",
    ),
    "a damaged picture": (
        "images", lambda f: (f / "pictures" / "digit 3.png").write_bytes(b"rubbish"),
        "digit 3.png (case digit 3): cannot be read",
    ),
    "a picture cut short": (
        "images", lambda f: os.truncate(f / "pictures" / "digit 3.png", 60),
        "digit 3.png (case digit 3): cannot be read",
    ),
    "a picture of another size": (
        "images", lambda f: Image.fromarray(np.zeros((9, 8), np.uint8)).save(f / "pictures" / "digit 3.png"),
        "digit 3.png (case digit 3): the picture has size 1×9×8",
    ),
    "an empty answer": (
        "images", lambda f: rewrite(f / "labels.csv", lambda text: text + "digit 3,Dée,\n"), "has no label. Fill it in",
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", SPOILT)
def test_bad_studies_are_refused_and_left_alone(
    assert_one_paragraph: Run, annotruth: Run, home: Path, out: Path, fingerprint: Run, how: str
) -> None:
    kind, spoil, message = SPOILT[how]
    spoil(home)
    given = (f"--{kind}", home / ("pictures" if kind == "images" else "features.csv"))
    before = fingerprint(home)
    checked = annotruth("check", home / "labels.csv", *given)
    assert (checked.code, message.split(". ")[0] in checked.out) == (2, True), checked.out
    ended = annotruth("train", home / "labels.csv", *given, "-o", out, *QUICK)
    assert (ended.code, message in ended.err) == (2, True), ended.err
    assert_one_paragraph(ended.err)
    assert not out.exists()
    kept = annotruth("train", home / "labels.csv", *given, "-o", home / "run_pictures", "--overwrite", *QUICK)
    assert kept.code == 2
    assert fingerprint(home) == before, "an earlier run is not lost"


def test_the_last_of_duplicates_is_kept_on_request(annotruth: Run, home: Path, out: Path) -> None:
    rewrite(home / "labels.csv", lambda text: text + "digit 3,always,二 two\n")
    last = ("--duplicates", "keep-last")
    assert annotruth("check", home / "labels.csv", *last).code == 0
    assert annotruth("fuse", home / "labels.csv", "--method", "majority", "-o", out / "fused").code == 2
    assert annotruth("fuse", home / "labels.csv", "--method", "majority", "-o", out / "fused", *last).code == 0
    ended = annotruth(
        "train", home / "labels.csv", "--features", home / "features.csv", "-o", out / "run", *last, *QUICK
    )
    assert ended.code == 0, ended.err
    assert json.loads((out / "run" / "run.json").read_text())["inputs"]["duplicates"] == "keep-last"
    assert annotruth("report", out / "run").code == 0
    ended = annotruth("check", home / "labels.csv", "--duplicates", "first")
    assert ended.code == 2


def test_odd_raters_are_pointed_out_and_learnt_from(annotruth: Run, study: Path) -> None:
    ended = annotruth("check", study / "labels.csv", "--images", study / "pictures")
    assert ended.code == 0
    assert "rater once): the rater gave one answer only." in ended.out
    assert "every one of the rater's 90 answers is eins." in ended.out


def test_a_class_nobody_answered_is_warned_of(annotruth: Run, home: Path, out: Path) -> None:
    rewrite(home / "truth.csv", lambda text: text + "elsewhere,drei\n")
    given = ("--features", home / "features.csv", "--truth", home / "truth.csv")
    ended = annotruth("train", home / "labels.csv", *given, "-o", out, *QUICK)
    assert ended.code == 0
    assert "warning: Nobody ever answered drei" in ended.err
    annotruth("report", out)
    assert "Nobody ever answered drei" in (out / "report.html").read_text(encoding="utf-8")


def test_wrong_use(assert_one_paragraph: Run, annotruth: Run, study: Path, out: Path, fingerprint: Run) -> None:
    table, pictures, features = study / "labels.csv", study / "pictures", study / "features.csv"
    (study / "cases").mkdir(exist_ok=True)
    before = fingerprint(study)
    for command, message in [
        (("train", table), "needs its pictures, --images FOLDER, or features, --features FILE"),
        (("train", table, "--images", pictures, "--features", features), "either pictures or features"),
        (("train", table, "--images", pictures, "--patch-size", "8,8"), "--patch-size goes with a case folder"),
        (("train", table, "--features", features, "--augment"), "augment changes images; feature vectors stay"),
        (("train", table, "--images", pictures, "--network", "monai:DenseNet12"), "Did you mean monai:DenseNet121"),
        (("train", table, "--images", pictures, "--devices", 3, "--batch-size", 2), "batch_size must be at least 3"),
        (("train", table, "--images", pictures, "--strategy", "teamwork"), "Unknown strategy 'teamwork'"),
        (("train", table, "--images", pictures, "--network", "mlp"), "The network mlp does not take images"),
        (("train", table, "--images", pictures, "--method", "magic"), "Unknown method 'magic'"),
        (("train", table, "--images", study / "none"), "no such folder of pictures"),
        (("train", study / "cases", "--images", pictures), "--images goes with a label table"),
        (("predict", study / "run_pictures", features), "the model learnt from pictures"),
        (("predict", study / "run_features", pictures), "the model learnt from features"),
        (("predict", study / "run_features", features, "--recurrence", 1), "go with a model of masks"),
        (("predict", study / "run_features", study / "none.csv"), "there is no such file"),
    ]:
        ended = annotruth(*command, "-o", out)
        assert (ended.code, message in ended.err) == (2, True), (command, ended.err)
        assert_one_paragraph(ended.err)
        assert not out.exists()
    assert fingerprint(study) == before
    narrow = out.parent / "narrow.csv"
    pd.read_csv(features).drop(columns="pixel 3").to_csv(narrow, index=False)
    ended = annotruth("predict", study / "run_features", narrow, "-o", out)
    assert ended.code == 2
    assert "columns that the model learnt from are not there, 1 of 64: pixel 3. Add them" in ended.err
    ended = annotruth("predict", study / "run_features" / "model.annotruth", narrow, "-o", out)
    assert (ended.code, "Item digit 0 has shape (63,); the model needs 64 features" in ended.err) == (2, True), (
        ended.err
    )
