"""annotruth train: what a run leaves, what it keeps, and what it refuses."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
from PIL import Image

from annotruth import Segmenter, load_model
from annotruth.choosing import cross_validation
from annotruth.io.formats import png
from annotruth.io.locks import only_writer
from annotruth.parallel.signals import Stopped
from annotruth.training import runs

# Trainings of one epoch: a model that knows little is rightly doubted.
pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")

Run = Callable[..., Any]

QUICK = ("--epochs", 1, "--quiet", "--accelerator", "cpu")

RATERS = ("blank", "good", "over", "under", "wrong")


def test_a_trained_run(home: Path) -> None:
    assert (home / "run" / "model.annotruth").is_file()
    assert (home / "run" / "checkpoints" / "last.ckpt").is_file()
    asked = json.loads((home / "run" / "run.json").read_text())
    assert asked["params"]["max_epochs"] == 1
    assert asked["cases"] == str((home / "cases").resolve())


def test_a_finished_run_is_kept_unless_told_otherwise(
    annotruth: Run, home: Path, tmp_path: Path, fingerprint: Run
) -> None:
    run = Path(shutil.copytree(home / "run", tmp_path / "run"))
    before = fingerprint(run)
    ended = annotruth("train", home / "cases", "-o", run, *QUICK)
    assert ended.code == 2
    assert "already holds a run; go on with --resume, or start anew with --overwrite" in ended.err
    assert fingerprint(run) == before
    assert annotruth("train", home / "cases", "-o", run, "--resume", "--quiet").code == 0
    assert annotruth("train", home / "cases", "-o", run, "--overwrite", *QUICK, "--method", "majority").code == 0
    assert json.loads((run / "run.json").read_text())["params"]["method"] == "majority"


def test_one_rater_is_enough_with_a_warning(annotruth: Run, cases: Path, out: Path) -> None:
    for rater in set(RATERS) - {"good"}:
        shutil.rmtree(cases / "raters" / rater)
    checked = annotruth("check", cases)
    assert checked.code == 0
    assert "good is the only rater" in checked.out
    ended = annotruth("train", cases, "-o", out, *QUICK)
    assert ended.code == 0
    assert "Only one rater labelled anything: errors cannot be told from the truth" in ended.err
    assert (out / "model.annotruth").is_file()


def replace(file: Path, suffix: str, content: bytes | np.ndarray) -> None:
    """Put another file in the place of one."""
    file.unlink()
    target = file.with_suffix(suffix)
    if isinstance(content, bytes):
        target.write_bytes(content)
    elif suffix == ".npy":
        np.save(target, content)
    else:
        Image.fromarray(content).save(target)


def truncated_nifti(file: Path) -> None:
    file.unlink()
    target = file.with_suffix(".nii.gz")
    nibabel.save(nibabel.Nifti1Image(np.zeros((28, 28), dtype=np.float32), np.eye(4)), target)
    target.write_bytes(target.read_bytes()[:-30])


IMAGE, MASK = "images/digit_3.png", "raters/over/digit_3.png"

SPOILT: dict[str, tuple[Callable[[Path], object], str]] = {
    "no image": (lambda f: (f / IMAGE).unlink(), "there is a mask, but images/ holds no image"),
    "another size": (lambda f: replace(f / MASK, ".png", np.zeros((27, 28), np.uint8)), "size 27×28 but the image"),
    "label outside": (lambda f: replace(f / MASK, ".png", np.full((28, 28), 7, np.uint8)), "label 7 lies outside"),
    "rubbish as NIfTI": (lambda f: replace(f / IMAGE, ".nii.gz", b"\x1f\x8b rubbish"), "cannot be read"),
    "truncated NIfTI": (lambda f: truncated_nifti(f / IMAGE), "cannot be read"),
    "rubbish as PNG": (lambda f: (f / MASK).write_bytes(b"rubbish"), "cannot be read"),
    "truncated PNG mask": (lambda f: (f / MASK).write_bytes((f / MASK).read_bytes()[:60]), "cannot be read"),
    "truncated PNG image": (lambda f: (f / IMAGE).write_bytes((f / IMAGE).read_bytes()[:300]), "cannot be read"),
    "NaN in an image": (lambda f: replace(f / IMAGE, ".npy", np.full((28, 28), np.nan, np.float32)), "non-finite"),
    "fractions": (lambda f: replace(f / MASK, ".npy", np.full((28, 28), 0.5)), "whole numbers"),
    "no rater": (lambda f: shutil.rmtree(f / "raters"), "there is not a single mask"),
    "no image at all": (lambda f: [file.unlink() for file in (f / "images").iterdir()], "the folder holds no image"),
    "damaged dataset.json": (lambda f: (f / "dataset.json").write_text("{"), "not JSON"),
    "nothing": (lambda f: shutil.rmtree(f), "there is no such file or folder"),
}


@pytest.mark.parametrize("how", SPOILT)
def test_bad_cases_are_refused_and_left_alone(
    assert_one_paragraph: Run, annotruth: Run, cases: Path, out: Path, fingerprint: Run, how: str
) -> None:
    spoil, message = SPOILT[how]
    spoil(cases)
    before = fingerprint(cases.parent)
    checked = annotruth("check", cases)
    assert checked.code == 2
    assert message in checked.out
    ended = annotruth("train", cases, "-o", out, *QUICK)
    assert ended.code == 2
    assert message in ended.err
    assert_one_paragraph(ended.err)
    if how not in ("no rater", "no image at all", "damaged dataset.json", "nothing"):
        assert "digit_3" in ended.err
    assert fingerprint(cases.parent) == before, "nothing is changed, and nothing is made"


def test_bad_cases_do_not_cost_an_earlier_run(
    annotruth: Run, cases: Path, home: Path, tmp_path: Path, fingerprint: Run
) -> None:
    run = Path(shutil.copytree(home / "run", tmp_path / "run"))
    before = fingerprint(run)
    (cases / MASK).write_bytes(b"rubbish")
    assert annotruth("train", cases, "-o", run, "--overwrite", *QUICK).code == 2
    assert annotruth("train", home / "cases", "-o", run, "--overwrite", "--epochs", 0).code == 2
    assert fingerprint(run) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "magic"], "Unknown method 'magic'. Known: "),
        (["--option", "magic=1"], "no option 'magic'"),
        (["--option", "magic"], "An option is written name=value"),
        (["--epochs", "0"], "max_epochs must be positive"),
        (["--validation", "2"], "0 ≤ validation < 1"),
        (["--accelerator", "quantum"], "'quantum' cannot be used"),
        (["--resume"], "holds no run"),
        (["--fold", "5"], "fold is a whole number from 0 to 4, as there are 5 folds, not 5"),
        (["--fold", "-1"], "--fold is a number from 0, or all, not '-1'"),
        (["--fold", "first"], "--fold is a number from 0, or all, not 'first'"),
        (["--fold", "0", "--folds", "1"], "folds is a whole number from 2"),
        (["--fold", "all", "--folds", "0"], "folds is a whole number from 2"),
        (["--fold", "0", "--folds", "13"], "more folds than cases, 13 and 12; take at most 12 folds"),
        (["--fold", "all", "--folds", "13"], "more folds than cases"),
        (["--folds", "3"], "--folds goes with --fold"),
        (["--fold", "0", "--validation", "0.2"], "leave --validation away"),
    ],
)
def test_wrong_settings_of_training(
    assert_one_paragraph: Run, annotruth: Run, home: Path, out: Path, arguments: list[str], message: str
) -> None:
    ended = annotruth("train", home / "cases", "-o", out, "--quiet", *arguments)
    assert ended.code == 2
    assert message in ended.err
    assert_one_paragraph(ended.err)
    assert not out.exists()


def test_resuming_with_other_cases_is_refused(annotruth: Run, home: Path, cases: Path) -> None:
    ended = annotruth("train", cases, "-o", home / "run", "--resume", "--quiet")
    assert ended.code == 2
    assert "learns from" in ended.err


@pytest.mark.parametrize("method", ["pixel-cm", "mean"])
def test_every_file_is_read_once_and_one_estimator_is_made(
    annotruth: Run, cases: Path, out: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: Counter[Path] = Counter()
    for kind in ("read_mask", "read_image"):
        original = getattr(png, kind)

        def counting(path: Path, *more: int, original: Run = original) -> np.ndarray:
            read[path] += 1
            return original(path, *more)

        monkeypatch.setattr(png, kind, counting)
    made = []

    def make(**params: Any) -> Segmenter:
        made.append(Segmenter(**params))
        return made[-1]

    monkeypatch.setattr(runs, "Segmenter", make)
    assert (cases / "dataset.json").is_file(), "it names the classes, so that masks need not be read to find them"
    ended = annotruth("train", cases, "-o", out, "--method", method, *QUICK)
    assert ended.code == 0, ended.err
    assert len(made) == 1
    assert len(read) == 12 * (1 + len(RATERS))
    # The first mask is read once more to see what its pixel values mean.
    assert read.total() - len(read) <= 1, read.most_common(3)


# -- folds ------------------------------------------------------------------------------------------------------


def test_one_case_has_no_folds(annotruth: Run, cases: Path, out: Path) -> None:
    for file in cases.rglob("digit_*.png"):
        if file.stem != "digit_3":
            file.unlink()
    ended = annotruth("train", cases, "-o", out, "--fold", "all", *QUICK)
    assert ended.code == 2
    assert "There is only one case, so that none can be held out; train without a fold" in ended.err
    assert not out.exists()


def test_all_folds_are_trained_side_by_side(folds: Path) -> None:
    assert sorted(path.name for path in folds.iterdir()) == ["fold_0", "fold_1"]
    held_out = []
    for fold in range(2):
        params = json.loads((folds / f"fold_{fold}" / "run.json").read_text())["params"]
        assert (params["fold"], params["folds"]) == (fold, 2)
        assert (folds / f"fold_{fold}" / "model.annotruth").is_file()
        held_out += (folds / f"fold_{fold}" / "held_out.csv").read_text().split()[1:]
    assert sorted(held_out) == sorted(f"digit_{number}" for number in range(12)), "each case once"


def test_a_fold_trained_alone_is_the_same_as_among_all(annotruth: Run, home: Path, folds: Path, out: Path) -> None:
    fold = ("--method", "mean", "--fold", 1, "--folds", 2)
    assert annotruth("train", home / "cases", "-o", out, *fold, *QUICK).code == 0
    assert (out / "model.annotruth").read_bytes() == (folds / "fold_1" / "model.annotruth").read_bytes()


def test_folds_go_on_where_they_were_cut_off(
    annotruth: Run, home: Path, folds: Path, tmp_path: Path, fingerprint: Run
) -> None:
    run = Path(shutil.copytree(folds, tmp_path / "folds"))
    done = fingerprint(run / "fold_0")
    shutil.rmtree(run / "fold_1" / "checkpoints")  # not begun yet
    (run / "fold_1" / "model.annotruth").unlink()
    ended = annotruth("train", home / "cases", "-o", run, "--resume", "--quiet")
    assert ended.code == 0, ended.err
    assert "Fold 0" not in ended.out
    assert "Fold 1 of 2: learns from 6 items" in ended.out
    assert f"annotruth predict {run} IMAGES" in ended.out
    (run / "fold_1" / "model.annotruth").unlink()  # begun
    assert annotruth("train", home / "cases", "-o", run, "--resume", "--fold", "all", *QUICK).code == 0
    assert (run / "fold_1" / "model.annotruth").read_bytes() == (folds / "fold_1" / "model.annotruth").read_bytes()
    assert fingerprint(run / "fold_0") == done
    assert annotruth("train", home / "cases", "-o", run, "--resume", "--quiet").code == 0, "nothing is left to do"


@pytest.mark.parametrize(
    ("begun", "fold", "message"),
    [
        ("folds", ("--fold", 1), "holds out all of 2 folds in turn"),
        ("folds", ("--fold", "all", "--folds", 3), "holds out all of 2 folds in turn"),
        ("folds/fold_1", ("--fold", 0), "holds out fold 1 of 2"),
        ("folds/fold_1", ("--fold", "all"), "holds out fold 1 of 2"),
        ("run", ("--fold", 0), "holds out no fold"),
    ],
)
def test_going_on_with_another_fold_is_refused(
    annotruth: Run, home: Path, folds: Path, begun: str, fold: tuple[object, ...], message: str
) -> None:
    assert folds.parent == home
    ended = annotruth("train", home / "cases", "-o", home / begun, "--resume", "--quiet", *fold)
    assert ended.code == 2
    assert message in ended.err


def test_folds_are_kept_unless_told_otherwise(annotruth: Run, home: Path, folds: Path, fingerprint: Run) -> None:
    before = fingerprint(folds)
    for fold in ((), ("--fold", "all"), ("--fold", 0)):
        ended = annotruth("train", home / "cases", "-o", folds, *fold, *QUICK)
        assert ended.code == 2
        assert "already holds a run; go on with --resume, or start anew with --overwrite" in ended.err
    assert fingerprint(folds) == before


# A run that is cut off by signals, in a process of its own.


def start(*command: object) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", "annotruth", *map(str, command), "--quiet", "--accelerator", "cpu"]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_signal_ends_training_with_its_exit_code_and_says_how_to_go_on(home, out):
    begun = start("train", home / "cases", "-o", out, "--method", "mean", "--epochs", 500, "--patience", 500)
    last = out / "checkpoints" / "last.ckpt"
    try:
        for _ in range(600):
            if last.is_file():
                break
            time.sleep(0.1)
        begun.send_signal(signal.SIGTERM)  # others do the same: tests/parallel/test_signals.py
        said = begun.communicate(timeout=60)[1]
    finally:
        begun.kill()
    assert begun.returncode == 143, said
    assert f"Stopped by SIGTERM. Go on with: annotruth train {home / 'cases'} -o {out} --resume" in said
    assert "Traceback" not in said
    assert not (out / "model.annotruth").exists()
    assert not (out / ".annotruth.lock").exists()


def test_a_run_cut_off_before_its_first_checkpoint_starts_over_with_resume(home, out, annotruth):
    asked = ("train", home / "cases", "-o", out, "--method", "mean", "--epochs", 1, "--quiet", "--accelerator", "cpu")
    assert annotruth(*asked).code == 0
    whole = (out / "model.annotruth").read_bytes()
    shutil.rmtree(out / "checkpoints")
    (out / "model.annotruth").unlink()
    again = annotruth("train", home / "cases", "-o", out, "--resume", "--quiet", "--accelerator", "cpu")
    assert again.code == 0, again.err
    assert (out / "model.annotruth").read_bytes() == whole


def test_two_trainings_into_one_folder_are_kept_apart(home, out, annotruth):
    with only_writer(out):
        refused = annotruth("train", home / "cases", "-o", out, "--epochs", 1, "--quiet", "--accelerator", "cpu")
    assert refused.code == 2
    assert "is writing there" in refused.err
    assert not out.exists()


def test_auto_compares_first_and_keeps_what_it_chose(home, out, annotruth, monkeypatch):
    monkeypatch.setattr(cross_validation, "DEFAULT_METHODS", {"masks": ("majority", "mean")})
    asked = ("train", home / "cases", "-o", out, "--method", "auto", "--epochs", 1, "--quiet", "--accelerator", "cpu")
    done = annotruth(*asked)
    assert done.code == 0, done.err
    chosen = json.loads((out / "run.json").read_text())["params"]["method"]
    assert chosen in ("majority", "mean")
    assert f"Take {chosen}." in done.out
    assert (out / "comparison" / "compare.html").is_file()
    assert load_model(out / "model.annotruth").method == chosen


def test_auto_goes_on_with_its_comparison_where_it_was_cut_off(home, out, annotruth, monkeypatch):
    monkeypatch.setattr(cross_validation, "DEFAULT_METHODS", {"masks": ("majority", "mean")})
    asked = ("train", home / "cases", "-o", out, "--method", "auto", "--epochs", 1, "--quiet", "--accelerator", "cpu")
    train, trained = cross_validation.train, []

    def cut_off(training, annotations):
        if len(trained) == 3:
            raise Stopped(signal.SIGINT)
        trained.append(training)
        return train(training, annotations)

    with monkeypatch.context() as patch:
        patch.setattr(cross_validation, "train", cut_off)
        stopped = annotruth(*asked)
    assert stopped.code == 130
    assert "--resume" in stopped.err
    count = len(list((out / "comparison" / "trainings").iterdir()))
    assert count == 3
    again = annotruth("train", home / "cases", "-o", out, "--resume", "--quiet", "--accelerator", "cpu")
    assert again.code == 0, again.err
    assert (out / "model.annotruth").is_file()


def test_auto_makes_nothing_where_methods_cannot_be_compared(home, out, annotruth):
    few = out.parent / "few"
    shutil.copytree(home / "cases", few)
    for name in sorted(path.name for path in (few / "images").iterdir())[2:]:
        for path in few.glob(f"*/{name}"):
            path.unlink()
        for path in few.glob(f"raters/*/{name}"):
            path.unlink()
    refused = annotruth("train", few, "-o", out, "--method", "auto", *QUICK)
    assert refused.code == 2
    assert "more folds than cases" in refused.err
    assert not out.exists()
