"""Tables of comparisons, marks and findings become folders of results."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from annotruth.errors import InputError
from annotruth.fusion.folder.other_answers import fuse_answers
from annotruth.fusion.other_answers import make_model, model_names
from annotruth.fusion.other_answers.checks import made_up_answers
from annotruth.io.answer_kinds import load_answers


def _table(folder: Path, method: str) -> Path:
    """A table of made-up answers for a method; one of the raters has the name of a formula."""
    answers = made_up_answers(make_model(method).takes)
    raters = [("=1+1" if n == 1 else f"r{n}") for n in answers.rater]
    if hasattr(answers, "left"):
        columns = {
            "item_left": [answers.items[n] for n in answers.left],
            "item_right": [answers.items[n] for n in answers.right],
            "better": ["left" if left else "right" for left in answers.left_better],
        }
    else:
        columns = {"item": [answers.items[n] for n in answers.item]}
        columns |= {"value": answers.value} if hasattr(answers, "value") else {
            "finding": [answers.findings[n] for n in answers.finding], "present": answers.present,
        }  # fmt: skip
    pd.DataFrame({"rater": raters, **columns}).to_csv(folder / "table.csv", index=False)
    return folder / "table.csv"


@pytest.mark.parametrize("method", model_names())
def test_the_folder_holds_what_the_model_learnt(tmp_path: Path, method: str) -> None:
    path = _table(tmp_path, method)
    model, warnings = fuse_answers(path, tmp_path / "out", method)
    assert warnings == []
    expected = make_model(method).fit(load_answers(path, model.takes))
    truth = pd.read_csv(tmp_path / "out" / "truth.csv", keep_default_na=False)
    pd.testing.assert_frame_equal(truth, expected.truth_, rtol=1e-6, check_dtype=False)
    raters = pd.read_csv(tmp_path / "out" / "raters.csv")
    assert "'=1+1" in set(raters["rater"]), "no spreadsheet takes it for a formula"
    content = json.loads((tmp_path / "out" / "fusion.json").read_text())
    assert content["method"] == method
    assert content["settings"] == model.get_params()
    assert content["items"] == list(model.items_)
    assert content["converged"]


def test_a_used_folder_is_kept_unless_told_otherwise(tmp_path: Path) -> None:
    path = _table(tmp_path, "bradley-terry")
    fuse_answers(path, tmp_path / "out", "bradley-terry")
    with pytest.raises(InputError, match="overwrite"):
        fuse_answers(path, tmp_path / "out", "bradley-terry")
    fuse_answers(path, tmp_path / "out", "bradley-terry", overwrite=True)


def test_what_a_model_cannot_take_names_the_file_and_leaves_no_folder(tmp_path: Path) -> None:
    (tmp_path / "alone.csv").write_text("item,rater,value\na,ann,3\nb,bob,4\n")
    with pytest.raises(InputError, match=r"alone.csv: No item was marked by two raters"):
        fuse_answers(tmp_path / "alone.csv", tmp_path / "out", "continuous-staple")
    assert not (tmp_path / "out").exists()
