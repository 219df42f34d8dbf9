"""ZIP archives: read as the folder that they hold, and refused where they are hostile."""

from __future__ import annotations

import json
import stat
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.io import archives, check, import_source
from annotruth.io.archives import open_archive


def pack(path: Path, **files: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


XML = (
    "<annotations><version>1.1</version><meta><job><assignee><username>ann</username></assignee></job></meta>"
    '<image id="0" name="a.png" width="9" height="8"><box label="cell" xtl="1" ytl="1" xbr="4" ybr="3"/></image>'
    "</annotations>"
)


def test_an_archive_loads_checks_and_imports_as_its_folder(tmp_path: Path, put: Any) -> None:
    path = pack(tmp_path / "job_3.zip", **{"annotations.xml": XML})
    image = put(tmp_path / "a.png", np.zeros((8, 9), np.uint8))
    with zipfile.ZipFile(path, "a") as archive:
        archive.write(image, "images/a.png")
    found = at.load(path)
    assert (found.raters, found.has_images, found.masks.sum()) == (("ann",), True, 6)
    assert [problem.severity for problem in check(path)] == ["warning"]
    assert import_source(path, tmp_path / "cases").items == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.png", "cases", "job_3.zip"]


def test_a_folder_of_archives_is_a_folder_of_their_folders(tmp_path: Path, put: Any) -> None:
    """One export for each job, as they are downloaded: <assignee's job>.zip with annotations.xml and images."""
    picture = put(tmp_path / "a.png", np.zeros((8, 9), np.uint8)).read_bytes()
    (tmp_path / "jobs").mkdir()
    for name in ("job_1", "job_2"):
        with zipfile.ZipFile(tmp_path / "jobs" / f"{name}.zip", "w") as archive:
            drawn = (
                '<image id="0" name="a.png" width="9" height="8"><box label="cell" xtl="1" ytl="1" xbr="4" ybr="3"/>'
            )
            archive.writestr("annotations.xml", f"<annotations><version>1.1</version>{drawn}</image></annotations>")
            archive.writestr("images/a.png", picture)
    found = at.load(tmp_path / "jobs")
    assert (found.raters, found.has_images, found.masks.sum()) == (("job_1", "job_2"), True, 12)
    imported = import_source(tmp_path / "jobs", tmp_path / "cases")
    assert imported.raters == {"job_1": 1, "job_2": 1}
    assert json.loads((tmp_path / "cases" / "dataset.json").read_text())["imported"]["from"] == "jobs"
    (tmp_path / "jobs" / "notes.txt").touch()
    assert open_archive(tmp_path / "jobs") == tmp_path / "jobs"


def test_what_operating_systems_leave_behind_does_not_count(tmp_path: Path) -> None:
    rest = {"__MACOSX/._annotations.xml": "\x00\x05", "._annotations.xml": "x", ".DS_Store": "x"}
    path = pack(tmp_path / "job.zip", **{"annotations.xml": XML}, **rest)
    assert [problem.severity for problem in check(path)] == ["warning"]


def test_other_paths_stay_as_they_are(tmp_path: Path) -> None:
    assert open_archive(tmp_path) == tmp_path
    assert open_archive(tmp_path / "no.zip") == tmp_path / "no.zip"


@pytest.mark.parametrize("name", ["../evil.txt", "/etc/evil", "a/../../evil", "..\\evil.txt", "C:/evil"])
def test_nothing_is_written_elsewhere(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="would lie outside its folder"):
        open_archive(pack(tmp_path / "x.zip", **{name: "x"}))
    assert [file.name for file in tmp_path.iterdir()] == ["x.zip"]


def test_links_and_bombs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "link.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(InputError, match="would lie outside"):
        open_archive(tmp_path / "link.zip")
    with pytest.raises(InputError, match="is a bomb of 8000000 bytes"):
        open_archive(pack(tmp_path / "bomb.zip", zeros="0" * 8_000_000))
    monkeypatch.setattr(archives, "MAX_FILES", 1)
    with pytest.raises(InputError, match="Unpack it yourself"):
        open_archive(pack(tmp_path / "many.zip", a="", b=""))


def test_broken_archives_say_so(tmp_path: Path) -> None:
    path = pack(tmp_path / "x.zip", a="x" * 100)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(InputError, match="cannot be unpacked"):
        at.load(path)
    assert "cannot be unpacked" in check(path)[0].message


def test_damaged_content_of_an_archive_says_so(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", "text " * 1000)
    content = bytearray(path.read_bytes())
    content[36:46] = b"\xff" * 10  # behind the member's head of 30 bytes and its name of 6
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be unpacked"):
        at.load(path)
