"""A part of the hostile inputs, small enough for every test run; ``make hostile`` runs all of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
EVERY = 48


def test_there_are_at_least_600_distinct_bad_inputs() -> None:
    attacks = import_module("tests.hostile.running").all_attacks()
    assert len({(attack.kind, attack.name) for attack in attacks}) >= 600
    verbs = {attack.command[0] for attack in attacks}
    assert verbs >= {"check", "load", "fuse", "import", "train", "predict", "load_model", "report"}
    assert any("--resume" in attack.command for attack in attacks)


def test_a_part_of_the_bad_inputs_ends_well() -> None:
    command = [sys.executable, "-W", "ignore", "-m", "tests.hostile", "--every", str(EVERY), "--json"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, timeout=300)
    found = json.loads(ended.stdout)
    assert found["troubles"] == []
    assert found["attacks"] > 50
