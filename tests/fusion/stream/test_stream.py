"""A table that is read in parts gives what the whole table gives, whatever its parts and order, whoever works."""

from __future__ import annotations

import csv
import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import annotruth as at
from annotruth.errors import AnnotruthError, IdentifiabilityWarning, InputError
from annotruth.fusion import stream
from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.folder import fuse
from annotruth.fusion.registry import make_estimator
from annotruth.fusion.stream import StreamedTable
from annotruth.io import table_parts, write_truth_table
from annotruth.io.tables import read_truth

COLUMNS = ("item", "rater", "label")
Rows = list[tuple[str, str, str]]


def random_rows(seed: int, n_items: int = 60, n_raters: int = 6, n_classes: int = 3, given: int = 4) -> Rows:
    """Answers of raters of differing skill, in no order."""
    rng = np.random.default_rng(seed)
    truth, skill = rng.integers(0, n_classes, n_items), rng.uniform(0.5, 0.95, n_raters)
    rows = []
    for item in range(n_items):
        for rater in rng.permutation(n_raters)[: rng.integers(1, given + 1)]:
            label = truth[item] if rng.random() < skill[rater] else rng.integers(n_classes)
            rows.append((f"item {item}", f"rater {rater}", f"class {label}"))
    return [rows[place] for place in rng.permutation(len(rows))]


def put(path: Path, rows: Rows, group: int = 1000) -> Path:
    """Write rows as CSV, Parquet, or a folder of three Parquet files."""
    if path.suffix == ".csv":
        path.write_text("\n".join(map(",".join, [COLUMNS, *rows])))
        return path
    files = [path] if path.suffix else [path / f"{n}.parquet" for n in range(3)]
    for file, part in zip(files, np.array_split(np.array(rows, dtype=object), len(files))):
        file.parent.mkdir(exist_ok=True)
        table = {name: pa.array(part[:, n], pa.string()) for n, name in enumerate(COLUMNS)}
        pyarrow.parquet.write_table(pa.table(table), file, row_group_size=group)
    return path


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make parts and buckets so small that a table of a few rows has many."""

    def change(rows: int = 40, size: int = 300, bucket: int = 30) -> None:
        monkeypatch.setattr(table_parts, "PART_ROWS", rows)
        monkeypatch.setattr(table_parts, "PART_BYTES", size)
        monkeypatch.setattr(stream, "_BUCKET_ANSWERS", bucket)

    return change


def by_pickle(work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
    """Do the work as another process would, which gets and gives bytes."""
    sent = pickle.dumps(work)
    for task in tasks:
        yield pickle.loads(pickle.dumps(pickle.loads(sent)(pickle.loads(pickle.dumps(task)))))


def streamed(path: Path, out: Path, estimator: FusionEstimator, **more: Any) -> FusionEstimator:
    out.mkdir(exist_ok=True)
    n_items = StreamedTable(path, out, **more).fuse(estimator, lambda *_: None, "truth.csv")
    assert n_items == len((out / "truth.csv").read_text().splitlines()) - 1
    return estimator


def compare(estimator: FusionEstimator, whole: FusionEstimator, annotations: at.Annotations, out: Path) -> None:
    """Find the same matrices, frequencies and posteriors, and the same table of the truth."""
    assert (estimator.classes_, estimator.raters_) == (whole.classes_, whole.raters_)
    for name in ("confusion_", "prior_", "expected_counts_", "skill_", "labelled_counts_"):
        np.testing.assert_allclose(getattr(estimator, name), getattr(whole, name), rtol=0, atol=1e-8)
    expected = np.asarray(whole.predict_proba())
    np.testing.assert_allclose(estimator.posterior(whole.votes(), estimator.state_), expected, rtol=0, atol=1e-8)
    named = at.Annotations(
        kind="labels", items=whole.items_, raters=whole.raters_, classes=whole.classes_, answers=annotations.answers
    )
    right = write_truth_table(out.parent / "expected.csv", named, np.asarray(whole.predict()), expected)
    found, wanted = (list(csv.reader(path.open())) for path in (out / "truth.csv", right))
    assert [row[:2] for row in found] == [row[:2] for row in wanted]
    numbers = (np.array([row[2:] for row in rows[1:]], dtype=float) for rows in (found, wanted))
    np.testing.assert_allclose(*numbers, rtol=1e-5, atol=1e-7)
    assert [path.name for path in out.iterdir()] == ["truth.csv"], "nothing else is left"


@pytest.mark.filterwarnings("ignore::annotruth.errors.AnnotruthWarning", "ignore:.*did not settle")
@given(
    seed=st.integers(0, 10**6), group=st.integers(1, 60), rows=st.integers(5, 80), size=st.integers(200, 2000),
    bucket=st.integers(10, 200), kind=st.sampled_from(["a.csv", "a.parquet", "a"]),
    how=st.sampled_from([
        ("dawid-skene", {"max_iter": 12}), ("dawid-skene", {"one_coin": True, "max_iter": 12}), ("majority", {}),
        ("mean", {}), ("staple", {"max_iter": 12}), ("staple", {"foreground": "class 1", "max_iter": 12}),
    ]),
)  # fmt: skip
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_parts_give_what_the_whole_gives(
    tmp_path_factory: pytest.TempPathFactory,
    tiny: Callable[..., None],
    seed: int,
    group: int,
    rows: int,
    size: int,
    bucket: int,
    kind: str,
    how: tuple[str, dict[str, Any]],
) -> None:
    home = tmp_path_factory.mktemp("parts")
    tiny(rows, size, bucket)
    table = put(home / kind, random_rows(seed, n_items=30), group)
    annotations = at.load(table)
    whole = make_estimator(how[0], options=how[1]).fit(annotations)
    found = streamed(table, home / "out", make_estimator(how[0], options=how[1]), cluster=by_pickle)
    compare(found, whole, annotations, home / "out")


def test_tables_that_compiled_loops_go_over(tmp_path: Path) -> None:
    table = put(tmp_path / "a.parquet", random_rows(1, n_items=6000, given=3), group=3000)
    annotations = at.load(table)
    found = streamed(table, tmp_path / "out", at.DawidSkene())
    compare(found, at.DawidSkene().fit(annotations), annotations, tmp_path / "out")


def test_one_number_a_rater_where_matrices_are_too_many(
    tmp_path: Path, tiny: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny()
    monkeypatch.setattr("annotruth.fusion.dawid_skene.too_many_matrices", lambda *_: True)
    table = put(tmp_path / "a.parquet", random_rows(2))
    annotations = at.load(table)
    found = streamed(table, tmp_path / "out", at.DawidSkene(one_coin=True))
    compare(found, at.DawidSkene(one_coin=True).fit(annotations), annotations, tmp_path / "out")


@pytest.mark.filterwarnings("ignore::annotruth.errors.AnnotruthWarning")
@pytest.mark.parametrize("method", ["dawid-skene", "majority"])
def test_known_truth_is_heeded(tmp_path: Path, tiny: Callable[..., None], method: str) -> None:
    tiny()
    rows = random_rows(3)
    table = put(tmp_path / "a.csv", rows)
    known = tmp_path / "known.csv"
    known.write_text("item,truth\n" + "".join(f"item {n},class {n % 3}\n" for n in range(20)) + "item 30,unseen\n")
    annotations = at.load(table, known)
    whole = make_estimator(method).fit(annotations, read_truth(known))
    found = streamed(table, tmp_path / "out", make_estimator(method), truth=known, gold=True)
    assert "unseen" in found.classes_
    compare(found, whole, annotations, tmp_path / "out")
    known.write_text("item,truth\nitem 1,class 0\nnobody's,class 1\n")
    with pytest.raises(InputError, match="gold labels for items that do not exist: nobody's"):
        streamed(table, tmp_path / "again", make_estimator(method), truth=known, gold=True)
    assert not list((tmp_path / "again").iterdir())


def test_two_answers_of_a_rater_are_treated_as_in_memory(tmp_path: Path, tiny: Callable[..., None]) -> None:
    tiny()
    rows = random_rows(4)
    again = [(item, rater, f"class {(int(label[-1]) + 1) % 3}") for item, rater, label in rows[5:20]]
    table = put(tmp_path / "a.parquet", [*rows, *rows[:5], *again], group=7)
    with pytest.raises(InputError, match="and 5 more") as whole:
        at.load(table)
    with pytest.raises(InputError) as parts:
        streamed(table, tmp_path / "out", at.DawidSkene())
    said, where = str(parts.value).split(" The first of them: ")
    assert said == str(whole.value)
    rows_told = [int(each.split("row ")[1].split(" ")[0]) - 1 for each in where.split(" and ")]
    table_rows = [*rows, *rows[:5], *again]
    one, other = (table_rows[row] for row in rows_told)
    assert one[:2] == other[:2]
    assert one[2] != other[2]
    assert f"a.parquet, row {rows_told[1] + 1} (row group {rows_told[1] // 7})" in where
    annotations = at.load(table, duplicates="keep-last")
    found = streamed(table, tmp_path / "out", at.DawidSkene(), duplicates="keep-last")
    compare(found, at.DawidSkene().fit(annotations), annotations, tmp_path / "out")


def test_doubts_are_those_of_the_whole_table(tmp_path: Path, tiny: Callable[..., None]) -> None:
    apart = [(f"other {item}", f"other {rater}", label) for item, rater, label in random_rows(6, n_raters=3)]
    table = put(tmp_path / "a.parquet", random_rows(5) + apart)
    tiny(bucket=50)
    with pytest.warns(IdentifiabilityWarning, match="fall into 2 groups that share no item") as whole:
        at.DawidSkene(tol=1e-3).fit(at.load(table))
    with pytest.warns(IdentifiabilityWarning) as parts:
        streamed(table, tmp_path / "out", at.DawidSkene(tol=1e-3))
    assert [str(each.message) for each in parts] == [str(each.message) for each in whole]


def test_large_tables_are_read_in_parts_by_methods_that_can(
    tmp_path: Path, tiny: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny()
    monkeypatch.setattr(stream, "MAX_ROWS_IN_MEMORY", 50)
    table = put(tmp_path / "a", random_rows(7))
    stages: list[str] = []
    fusion = fuse(table, tmp_path / "out", "majority", progress=lambda stage, *_: stages.append(stage))
    assert list(dict.fromkeys(stages)) == ["Reading", "Sorting", "Estimating", "Deciding", "Writing"]
    assert fusion.fused.items_ == ()
    assert sorted(path.name for path in fusion.output.iterdir()) == ["fusion.json", "raters.csv", "truth.csv"]
    assert fuse(table, tmp_path / "whole", "wawa").fused.items_[0].startswith("item")
    with pytest.raises(
        InputError, match=r"Wawa\(\) learns from a whole table at once. To read it in parts, choose one"
    ):
        fuse(table, tmp_path / "other", "wawa", stream=True)
    with pytest.raises(InputError, match="auto compares methods on a whole table"):
        fuse(table, tmp_path / "other", "auto", stream=True)
    with pytest.raises(InputError, match=r"exclude_consensus=True.* learns from a whole table"):
        fuse(table, tmp_path / "other", "staple", options={"exclude_consensus": True}, stream=True)
    with pytest.raises(InputError, match="max_iter must be at least 1"):
        fuse(table, tmp_path / "other", "dawid-skene", options={"max_iter": 0}, stream=True)
    assert not (tmp_path / "other").exists()
    (tmp_path / "cases" / "raters").mkdir(parents=True)
    with pytest.raises(InputError, match="parts are for label tables"):
        fuse(tmp_path / "cases", tmp_path / "other", stream=True)


def test_bad_tables_leave_nothing_and_what_a_killed_job_left_is_removed(
    tmp_path: Path, tiny: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny()
    rows = random_rows(8)
    table = put(tmp_path / "a.csv", [*rows, ("item 1", "", "class 1")])
    with pytest.raises(InputError, match=rf"a\.csv: row {len(rows) + 1} has no rater"):
        fuse(table, tmp_path / "out", "majority", stream=True)
    assert not (tmp_path / "out").exists()
    put(table, rows)
    left = tmp_path / "out" / ".annotruth-stream-left"
    left.mkdir(parents=True)
    (left / "piece.bin").touch()
    fuse(table, tmp_path / "out", "majority", stream=True)
    assert not left.exists()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("annotruth.fusion.stream.np.save", full)
    with pytest.raises(AnnotruthError, match=r"out: answers could not be kept there .*: No space left on device"):
        fuse(table, tmp_path / "out", "majority", stream=True, overwrite=True)


def test_a_dask_cluster_shares_the_parts(tmp_path: Path, tiny: Callable[..., None]) -> None:
    distributed = pytest.importorskip("distributed")
    tiny()
    table = put(tmp_path / "a.parquet", random_rows(9), group=20)
    fuse(table, tmp_path / "alone", "majority", stream=True)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None, worker_dashboard_address=None
    ) as cluster:
        fuse(table, tmp_path / "out", "majority", scheduler=cluster.scheduler_address)
        with pytest.raises(InputError, match="learns from a whole table at once"):
            fuse(table, tmp_path / "other", "wawa", scheduler=cluster.scheduler_address)
    for name in ("truth.csv", "raters.csv"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()
