"""annotruth import: what it prints, its exit codes, and options that name columns and colours."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

import annotruth as at
from annotruth.cli import app
from annotruth.errors import InputError


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=True)


def test_columns_are_named_by_options(tmp_path: Path) -> None:
    (tmp_path / "songs.csv").write_bytes(b"song,who,answer\r\na,x,rock\r\na,y,pop\r\nb,x,pop\r\n")
    ended = run(
        "import", tmp_path / "songs.csv", "--item", "song", "--rater", "who", "--label", "answer",
        "-o", tmp_path / "out",
    )  # fmt: skip
    assert ended.exit_code == 0
    assert "The item is song, the rater who, the label answer." in ended.output
    np.testing.assert_array_equal(at.load(tmp_path / "out").answer_matrix(), [[1, 0], [0, -1]])


@pytest.fixture
def coloured(tmp_path: Path) -> Path:
    mask = np.zeros((12, 12), dtype=np.uint8)
    mask[3:9, 3:9] = 1
    for case in ("a", "b"):
        for folder, pixels in (
            ("images", np.zeros((24, 24), dtype=np.uint8)),
            ("raters/ann", np.array([[0, 0, 0], [255, 0, 0]], dtype=np.uint8)[mask]),
        ):
            (tmp_path / "masks" / folder).mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(tmp_path / "masks" / folder / f"{case}.png")
    return tmp_path / "masks"


def test_colours_are_named_and_sizes_changed_by_options(coloured: Path, tmp_path: Path) -> None:
    ended = run("import", coloured, "--colour", "#ff0000=tumour", "--resize", "-o", tmp_path / "out", "--quiet")
    assert ended.exit_code == 0
    assert "Each colour is a class: background = #000000, tumour = #ff0000." in ended.output
    loaded = at.load(tmp_path / "out")
    assert loaded.classes == ("background", "tumour")
    assert loaded.masks[0, 0].sum() == 144


def test_what_is_left_out_ends_with_code_1_and_strict_stops(coloured: Path, tmp_path: Path) -> None:
    (coloured / "raters" / "ann" / "b.png").write_bytes(b"nonsense")
    ended = run("import", coloured, "--resize", "-o", tmp_path / "out")
    assert ended.exit_code == 1
    assert "b.png" in ended.output
    assert at.load(tmp_path / "out").items == ("a",)
    stopped = run("import", coloured, "--resize", "--strict", "-o", tmp_path / "strict")
    assert isinstance(stopped.exception, InputError)
    assert not (tmp_path / "strict").exists()


def test_an_option_that_the_source_does_not_take_is_refused(coloured: Path, tmp_path: Path) -> None:
    ended = run("import", coloured, "--item", "song", "-o", tmp_path / "out")
    assert isinstance(ended.exception, InputError)
    assert "item is not an option of a mask folder" in str(ended.exception)


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
def test_a_signal_ends_an_import_with_its_exit_code_and_leaves_nothing(
    name: str, code: int, coloured: Path, tmp_path: Path, annotruth: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier import that is being replaced stays, even between its removal and the new one."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("Python gives signals to the main thread only")
    words = ("import", coloured, "--resize", "-o", tmp_path / "out", "--overwrite")
    assert annotruth(*words).code == 0
    before, plain, raised = sorted(path.name for path in tmp_path.iterdir()), Path.rename, []

    def rename(self: Path, target: Path) -> Path:
        if Path(target) == tmp_path / "out" and not raised:
            raised.append(name)
            signal.raise_signal(getattr(signal, name))
        return plain(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    ended = annotruth(*words)
    assert (ended.code, raised) == (code, [name])
    assert f"Stopped by {name}. Nothing was written" in " ".join(ended.err.split())
    assert "Traceback" not in ended.err
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert at.load(tmp_path / "out").items == ("a", "b")
