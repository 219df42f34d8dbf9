"""Tables and papers' folders with odd values in odd places: nothing but a clear message comes out of reading them."""

from __future__ import annotations

import copy
import json
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from annotruth.errors import InputError
from annotruth.io import check, load

ODD: list[Any] = [
    None, -1, 0, 1e308, float("nan"), "", "x" * 10, [], {}, [[]], [1, 2], {"a": 1}, True, "\x00", 10**30, [None],
    {"label": None},
]  # fmt: skip
SPECKS = ['"', ",", ";", "\t", "\n", "\r", "\x00", "é", "<", ">", "1e999", "nan", "{", "["]


def mutate(value: Any, rng: random.Random, depth: int = 0) -> Any:
    """Put odd values into an object, and leave some of it out."""
    if depth and rng.random() < 0.12:
        return copy.deepcopy(rng.choice(ODD))
    if isinstance(value, dict):
        changed = {key: mutate(each, rng, depth + 1) for key, each in value.items()}
        if changed and rng.random() < 0.1:
            changed.pop(rng.choice(list(changed)))
        return changed
    return [mutate(each, rng, depth + 1) for each in value] if isinstance(value, list) else value


def spoil(text: str, rng: random.Random) -> str:
    """Take some of a text out, put specks in, and repeat parts of it."""
    for _ in range(rng.randint(1, 6)):
        here, there = rng.randrange(len(text)), rng.randrange(len(text))
        change = rng.choice(["", rng.choice(SPECKS) + text[here : here + 30], text[there : there + 20]])
        text = text[:here] + change + text[here + 30 * (not change or change[0] in SPECKS) :]
    return text


def read_all(path: Path, key: str) -> None:
    for source in (None, key):
        check(path, source=source)
        with suppress(InputError):
            load(path, source=source)


@pytest.mark.parametrize("key", ["prodigy", "doccano", "argilla", "cityscapes", "nnunet", "msd"])
def test_odd_values_in_json(request: pytest.FixtureRequest, key: str) -> None:
    path: Path = request.getfixturevalue(f"example_{key}")
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.suffix in (".json", ".jsonl"))
    sound = {file: file.read_text() for file in files}
    for seed in range(12):
        rng = random.Random(seed)
        for file, text in sound.items():
            whole = file.suffix == ".json"
            parts = [text] if whole else text.splitlines()
            file.write_text("\n".join(json.dumps(mutate(json.loads(part), rng)) for part in parts))
        read_all(path, key)


@pytest.mark.parametrize("key", ["mturk", "toloka", "table", "lidc"])
def test_odd_letters_in_text(request: pytest.FixtureRequest, key: str) -> None:
    path: Path = request.getfixturevalue(f"example_{key}")
    file = path if path.is_file() else next(path.rglob("*.xml"))
    sound = file.read_text()
    for seed in range(25):
        file.write_bytes(spoil(sound, random.Random(seed)).encode())
        read_all(path, key)
