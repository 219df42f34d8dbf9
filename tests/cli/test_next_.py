"""``annotruth next``: what it prints, what it leaves behind, how it ends."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import annotruth as at
from annotruth.io import write_case_folder, write_table

Run = Callable[..., Any]


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 40)
    answers = np.where(rng.random((40, 3)) < [0.9, 0.8, 0.6], truth[:, None], 1 - truth[:, None])
    answers[:, 1:][rng.random((40, 2)) < 0.5] = -1
    made = at.Annotations.from_answers(answers, raters=["ann", "bob", "=cy"], classes=["cat", "dog"])
    return write_table(tmp_path / "labels.csv", made)


def test_a_table(annotruth: Run, labels: Path, tmp_path: Path) -> None:
    queue = tmp_path / "queue.csv"
    ended = annotruth("next", labels, "--budget", 12, "-o", queue)
    assert ended.code == 0
    assert "Expected accuracy" in ended.out
    table = pd.read_csv(queue)
    assert (table["action"] == "label").sum() == 12
    assert set(table["rater"].dropna()) <= {"bob", "'=cy"}  # ann labelled everything
    assert (tmp_path / "queue.curve.csv").is_file()
    assert (tmp_path / "queue.curve.png").is_file()
    again = annotruth("next", labels, "--budget", 12, "-o", queue)
    assert again.code == 2
    assert "add --overwrite" in again.err
    assert annotruth("next", labels, "--budget", 12, "-o", queue, "--overwrite").code == 0


def test_costs_and_capacities(annotruth: Run, labels: Path, tmp_path: Path) -> None:
    costs, queue = tmp_path / "costs.csv", tmp_path / "queue.csv"
    costs.write_text("rater,cost,capacity\nann,1,\nbob,2,3\n'=cy,1,\n")
    ended = annotruth("next", labels, "--budget", 12, "--costs", costs, "--capacity", 5, "-o", queue)
    assert ended.code == 0
    table = pd.read_csv(queue)
    assert table["cost"].sum() <= 12
    assert (table["rater"] == "bob").sum() <= 3
    assert (table["rater"] == "'=cy").sum() <= 5


def test_costs_from_durations(annotruth: Run, labels: Path, tmp_path: Path) -> None:
    table = pd.read_csv(labels)
    table["seconds"] = np.where(table["rater"] == "bob", 30, 10)
    table.to_csv(labels, index=False)
    ended = annotruth("next", labels, "--budget", 60, "--durations", "seconds", "-o", tmp_path / "queue.csv")
    assert ended.code == 0
    queue = pd.read_csv(tmp_path / "queue.csv")
    assert set(queue[queue["rater"] == "bob"]["cost"]) <= {30}
    assert queue["cost"].sum() <= 60


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--budget", 0), "more than 0, not 0"),
        (("--budget", 5, "--strategy", "magic"), "Unknown strategy"),
        (("--budget", 5, "--capacity", 0), "leave nobody to ask"),
        (("--budget", 5, "--option", "tol=1"), "--option goes with --method"),
        (("--budget", 5, "--features", "x.csv"), "--features goes with --run"),
        (("--budget", 5, "--costs", "COSTS"), "COSTS.csv: Costs are missing for 2 of 3 raters: bob, =cy"),
        (("--budget", 5, "--costs", "COSTS", "--durations", "t"), "not by both"),
        (("--budget", 5, "--durations", "t"), "no column 't' among"),
        (("--budget", 5, "--run", "RUN"), "there is no such run"),
        (("--budget", 5, "--gold", "90%"), "at most 50%"),
        (("--budget", 5, "--gold", "5%", "--gold", "6%"), "one share of hidden gold"),
        (("--budget", 5, "--strategy", "bald"), "more than one run"),
        (("--budget", 5, "--kinds", "COSTS"), "no column 'item'"),
    ],
)
def test_wrong_use(
    annotruth: Run, labels: Path, tmp_path: Path, words: tuple[Any, ...], said: str,
    assert_one_paragraph: Callable[[str], None],
) -> None:  # fmt: skip
    (tmp_path / "COSTS").with_suffix(".csv").write_text("rater,cost\nann,1\n")
    given = [tmp_path / "COSTS.csv" if word == "COSTS" else word for word in words]
    ended = annotruth("next", labels, *given, "-o", tmp_path / "queue.csv")
    assert ended.code == 2
    assert said in ended.err
    assert_one_paragraph(ended.err)
    assert not (tmp_path / "queue.csv").exists()


def test_a_queue_is_a_csv_file(annotruth: Run, labels: Path, tmp_path: Path) -> None:
    assert annotruth("next", labels, "--budget", 5, "-o", tmp_path / "queue").code == 2


def test_known_truth_is_not_bought_again(annotruth: Run, labels: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold.csv"
    gold.write_text("item,truth\n" + "".join(f"item_{number},cat\n" for number in range(20)))
    queue = tmp_path / "queue.csv"
    assert annotruth("next", labels, "--budget", 40, "--gold", gold, "--method", "dawid-skene", "-o", queue).code == 0
    assert not set(pd.read_csv(queue)["item"]) & {f"item_{number}" for number in range(20)}


def test_a_share_of_hidden_gold(annotruth: Run, labels: Path, tmp_path: Path) -> None:
    gold, queue = tmp_path / "gold.csv", tmp_path / "queue.csv"
    gold.write_text("item,truth\n" + "".join(f"item_{number},cat\n" for number in range(20)))
    ended = annotruth("next", labels, "--budget", 20, "--gold", gold, "--gold", "10%", "-o", queue)
    assert ended.code == 0
    assert "Keep it from the raters" in ended.out
    hidden = pd.read_csv(tmp_path / "queue.gold.csv")
    assert len(hidden) >= 1
    assert set(hidden["item"]) <= {f"item_{number}" for number in range(20)}


def test_costs_by_kind_learnt_from_durations(annotruth: Run, labels: Path, tmp_path: Path) -> None:
    table = pd.read_csv(labels)
    table["seconds"], table["kind"] = 10, "small"
    table.to_csv(labels, index=False)
    given = ("--durations", "seconds", "--kinds", labels)
    assert annotruth("next", labels, "--budget", 50, *given, "-o", tmp_path / "queue.csv").code == 0
    assert pd.read_csv(tmp_path / "queue.csv")["cost"].dropna().tolist() == [10.0] * 5


def test_masks_of_which_one_is_bad(annotruth: Run, tmp_path: Path) -> None:
    masks = np.zeros((4, 3, 24, 24), dtype=np.uint8)
    masks[:, :, 6:18, 6:18] = 1
    masks[1, 1, 4:20, 4:20] = 1
    masks[1:, 2] = 255
    folder = write_case_folder(tmp_path / "cases", at.Annotations.from_masks(masks, raters=["ann", "bob", "cy"]))
    queue = tmp_path / "queue.csv"
    assert annotruth("next", folder, "--budget", 1, "-o", queue).code == 0
    assert pd.read_csv(queue)[["item", "rater"]].iloc[0].tolist() == ["item_1", "cy"]
    bad = next(iter((folder / "raters" / "ann").glob("item_0*")))
    np.save(bad, np.zeros((3, 3), dtype=np.uint8))
    ended = annotruth("next", folder, "--budget", 1, "-o", queue, "--overwrite")
    assert ended.code == 1
    assert "set aside" in ended.err
    assert "item_0" in ended.err


def test_a_model_looks_at_cases_that_nobody_labelled(annotruth: Run, home: Path, tmp_path: Path) -> None:
    cases = Path(shutil.copytree(home / "cases", tmp_path / "cases"))
    for mask in (cases / "raters").glob("*/digit_3.*"):
        mask.unlink()
    ended = annotruth("next", cases, "--run", home / "run", "--budget", 60, "-o", tmp_path / "queue.csv")
    assert ended.code == 0
    table = pd.read_csv(tmp_path / "queue.csv")
    row = table[(table["item"] == "digit_3") & (table["action"] == "label")].iloc[0]
    assert row["reason"].startswith("nobody has labelled it")


def test_a_model_looks_at_items_that_nobody_labelled(annotruth: Run, labels: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    features = pd.DataFrame({"item": [f"item_{number}" for number in range(50)]})
    features[["height", "width"]] = rng.normal(size=(50, 2))
    features.to_csv(tmp_path / "features.csv", index=False)
    run, queue = tmp_path / "run", tmp_path / "queue.csv"
    given = ("--features", tmp_path / "features.csv")
    trained = annotruth("train", labels, *given, "-o", run, "--epochs", 1, "--quiet", "--accelerator", "cpu")
    assert trained.code == 0
    ended = annotruth("next", labels, "--run", run, *given, "--budget", 30, "-o", queue)
    assert ended.code == 0
    assert set(pd.read_csv(queue)["item"]) & {f"item_{number}" for number in range(40, 50)}
    assert annotruth("next", labels, "--run", run, "--budget", 30, "-o", queue, "--overwrite").code == 2
