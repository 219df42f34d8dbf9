"""One writer at a time: the second is refused, and a lock without an owner stands in nobody's way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from annotruth.errors import InputError
from annotruth.io.locks import LOCK_FILE, only_writer

HOLD = """
import sys, time
from pathlib import Path
from annotruth.io.locks import only_writer
with only_writer(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_refused_and_told_whose_lock_it_is(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(InputError, match=rf"another job \(process {holder.pid}\) is writing there"):
            only_writer(tmp_path).__enter__()
        holder.kill()
        holder.wait()
    assert (tmp_path / LOCK_FILE).is_file()  # left by the one that was killed
    with only_writer(tmp_path):
        pass
    assert not list(tmp_path.iterdir())


def test_of_twenty_threads_one_at_a_time_writes(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor
    from threading import Barrier

    together, inside = Barrier(20), []

    def write(number: int) -> bool:
        together.wait()
        try:
            with only_writer(tmp_path / "out"):
                inside.append(number)
                assert len(inside) == 1
                (tmp_path / "out" / "result").write_text(str(number))
                inside.remove(number)
            return True
        except InputError:
            return False

    with ThreadPoolExecutor(20) as threads:
        done = list(threads.map(write, range(20)))
    assert any(done)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["result"]


def test_a_job_that_fails_early_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="bad"), only_writer(tmp_path / "deep" / "out"):
        raise ValueError("bad input")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_was_there_stays(tmp_path: Path) -> None:
    with only_writer(tmp_path):
        pass
    assert tmp_path.is_dir()


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="is a file"):
        only_writer(tmp_path / "file").__enter__()
    with pytest.raises(InputError, match="cannot be made"):
        only_writer(tmp_path / "file" / "out").__enter__()


def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "out").mkdir()
    os.symlink(tmp_path / "precious", tmp_path / "out" / LOCK_FILE)
    with pytest.raises(InputError, match="cannot be written into"):
        only_writer(tmp_path / "out").__enter__()
    assert (tmp_path / "precious").read_text() == "mine"
