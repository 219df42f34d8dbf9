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


@pytest.mark.parametrize("method", ["majority", "dawid-skene", "staple"])
@pytest.mark.parametrize(("raters", "classes"), [(300, 300), (5000, 1000)])
def test_matrices_that_answers_cannot_fill_are_refused_with_the_numbers(
    method: str, raters: int, classes: int, tmp_path: Path
) -> None:
    rows = [f"item{n},rater{n % raters},label{n % classes}" for n in range(max(raters, classes))]
    (tmp_path / "a.csv").write_text("\n".join(["item,rater,label", *rows]))
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32));"
        f"sys.argv = ['annotruth', 'fuse', {str(tmp_path / 'a.csv')!r}, '-o', {str(tmp_path / 'out')!r}, "
        f"'--method', {method!r}]; from annotruth.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done.stderr
    assert f"{raters:,} raters and {classes:,} classes make {raters * classes**2:,} entries" in done.stderr
    assert not (tmp_path / "out").exists()
