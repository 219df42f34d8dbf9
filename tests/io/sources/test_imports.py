"""What lies in an export's folder and can be no file of it is named, before anything waits for it."""

from __future__ import annotations

import os
from pathlib import Path

from annotruth.io.problems import Problem
from annotruth.io.sources.imports import report_irregular


def test_pipes_devices_and_dead_links_are_named_in_order_and_hidden_ones_are_not(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / ".hidden").mkdir()
    os.mkfifo(tmp_path / ".hidden" / "pipe")
    os.mkfifo(tmp_path / "b" / "pipe.json")
    (tmp_path / "a.json").symlink_to("/dev/zero")
    (tmp_path / "c.json").symlink_to("nowhere")
    (tmp_path / "d.json").write_text("{}")
    (tmp_path / "e.json").symlink_to("d.json")
    found: list[Problem] = []
    report_irregular(tmp_path, found.append)
    assert [(problem.file.name, problem.message) for problem in found] == [
        ("a.json", "this is a device, not a file."),
        ("c.json", "this is a link that leads nowhere."),
        ("pipe.json", "this is a pipe, not a file."),
    ]
