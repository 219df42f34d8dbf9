"""Folds: cases in equal parts, each held out once, by a model that learns from the others."""

from __future__ import annotations

import re
from numbers import Integral
from pathlib import Path

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.training.storage import MODEL_FILE, RUN_FILE

FOLDS = 5
"""Into how many parts cases are split, unless told otherwise."""
_SPLIT_SEED = 0
"""The split is the same whatever the seed of a training, so that folds trained apart fit together."""
_NAME = re.compile(r"fold_(0|[1-9][0-9]*)")


def check_fold(fold: int | None, folds: int) -> None:
    """Refuse a number of folds, or a fold, that cannot be.

    Examples
    --------
    >>> check_fold(4, folds=5)
    >>> check_fold(5, folds=5)
    Traceback (most recent call last):
    annotruth.errors.InputError: fold is a whole number from 0 to 4, as there are 5 folds, not 5.
    """
    if fold is None:
        return
    if not _is_whole(folds) or folds < 2:
        raise InputError(f"folds is a whole number from 2, so that something is left to learn from, not {folds!r}.")
    if not _is_whole(fold) or not 0 <= fold < folds:
        raise InputError(f"fold is a whole number from 0 to {folds - 1}, as there are {folds} folds, not {fold!r}.")


def hold_out(annotations: Annotations, fold: int, folds: int = FOLDS) -> tuple[Annotations, Annotations]:
    """Items to learn from, and those of one fold, which are held out.

    Groups stay whole. The split depends on the names of the groups (of the items, where there are none) and on
    ``folds`` alone: every item is in one fold, whoever asks, and in whatever order items stand.

    Examples
    --------
    >>> import numpy as np
    >>> ann = Annotations.from_masks(np.zeros((6, 1, 2, 2), dtype=np.uint8), groups=list("aabbcc"))
    >>> [hold_out(ann, fold, folds=3)[1].items for fold in range(3)]
    [('item_4', 'item_5'), ('item_0', 'item_1'), ('item_2', 'item_3')]
    """
    check_fold(fold, folds)
    what = "cases" if annotations.groups is None else "groups of cases"
    n_groups = len(set(annotations.groups or annotations.items))
    if n_groups < 2:
        only = "There is only one case" if annotations.groups is None else "All cases are of one group"
        raise InputError(f"{only}, so that none can be held out; train without a fold.")
    if n_groups < folds:
        raise InputError(f"There are more folds than {what}, {folds} and {n_groups}; take at most {n_groups} folds.")
    parts = annotations.split([1 / folds] * folds, seed=_SPLIT_SEED)
    held_out = set(parts[fold].items)
    rest = [index for index, item in enumerate(annotations.items) if item not in held_out]
    return annotations.take(rest), parts[fold]


def fold_folder(folder: str | Path, fold: int) -> Path:
    """Where the run of a fold lies among those of the others.

    Examples
    --------
    >>> fold_folder("runs/first", 3).as_posix()
    'runs/first/fold_3'
    """
    return Path(folder) / f"fold_{fold}"


def fold_folders(folder: str | Path) -> list[Path]:
    """The folders of folds' runs, or models, that lie in a folder, by their number; none where there are none.

    Examples
    --------
    >>> fold_folders("no such folder")
    []
    """
    named = [path for path in Path(folder).glob("fold_*") if _NAME.fullmatch(path.name)]
    found = [path for path in named if any((path / file).is_file() for file in (RUN_FILE, MODEL_FILE))]
    return sorted(found, key=lambda path: int(path.name.removeprefix("fold_")))


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
