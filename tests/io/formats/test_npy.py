"""NPY: memory-mapped if large, and never unpickled."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest

from annotruth.errors import InputError
from annotruth.io import files
from annotruth.io.formats import npy
from annotruth.parallel.threads import map_in_threads


def test_large_npy_is_memory_mapped_and_none_is_unpickled(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.zeros((5, 7), dtype=np.float32))
    assert files.read_image(tmp_path / "a.npy", 2, "").flags.writeable
    monkeypatch.setattr(npy, "MEMORY_MAP_BYTES", 100)
    assert isinstance(files.read_image(tmp_path / "a.npy", 2, "").base, np.memmap)
    np.save(tmp_path / "b.npy", np.array([{"code": "evil"}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="here: cannot be read"):
        files.read_mask(tmp_path / "b.npy", "here")


def test_many_threads_open_arrays_at_once(tmp_path):
    """The garbage collector runs while a header is parsed, and with it another thread: CPython 3.11 took that amiss."""

    class Late:
        def __init__(self) -> None:
            self.cycle = self

        def __del__(self) -> None:
            sum(range(50))

    def read(_):
        for _ in range(20):
            Late()
        return npy.read_mask(path).shape

    path = tmp_path / "mask.npy"
    np.save(path, np.zeros((3, 4), dtype=np.uint8))
    before, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.freeze()  # what is there already need not be looked at each time
    gc.set_threshold(5, 2, 2)
    sys.setswitchinterval(1e-6)
    try:
        assert set(map_in_threads(read, range(400), 4)) == {(3, 4)}
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
        sys.setswitchinterval(interval)
