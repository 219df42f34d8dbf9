"""Which kind of answers a table holds, and the method for it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from annotruth import Comparisons, Findings, Marks, load
from annotruth.errors import InputError
from annotruth.io.answer_kinds import advise_method, kind_of, load_answers

HEADS = {
    "noisy-bradley-terry": ["item_left", "item_right", "rater", "better"],
    "multi-label": ["item", "rater", "finding", "present"],
    "continuous-staple": ["item", "rater", "value"],
    "dawid-skene": ["task", "worker", "label"],
}
ROWS = {
    "noisy-bradley-terry": [("a", "b", "ann", "a"), ("b", "a", "bob", "a")],
    "multi-label": [("a", "ann", "cyst", 1), ("a", "bob", "cyst", 0)],
    "continuous-staple": [("a", "ann", 3.5), ("a", "bob", 4)],
    "dawid-skene": [("a", "ann", "cat"), ("a", "bob", "dog")],
}


def _table(folder: Path, method: str, suffix: str = ".csv") -> Path:
    path = folder / f"table{suffix}"
    frame = pd.DataFrame(ROWS[method], columns=HEADS[method])
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    return path


@pytest.mark.parametrize("method", HEADS)
def test_columns_tell_the_method(method: str) -> None:
    assert f"take --method {method}" in advise_method(HEADS[method])
    assert advise_method(["name", "age"]) == ""
    assert kind_of([]) is None


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(("method", "kind"), list(zip(HEADS, [Comparisons, Findings, Marks])))
def test_tables_of_every_kind_are_read(tmp_path: Path, method: str, kind: type, suffix: str) -> None:
    assert len(load_answers(_table(tmp_path, method, suffix), kind)) == 2


@pytest.mark.parametrize(("method", "kind"), list(zip(HEADS, [Findings, Marks, Comparisons, Comparisons])))
def test_a_table_of_another_kind_is_refused_with_the_method_for_it(tmp_path: Path, method: str, kind: type) -> None:
    path = _table(tmp_path, method)
    with pytest.raises(InputError, match=f"table.csv: A table of .* needs .* take --method {method}"):
        load_answers(path, kind)


@pytest.mark.parametrize("method", ["noisy-bradley-terry", "multi-label"])
def test_whoever_wants_classes_is_told_the_method(tmp_path: Path, method: str) -> None:
    with pytest.raises(InputError, match=f"needs the columns item, rater, label. .* take --method {method}"):
        load(_table(tmp_path, method))


def test_files_that_are_no_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is a folder. A table of marks is one file, .* item, rater, value"):
        load_answers(tmp_path, Marks)
    with pytest.raises(InputError, match="cannot be opened"):
        load_answers(tmp_path / "no.csv", Marks)
    (tmp_path / "rows.csv").write_text("item,rater,value\na,ann,3\nb,ann,much\n")
    with pytest.raises(InputError, match=r"rows.csv: Row 2 .*'much' is no finite number"):
        load_answers(tmp_path / "rows.csv", Marks)
