"""Threads, processes and Dask fuse the same folder to the same bits, also if some of them are killed."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from annotruth.errors import InputError
from annotruth.fusion.folder import fuse
from annotruth.parallel.workers import open_workers

Read = Callable[[Path], dict[str, Any]]


@pytest.fixture(scope="module")
def many(
    write_folder: Callable[..., None], spoil: Callable[[Path, str], None], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Sixty cases, one of them bad."""
    folder = tmp_path_factory.mktemp("many") / "cases"
    write_folder(folder, 60)
    (folder / "dataset.json").unlink()
    spoil(folder, "damaged")
    return folder


@pytest.fixture(scope="module")
def alone(many: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one process with one thread makes of them."""
    out = tmp_path_factory.mktemp("alone") / "out"
    fuse(many, out, jobs=1)
    return out


@pytest.fixture
def same(results: Read, note: Read) -> Callable[[Path, Path], None]:
    """Find the same results in two folders, and the same notes but for time and place."""

    def compare(one: Path, other: Path) -> None:
        assert results(one) == results(other)
        differ = {key for key, value in note(one).items() if note(other)[key] != value}
        assert differ <= {"seconds", "source", "set_aside"}
        assert [each["case"] for each in note(one)["set_aside"]] == [each["case"] for each in note(other)["set_aside"]]

    return compare


def test_threads_change_nothing(same: Callable[[Path, Path], None], many: Path, alone: Path, out: Path) -> None:
    fuse(many, out, jobs=3)
    same(out, alone)


def test_every_method_in_threads(same: Callable[[Path, Path], None], cases: Path, tmp_path: Path) -> None:
    smooth = {"smoothing": 0.5}
    for method, scope, options in [
        ("spatial-staple", "dataset", {}), ("spatial-staple", "case", {}), ("mean", "dataset", {}),
        ("staple", "dataset", smooth), ("staple", "case", smooth),
    ]:  # fmt: skip
        for jobs in (1, 2):
            fuse(cases, tmp_path / f"{method} {scope} {jobs}", method, scope=scope, options=options, jobs=jobs)
        same(tmp_path / f"{method} {scope} 2", tmp_path / f"{method} {scope} 1")


def test_the_compiled_loops_for_many_pixels_write_the_same(
    same: Callable[[Path, Path], None], many: Path, alone: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("annotruth.fusion._em.MANY_PIXELS", 0)
    fuse(many, out)
    same(out, alone)


def test_cases_are_smoothed_where_the_workers_are(cases: Path, out: Path) -> None:
    stages = []
    fuse(cases, out, options={"smoothing": 0.5}, progress=lambda stage, done, total: stages.append((stage, done)))
    rounds = stages.count(("Refining", 3))
    assert rounds >= 2
    assert stages.count(("Writing", 3)) == 1


@pytest.fixture
def in_processes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let processes fuse however small a folder; note how many, whenever some are opened."""
    opened: list[int] = []

    def open_noted(jobs: int, preload: Any) -> Any:
        opened.append(jobs)
        return open_workers(jobs, preload)

    monkeypatch.setattr("annotruth.fusion.folder.masks._MANY_PIXELS", 0)
    monkeypatch.setattr("annotruth.fusion.folder.masks.open_workers", open_noted)
    return opened


def test_processes_change_nothing(
    same: Callable[[Path, Path], None], many: Path, alone: Path, tmp_path: Path, in_processes: list[int]
) -> None:
    """Nor does one that is killed, which had kept masks of its cases."""
    cases = tmp_path / "cases"
    shutil.copytree(many, cases)
    (cases / "dataset.json").write_text(json.dumps({"classes": ["0", "1", "2"]}))
    killed = []

    def kill(stage: str, done: int, total: int) -> None:
        if (stage, done) == ("Writing", 5):
            killed.append(multiprocessing.active_children()[0].pid)
            os.kill(killed[0], signal.SIGKILL)

    fuse(cases, tmp_path / "out", jobs=2, processes=True, progress=kill)
    assert len(killed) == len(in_processes) == 1
    same(tmp_path / "out", alone)


def test_processes_that_are_stopped_leave_no_halves(
    write_folder: Callable[..., None], tmp_path: Path, in_processes: list[int]
) -> None:
    write_folder(tmp_path / "cases", 30)

    def stop(stage: str, done: int, total: int) -> None:
        if (stage, done) == ("Writing", 5):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fuse(tmp_path / "cases", tmp_path / "out", jobs=2, processes=True, progress=stop)
    assert len(in_processes) == 1
    left = [path.name for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert "case_0.npy" in left
    assert not [name for name in left if name.startswith(".")]
    assert not multiprocessing.active_children()


@pytest.mark.parametrize(("method", "options"), [("spatial-staple", {}), ("staple", {"smoothing": 0.5})])
@pytest.mark.parametrize("scope", ["dataset", "case"])
def test_methods_that_look_at_cases_several_times_do_so_in_processes(
    same: Callable[[Path, Path], None], cases: Path, tmp_path: Path, in_processes: list[int],
    method: str, options: dict[str, Any], scope: str,
) -> None:  # fmt: skip
    for jobs in (1, 2):
        fuse(cases, tmp_path / str(jobs), method, scope=scope, options=options, jobs=jobs, processes=True)
    same(tmp_path / "2", tmp_path / "1")
    assert len(in_processes) == 1  # not with one job


def test_processes_read_the_masks_of_a_folder_that_does_not_tell_its_classes(
    same: Callable[[Path, Path], None], many: Path, alone: Path, out: Path, in_processes: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("annotruth.io.sources.case_folder.read_mask", None)  # nobody reads here
    fuse(many, out, jobs=2, processes=True)
    assert in_processes == [2]
    same(out, alone)


def test_where_memory_is_short_fewer_threads_take_over_from_processes(
    same: Callable[[Path, Path], None], many: Path, alone: Path, out: Path, in_processes: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("annotruth.fusion.folder.masks._MAX_BYTES_AT_WORK", 1)
    fuse(many, out, jobs=2, processes=True)
    assert in_processes == [2]
    same(out, alone)


def test_a_killed_dask_worker_loses_nothing(
    same: Callable[[Path, Path], None], many: Path, alone: Path, out: Path
) -> None:
    distributed = pytest.importorskip("distributed")
    killed = []
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, worker_dashboard_address=None
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):

        def kill(stage: str, done: int, total: int) -> None:
            if (stage, done) == ("Writing", 5):
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        fuse(many, out, scheduler=cluster.scheduler_address, progress=kill)
    assert len(killed) == 1
    same(out, alone)


def test_dask_that_is_not_there(cases: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("annotruth.parallel.dask._ANSWER_WITHIN", 1)
    for address in ("tcp://127.0.0.1:9", "nonsense://"):
        with pytest.raises(InputError, match="No Dask scheduler answers"):
            fuse(cases, out, scheduler=address)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'annotruth\[dask\]'"):
        fuse(cases, out, scheduler="tcp://127.0.0.1:9")
    assert not out.exists()
