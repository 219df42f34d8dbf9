"""``annotruth fuse``: what it prints, what it leaves behind, how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import annotruth as at
from annotruth.fusion.checks import noisy_masks
from annotruth.io import write_case_folder
from annotruth.io.locks import only_writer

Run = Callable[..., Any]


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    masks, _ = noisy_masks(n_items=4)
    annotations = at.Annotations.from_masks(masks, raters=["ann", "bob", "cy", "di", "ed"], classes=3)
    return write_case_folder(tmp_path / "cases", annotations)


def test_a_folder(annotruth: Run, cases: Path, out: Path, fingerprint: Run) -> None:
    before = fingerprint(cases)
    ended = annotruth("fuse", cases, "-o", out)
    assert ended.code == 0
    assert ended.out.index("ann") < ended.out.index("ed")  # by skill
    assert str(out.name) in ended.out
    assert sorted(path.name for path in out.iterdir()) == ["fusion.json", "labels", "probabilities", "raters.csv"]
    assert len(list((out / "labels").iterdir())) == len(list((out / "probabilities").iterdir())) == 4
    assert fingerprint(cases) == before


def test_all_settings_arrive(annotruth: Run, cases: Path, out: Path, tmp_path: Path) -> None:
    (tmp_path / "gold").mkdir()
    np.save(tmp_path / "gold" / "item_0.npy", np.ones((24, 20), dtype=np.uint8))
    ended = annotruth(
        "fuse", cases, "--method", "spatial-staple", "--scope", "case", "--gold", tmp_path / "gold", "--jobs", 2,
        "--option", "window=[5,7]", "--option", "shrinkage=0.5", "--option", "prior=votes", "-o", out, "--quiet",
    )  # fmt: skip
    assert ended.code == 0
    content = json.loads((out / "fusion.json").read_text())
    settings = content["settings"]
    assert (content["method"], settings["scope"], settings["window"]) == ("spatial-staple", "case", [5, 7])
    assert (settings["shrinkage"], settings["prior"]) == (0.5, "votes")
    assert (np.load(out / "labels" / "item_0.npy") == 1).all()


def test_a_bad_case_is_listed_at_the_end(annotruth: Run, cases: Path, out: Path, fingerprint: Run) -> None:
    (cases / "raters" / "bob" / "item_2.npy").write_bytes(b"no array")
    before = fingerprint(cases)
    ended = annotruth("fuse", cases, "-o", out)
    assert ended.code == 1
    assert "set aside:" in ended.err
    assert "item_2, rater bob" in ended.err
    assert "Traceback" not in ended.err
    assert sorted(path.name for path in (out / "labels").iterdir()) == ["item_0.npy", "item_1.npy", "item_3.npy"]
    assert fingerprint(cases) == before


def test_warnings_are_shown(annotruth: Run, cases: Path, out: Path) -> None:
    mask = np.load(cases / "raters" / "ann" / "item_0.npy")
    for rater in ("ann", "bob", "cy", "di", "ed"):
        mask[0, 0] = 255
        np.save(cases / "raters" / rater / "item_0.npy", mask)
    ended = annotruth("fuse", cases, "-o", out, "--option", "max_iter=1")
    assert ended.code == 0
    assert "warning: Nobody labelled 1 of the items" in ended.err
    assert "did not settle within max_iter" in ended.err


def test_a_table(annotruth: Run, out: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{item},worker {rater},{rng.integers(2)}" for item in range(20) for rater in range(30)]
    (tmp_path / "answers.csv").write_text("\n".join(["item,rater,label", *rows]))
    ended = annotruth("fuse", tmp_path / "answers.csv", "--method", "majority", "-o", out)
    assert ended.code == 0
    assert "… and 10 more." in ended.out
    assert sorted(path.name for path in out.iterdir()) == ["fusion.json", "raters.csv", "truth.csv"]


def test_a_table_of_comparisons(annotruth: Run, out: Path, tmp_path: Path) -> None:
    rows = [f"{left},{right},ann,{max(left, right)}" for left in range(4) for right in range(4) if left != right]
    (tmp_path / "pairs.csv").write_text("\n".join(["item_left,item_right,rater,better", *rows]))
    ended = annotruth("fuse", tmp_path / "pairs.csv", "--method", "bradley-terry", "-o", out)
    assert ended.code == 0
    assert "truth.csv (4 items), raters.csv and fusion.json" in ended.out
    assert (out / "truth.csv").read_text().splitlines()[4].startswith("3,1,")
    ended = annotruth("fuse", tmp_path / "pairs.csv", "-o", out, "--overwrite")
    assert ended.code == 2
    assert "This is a table of comparisons: take --method noisy-bradley-terry or bradley-terry." in ended.err


@pytest.mark.parametrize("method", ["dawid-skene", "auto"])
def test_measurements_are_no_classes(annotruth: Run, out: Path, tmp_path: Path, method: str) -> None:
    rows = [f"{item},{rater},{item + 0.1 * rater}" for item in range(20) for rater in range(3)]
    (tmp_path / "marks.csv").write_text("\n".join(["item,rater,label", *rows]))
    ended = annotruth("fuse", tmp_path / "marks.csv", "--method", method, "-o", out)
    assert ended.code == 2
    assert "60 different ones in 60 answers, and so no classes. Take --method continuous-staple" in ended.err
    assert annotruth("fuse", tmp_path / "marks.csv", "--method", "continuous-staple", "-o", out).code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--method", "stable"],
            "Unknown method 'stable'. Did you mean 'staple'? Known: averaged, clustered-dawid-skene, collate",
        ),
        (["--scope", "world"], "Unknown scope 'world'"),
        (["--option", "max_iter"], "An option is written name=value, not 'max_iter'"),
        (["--option", "max_iter=many"], "max_iter must be a whole number"),
        (["--option", "speed=9"], "no option 'speed'"),
        (["--jobs", "0"], "at least 1"),
        (["--gold", "nowhere"], "nowhere: there is no such file"),
        (["--method", "continuous-staple"], "is a folder. A table of marks is one file"),
        (["--method", "multi-label", "--scope", "case"], "multi-label takes no --scope. Leave it out."),
        (["--method", "multi-label", "--stream"], "multi-label takes no --stream"),
        (["--method", "bradley-terry", "--dask", "tcp://127.0.0.1:9"], "bradley-terry takes no --dask"),
        (
            ["--objects", "--method", "glad", "--gold", "nowhere"],
            "Object by object, fuse takes no --method and no --gold. Leave them out.",
        ),
        (["--jobs", "2", "--dask", "tcp://127.0.0.1:9"], "not both"),
    ],
)
def test_wrong_use(annotruth: Run, cases: Path, out: Path, arguments: list[str], message: str) -> None:
    ended = annotruth("fuse", cases, "-o", out, *arguments)
    assert ended.code == 2
    assert message in ended.err
    assert ended.err.count("\n") == 1, "one paragraph"
    assert not out.exists()


def test_bad_folders(annotruth: Run, cases: Path, out: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for source, message in [(tmp_path / "empty", "not a single mask"), (tmp_path / "nowhere", "no such file")]:
        ended = annotruth("fuse", source, "-o", out)
        assert ended.code == 2
        assert message in ended.err
        assert ended.err.count("\n") == 1
    for file in (cases / "raters" / "ann").iterdir():
        np.save(file, np.full((5, 5), 0.25))
    ended = annotruth("fuse", cases, "-o", out)
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "something is wrong with every case" in ended.err
    assert not out.exists()


def test_contradictory_answers_and_gold(annotruth: Run, out: Path, tmp_path: Path) -> None:
    table, gold = tmp_path / "answers.csv", tmp_path / "gold.csv"
    table.write_text("item,rater,label\na,ann,cat\na,ann,dog\n")
    ended = annotruth("fuse", table, "-o", out)
    assert ended.code == 2
    assert "a by ann (cat and dog)" in ended.err
    table.write_text("item,rater,label\na,ann,cat\na,bob,dog\n")
    gold.write_text("item,truth\na,cat\na,dog\n")
    ended = annotruth("fuse", table, "-o", out, "--gold", gold)
    assert ended.code == 2
    assert "a has two truths, cat and dog" in ended.err
    assert not out.exists()


def test_a_table_in_parts(annotruth: Run, out: Path, tmp_path: Path) -> None:
    table = tmp_path / "answers.csv"
    table.write_text("item,rater,label\na,ann,cat\na,bob,dog\na,cy,cat\nb,ann,dog\nb,bob,dog\n")
    ended = annotruth("fuse", table, "-o", out, "--method", "majority", "--stream")
    assert ended.code == 0, ended.err
    assert "Raters, most skilful first" in ended.out
    assert (out / "truth.csv").read_text().splitlines()[1:] == ['"a","cat",1,0', '"b","dog",0,1']
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(b"PAR1 and no more")
    ended = annotruth("fuse", cut, "-o", tmp_path / "none", "--method", "majority", "--stream")
    assert ended.code == 2
    assert "cut.parquet: cannot be read as a table" in ended.err
    assert "Traceback" not in ended.err
    assert not (tmp_path / "none").exists()


def test_a_used_folder_is_refused(annotruth: Run, cases: Path, out: Path, fingerprint: Run) -> None:
    assert annotruth("fuse", cases, "-o", out, "--method", "majority").code == 0
    before = fingerprint(out)
    ended = annotruth("fuse", cases, "-o", out)
    assert ended.code == 2
    assert "already holds files" in ended.err
    assert "--overwrite" in ended.err
    assert fingerprint(out) == before
    assert annotruth("fuse", cases, "-o", out, "--overwrite").code == 0
    assert json.loads((out / "fusion.json").read_text())["method"] == "staple"


def test_help_is_a_screen_with_an_example(annotruth: Run) -> None:
    ended = annotruth("fuse", "--help")
    assert ended.code == 0
    assert "Example:" in ended.out
    for name in ("--method", "--scope", "--jobs", "--dask", "--gold", "--overwrite"):
        assert name in ended.out


def test_no_deep_learning_library_is_loaded(cases: Path, out: Path) -> None:
    """Help, check and fuse must answer without waiting for PyTorch."""
    program = f"""
import sys
from annotruth.cli import main
for arguments in (["--help"], ["check", {str(cases)!r}], ["fuse", {str(cases)!r}, "-o", {str(out)!r}]):
    sys.argv = ["annotruth", *arguments]
    try:
        main()
    except SystemExit as end:
        assert not end.code, arguments
    heavy = {{"torch", "lightning", "monai"}} & sys.modules.keys()
    assert not heavy, (arguments, heavy)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (out / "raters.csv").is_file()


def test_two_fusions_into_one_folder_are_kept_apart(cases, out, annotruth):
    with only_writer(out):
        refused = annotruth("fuse", cases, "-o", out)
    assert refused.code == 2
    assert "another job (process" in refused.err
    assert not out.exists()


def test_a_signal_ends_a_fusion_with_its_exit_code_and_leaves_no_halves(cases, out):
    program = (
        "import sys, signal; import annotruth.fusion.folder as f;"
        "f.write_json = lambda *a: signal.raise_signal(signal.SIGTERM);"
        f"sys.argv = ['annotruth', 'fuse', {str(cases)!r}, '-o', {str(out)!r}];"
        "from annotruth.cli import main; main()"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 143, ended.stderr
    assert "Stopped by SIGTERM. Files in the folder are whole" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not list(out.rglob(".annotruth*"))
