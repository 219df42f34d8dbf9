"""annotruth import, fuse, export: from a tool and back to it, at the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from annotruth.cli import app

JOB = (
    "<annotations><version>1.1</version><meta><job><assignee><username>{name}</username></assignee></job></meta>"
    '<image id="0" name="a.png" width="9" height="8"><box label="cell" xtl="1" ytl="1" xbr="{right}" ybr="5"/></image>'
    "</annotations>"
)


@pytest.fixture
def run() -> Callable[..., Any]:
    return lambda *words: app([str(word) for word in words], standalone_mode=False)


def test_from_cvat_and_back(run: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, right in (("ann", 5), ("bob", 6), ("cy", 7)):
        (tmp_path / "jobs").mkdir(exist_ok=True)
        (tmp_path / "jobs" / f"{name}.xml").write_text(JOB.format(name=name, right=right))
    assert run("import", tmp_path / "jobs", "-o", tmp_path / "cases", "-q") is None
    assert "Raters: ann (1), bob (1), cy (1)." in capsys.readouterr().out
    assert run("fuse", tmp_path / "cases", "--method", "mean", "-o", tmp_path / "fused", "-q") is None
    back = ("export", tmp_path / "fused", "--to", "cvat", "-o", tmp_path / "back", "--disputed", "0.9", "-q")
    assert run(*back) is None
    text = (tmp_path / "back" / "annotations.xml").read_text()
    assert 'name="a.png"' in text
    assert 'label="disputed"' in text


def test_a_source_is_fused_as_it_is(run: Callable[..., Any], tmp_path: Path) -> None:
    for name, right in (("ann", 5), ("bob", 6), ("cy", 7)):
        (tmp_path / "jobs").mkdir(exist_ok=True)
        (tmp_path / "jobs" / f"{name}.xml").write_text(JOB.format(name=name, right=right))
    assert run("fuse", tmp_path / "jobs", "--method", "majority", "-o", tmp_path / "fused", "-q") is None
    assert [file.name for file in (tmp_path / "fused" / "labels").iterdir()] == ["a.npy"]
