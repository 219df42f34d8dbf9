"""Memory that fusion needs beyond its input, measured in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's high-water mark")
@pytest.mark.parametrize("n_classes", [2, 4])
def test_hardly_more_than_the_output(n_classes: int) -> None:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.tasks", "staple_memory", "128", str(n_classes)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    memory = json.loads(done.stdout)
    assert memory["output"] == 4 * n_classes * 128**3
    assert memory["extra"] <= 1.5 * memory["output"]
