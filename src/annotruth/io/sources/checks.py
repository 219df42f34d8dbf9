"""Checks that any annotation source must pass, to be run on a new one in its tests.

Each takes the source and the path of a sound data set of its kind, which stays as it is.

>>> import tempfile
>>> from annotruth.io import SOURCES
>>> with tempfile.TemporaryDirectory() as folder:
...     table = Path(folder) / "answers.csv"
...     _ = table.write_text("item,rater,label\\na,ann,cat\\na,bob,dog\\nb,ann,dog\\nb,bob,dog\\n")
...     for check in CHECKS:
...         check(SOURCES["label table"], table)
"""

from __future__ import annotations

import hashlib
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.io.problems import Problem
from annotruth.io.sources import SOURCES, Input, Source, check, find_source, load

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda content: b"",
    "cut off": lambda content: content[: len(content) // 2],
    "overwritten": lambda content: b"nonsense",
}
"""What may have happened to a file."""


def check_says_what_it_is(source: Source, example: Path) -> None:
    """Name, description, kind and inputs are what messages and the command line can work with."""
    assert SOURCES.get(source.name) is source, "registered under its name"
    assert source.name
    assert source.description
    assert "\n" not in source.name + source.description, "one line each"
    assert source.kind in ("masks", "labels")
    assert set(source.inputs) <= set(get_args(Input)), f"inputs are of {get_args(Input)}"


def check_is_found_by_its_path(source: Source, example: Path) -> None:
    """The path of its own data set leads to it, and to no other."""
    assert source.matches(example)
    assert find_source(example) is source, f"{find_source(example).name} was asked first; look inside, or be general"


def check_refuses_what_is_not_its_own(source: Source, example: Path) -> None:
    """A path of nothing, and a file that nobody knows, are not matched and are refused by name."""
    with tempfile.TemporaryDirectory() as folder:
        stranger = Path(folder) / "stranger.unknown"
        stranger.write_bytes(b"")
        for path in (Path(folder) / "nothing", stranger):
            assert not source.matches(path)
            assert path.name in _refusal(path)
            assert [problem.severity for problem in check(path)] == ["fatal"]


def check_loads_a_sound_example(source: Source, example: Path) -> None:
    """What is sound loads: of the declared kind, with distinct names, every item readable, nothing fatal in it."""
    assert not _fatal(check(example))
    found = load(example)
    assert found.kind == source.kind
    for names in (found.items, found.raters, found.classes):
        assert names
        assert all(isinstance(name, str) for name in names)
        assert len(set(names)) == len(names)
    _read_all(found)
    again = load(example)
    assert (again.items, again.raters, again.classes) == (found.items, found.raters, found.classes)


def check_loads_in_other_processes(source: Source, example: Path) -> None:
    """Annotations can be pickled, and read where they are unpickled: workers do that."""
    found = load(example)
    again = pickle.loads(pickle.dumps(found))
    assert again.items == found.items
    _read_all(again)


def check_load_and_check_agree(source: Source, example: Path) -> None:
    """What ``check`` calls fatal ``load`` refuses, in the same words, and nothing else; whatever file is damaged."""
    for file in _files(example):
        for damage, spoil in DAMAGES.items():
            with _copied(example) as copy:
                damaged = copy / file.relative_to(example) if example.is_dir() else copy
                damaged.write_bytes(spoil(file.read_bytes()))
                fatal, refusal = _fatal(check(copy)), _refusal(copy)
                what = f"{file.name} {damage}: check says {[str(problem) for problem in fatal]}, load {refusal!r}"
                assert bool(fatal) == bool(refusal), what
                assert not refusal or refusal in map(str, fatal), what


def check_loads_what_is_sound(source: Source, example: Path) -> None:
    """Of a sound data set nothing is set aside."""
    sound, problems = source.load_sound(example)
    assert problems == []
    assert sound.items == load(example).items


def check_refuses_inputs_it_does_not_take(source: Source, example: Path) -> None:
    """Files that it would not look at are refused by name, by ``load`` and by ``check``."""
    for name in {"truth", "images", "features"} - set(source.inputs):
        assert f"{name}=" in _refusal(example, **{name: example})
        assert _fatal(check(example, **{name: example}))  # type: ignore[arg-type]


def check_tells_of_progress(source: Source, example: Path) -> None:
    """Where progress is told, it only grows, and ends when all is done."""
    told: list[tuple[int, int]] = []
    check(example, lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert not told or told[-1][0] == told[-1][1]


def check_writes_nothing(source: Source, example: Path) -> None:
    """Loading and checking leave everything as it was."""
    before = _fingerprint(example)
    check(example)
    _read_all(load(example))
    assert _fingerprint(example) == before


def _refusal(path: Path, **inputs: Path) -> str:
    """What ``load`` says against a path, now or when pixels are read; nothing if it takes it."""
    try:
        _read_all(load(path, **inputs))  # type: ignore[arg-type]
    except InputError as error:
        return str(error)
    return ""


def _fatal(problems: list[Problem]) -> list[Problem]:
    return [problem for problem in problems if problem.severity == "fatal"]


def _read_all(annotations: Annotations) -> None:
    for index in range(len(annotations)):
        if annotations.kind == "masks":
            annotations.check_item(index)
            if annotations.has_truth:
                annotations.item_truth(index)
        if annotations.has_images:
            annotations.item_image(index)


def _files(example: Path) -> list[Path]:
    return sorted(path for path in example.rglob("*") if path.is_file()) if example.is_dir() else [example]


@contextmanager
def _copied(example: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / example.name
        yield Path((shutil.copytree if example.is_dir() else shutil.copy)(example, copy))


def _fingerprint(example: Path) -> dict[Path, str]:
    beside = example if example.is_dir() else example.parent
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in beside.rglob("*") if path.is_file()}


CHECKS: tuple[Callable[[Source, Path], None], ...] = tuple(
    each for name, each in sorted(globals().items()) if name.startswith("check_")
)
