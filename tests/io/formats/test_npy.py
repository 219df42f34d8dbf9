"""NPY: memory-mapped if large, and never unpickled."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth.errors import InputError
from annotruth.io import files
from annotruth.io.formats import npy


def test_large_npy_is_memory_mapped_and_none_is_unpickled(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.zeros((5, 7), dtype=np.float32))
    assert files.read_image(tmp_path / "a.npy", 2, "").flags.writeable
    monkeypatch.setattr(npy, "MEMORY_MAP_BYTES", 100)
    assert isinstance(files.read_image(tmp_path / "a.npy", 2, "").base, np.memmap)
    np.save(tmp_path / "b.npy", np.array([{"code": "evil"}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="here: cannot be read"):
        files.read_mask(tmp_path / "b.npy", "here")
