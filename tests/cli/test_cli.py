"""The command line from end to end on a dozen digits, and what it says of bad input."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
import tifffile
from PIL import Image

from annotruth.cli import app
from annotruth.errors import IdentifiabilityWarning, InputError
from annotruth.simulate import noisy_digits

# Trainings of one epoch: a model that knows little is rightly doubted.
pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")

Run = Callable[..., Any]
QUICK = ("--epochs", 1, "--quiet", "--accelerator", "cpu")
RATERS = ("blank", "good", "over", "under", "wrong")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``digits`` (images and truth), ``cases`` (with raters) and ``run`` (trained for one epoch)."""
    home = tmp_path_factory.mktemp("home")
    images, truth, _ = noisy_digits(12)
    for kind, arrays in (("images", (255 * images[:, 0]).astype(np.uint8)), ("truth", truth)):
        (home / "digits" / kind).mkdir(parents=True)
        for number, array in enumerate(arrays):
            Image.fromarray(array).save(home / "digits" / kind / f"digit_{number}.png")
    for command in (
        ("simulate", home / "digits", "-o", home / "cases"),
        ("train", home / "cases", "-o", home / "run", *QUICK),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IdentifiabilityWarning)
            app([str(word) for word in command], standalone_mode=False)
    return home


@pytest.fixture
def cases(home: Path, tmp_path: Path) -> Path:
    """A copy of the cases, to be spoilt."""
    return Path(shutil.copytree(home / "cases", tmp_path / "cases"))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


# -- the way through --------------------------------------------------------------------------------------------


def test_simulated_cases(home: Path) -> None:
    assert sorted(path.name for path in (home / "cases" / "raters").iterdir()) == sorted(RATERS)
    drawn, true = (np.asarray(Image.open(home / "cases" / part / "digit_7.png")) for part in ("raters/good", "truth"))
    np.testing.assert_array_equal(drawn, true)
    known = json.loads((home / "cases" / "confusion.json").read_text())
    assert known["orientation"] == "[true][observed]"
    assert known["raters"]["good"] == [[1, 0], [0, 1]]


def test_simulating_few_labels_the_same_way_twice(annotruth: Run, home: Path, tmp_path: Path, fingerprint: Run) -> None:
    for copy in "ab":
        ended = annotruth(
            "simulate", home / "digits", "-o", tmp_path / copy, "--raters", "good, over", "--keep", 1, "--seed", 3
        )
        assert ended.code == 0
        assert "12 cases by 2 raters" in ended.out
    assert fingerprint(tmp_path / "a") == fingerprint(tmp_path / "b")
    assert len(list((tmp_path / "a" / "raters").glob("*/*.png"))) == 12


def test_check_names_what_recurs_once(annotruth: Run, home: Path) -> None:
    ended = annotruth("check", home / "cases")
    assert ended.code == 0
    assert "rater blank" in ended.out
    assert "warning 12 times: the mask is empty" in ended.out
    assert "… and 9 more (--all lists them)." in ended.out
    assert "0 fatal, 12 to look at." in ended.out
    assert annotruth("check", home / "cases", "--all").out.count("rater blank") == 12


def test_check_of_a_sound_folder(annotruth: Run, cases: Path) -> None:
    shutil.rmtree(cases / "raters" / "blank")
    ended = annotruth("check", cases)
    assert (ended.code, ended.err) == (0, "")
    assert "No problem found" in ended.out


def test_a_trained_run(home: Path) -> None:
    assert (home / "run" / "model.annotruth").is_file()
    assert (home / "run" / "checkpoints" / "last.ckpt").is_file()
    asked = json.loads((home / "run" / "run.json").read_text())
    assert asked["params"]["max_epochs"] == 1
    assert asked["cases"] == str((home / "cases").resolve())


def test_predicting(annotruth: Run, home: Path, out: Path, fingerprint: Run) -> None:
    before = fingerprint(home)
    ended = annotruth("predict", home / "run", home / "digits" / "images", "-o", out, "-q")
    assert ended.code == 0
    assert "12 images labelled" in ended.out
    label = np.asarray(Image.open(out / "labels" / "digit_3.png"))
    assert label.shape == (28, 28)
    assert set(np.unique(label)) <= {0, 1}
    assert (out / "probabilities" / "digit_3.tiff").is_file()
    one = annotruth("predict", home / "run" / "model.annotruth", home / "digits/images/digit_3.png", "-o", out / "one")
    assert one.code == 0
    np.testing.assert_array_equal(np.asarray(Image.open(out / "one" / "labels" / "digit_3.png")), label)
    assert fingerprint(home) == before


def test_predicting_after_a_recurrence_and_with_confidences(annotruth: Run, home: Path, out: Path) -> None:
    run, images = out / "run", home / "digits" / "images"
    assert annotruth("train", home / "cases", "-o", run, "--method", "mrprism", *QUICK).code == 0
    found = []
    for number, asked in enumerate([(), ("--recurrence", 0), ("--confidence", "over=9", "--confidence", "blank=0")]):
        assert annotruth("predict", run, images, "-o", out / str(number), "-q", *asked).code == 0
        found.append(tifffile.imread(out / str(number) / "probabilities" / "digit_3.tiff"))
    assert not np.allclose(found[0], found[1])
    assert not np.allclose(found[0], found[2])


def test_reporting(annotruth: Run, home: Path, out: Path) -> None:
    ended = annotruth("report", home / "run", "-o", out / "seen.html")
    assert ended.code == 0
    assert "in a browser" in ended.out
    page = (out / "seen.html").read_text()
    assert all(rater in page for rater in RATERS)


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


# -- bad input --------------------------------------------------------------------------------------------------


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
    annotruth: Run, cases: Path, out: Path, fingerprint: Run, how: str
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


def assert_one_paragraph(text: str) -> None:
    assert text.startswith("error: ")
    assert text.count("\n") == 1
    assert "Traceback" not in text


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
    ],
)
def test_wrong_settings_of_training(annotruth: Run, home: Path, out: Path, arguments: list[str], message: str) -> None:
    ended = annotruth("train", home / "cases", "-o", out, "--quiet", *arguments)
    assert ended.code == 2
    assert message in ended.err
    assert_one_paragraph(ended.err)
    assert not out.exists()


def test_resuming_with_other_cases_is_refused(annotruth: Run, home: Path, cases: Path) -> None:
    ended = annotruth("train", cases, "-o", home / "run", "--resume", "--quiet")
    assert ended.code == 2
    assert "learns from" in ended.err


def test_wrong_use_of_the_other_verbs(annotruth: Run, home: Path, out: Path, fingerprint: Run) -> None:
    digits, run, nowhere = home / "digits", home / "run", home / "nowhere"
    (out / "sub").mkdir(parents=True)
    (out / "notes.txt").write_text("mine")
    before = fingerprint(home), fingerprint(out)
    for command, message in [
        (("simulate", nowhere, "-o", out / "new"), "no such folder"),
        (("simulate", digits / "images", "-o", out / "new"), "without masks"),
        (("simulate", digits, "-o", out / "new", "--raters", "saint"), "Unknown kind of mask rater 'saint'"),
        (("simulate", digits, "-o", out / "new", "--keep", "many"), "--keep is 'all' or a whole number"),
        (("simulate", digits, "-o", out / "new", "--keep", "9"), "how many of the 5 raters"),
        (("simulate", digits, "-o", out), "already holds files"),
        (("predict", nowhere, digits / "images", "-o", out / "new"), "There is no model"),
        (("predict", digits, digits / "images", "-o", out / "new"), "There is no model"),
        (("predict", run, nowhere, "-o", out / "new"), "no such folder"),
        (("predict", run, digits / "images", "-o", out), "already holds files"),
        (("predict", run, digits / "images", "-o", out / "new", "--recurrence", 0), "knows nothing of recurrence"),
        (("predict", run, digits / "images", "-o", out / "new", "--confidence", "over"), "rater=number, as ann=2"),
        (("report", nowhere), "holds no run"),
        (("report", run, "--cases", nowhere, "-o", out / "new.html"), "no such file or folder"),
    ]:
        ended = annotruth(*command)
        assert ended.code == 2, command
        assert message in ended.err, (command, ended.err)
        assert_one_paragraph(ended.err)
        assert (fingerprint(home), fingerprint(out)) == before, command


def test_debug_shows_where_it_went_wrong(annotruth: Run, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        annotruth("train", tmp_path / "nowhere", "-o", tmp_path / "out", "--debug")


# -- help -------------------------------------------------------------------------------------------------------


def test_help_lists_the_verbs(annotruth: Run) -> None:
    ended = annotruth("--help")
    assert ended.code == 0
    for verb in ("demo", "check", "simulate", "fuse", "train", "predict", "report"):
        assert verb in ended.out
    assert "--debug" in ended.out


@pytest.mark.parametrize("verb", [command.callback.__name__ for command in app.registered_commands if command.callback])
def test_every_verb_has_an_example(annotruth: Run, verb: str) -> None:
    ended = annotruth(verb, "--help")
    assert ended.code == 0
    assert f"Example:  annotruth {verb}" in ended.out
