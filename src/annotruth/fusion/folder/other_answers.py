"""From a table of answers that are no classes to a folder of results.

OUT/truth.csv     a row per item: its score and rank, its value, or its findings
OUT/raters.csv    a row per rater, the best first
OUT/fusion.json   settings, all that was learnt, warnings
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import annotruth
from annotruth.errors import InputError
from annotruth.fusion.folder.results import JSON, write_json
from annotruth.fusion.other_answers import make_model
from annotruth.fusion.other_answers.base import AnswerModel
from annotruth.io import atomic, fresh_folder, refuse_used_folder
from annotruth.io.answer_kinds import load_answers
from annotruth.io.locks import only_writer
from annotruth.io.names import to_cell

if TYPE_CHECKING:
    import pandas as pd


def fuse_answers(
    source: str | Path,
    output: str | Path,
    method: str,
    options: Mapping[str, Any] | None = None,
    *,
    duplicates: str = "error",
    overwrite: bool = False,
) -> tuple[AnswerModel[Any], list[Warning]]:
    """Fuse comparisons, marks or findings.

    Parameters
    ----------
    source : a CSV or Parquet file with the columns that the method takes
    method : one of :func:`annotruth.fusion.other_answers.model_names`
    options : the method's own, by name
    duplicates : for findings, what to do when a rater says two things of the same: "error" or "keep-last"
    overwrite : replace what an earlier call left in the folder

    Returns
    -------
    The model, with all it learnt, and what the user should know of it.
    """
    started = time.perf_counter()
    output = Path(output)
    model = make_model(method, options)
    refuse_used_folder(output, overwrite)
    with only_writer(output):
        answers = load_answers(source, model.takes, duplicates)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                model.fit(answers)
            except InputError as error:
                raise InputError(f"{source}: {error}") from None
        fresh_folder(output, overwrite)
        _write(output / "truth.csv", model.truth_)
        _write(output / "raters.csv", model.ranking_)
        content = {
            "annotruth": annotruth.__version__, "finished": True, "source": source, "method": method,
            "answers": model.takes.__name__, "settings": model.get_params(),
            **{name.rstrip("_"): value for name, value in vars(model).items() if name.endswith("_")},
            "warnings": [each.message for each in caught], "seconds": round(time.perf_counter() - started, 3),
        }  # fmt: skip
        write_json(output / JSON, content)
    return model, [each.message for each in caught if isinstance(each.message, Warning)]


def _write(path: Path, table: pd.DataFrame) -> None:
    """Write a table in which no name is taken for a formula by a spreadsheet."""
    numbers = table.select_dtypes("number").columns
    words = {str(name): [to_cell(value) for value in table[name]] for name in table if name not in numbers}
    safe = table.assign(**words).rename(columns=to_cell)
    with atomic(path) as temporary:
        safe.to_csv(temporary, index=False, float_format="%.10g", lineterminator="\n")
