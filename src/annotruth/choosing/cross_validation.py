"""Compare methods on one's own data by cross-validation, whether or not the truth of anything is known."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from annotruth.choosing.comparison import Comparison
from annotruth.choosing.crowd import NEED_OVERLAP, Crowd, look_at, refuse_crowd, refuse_without_overlap
from annotruth.choosing.scores import KnownTruth, Predictions, agreement, swaps_classes, told_lengths
from annotruth.choosing.trainings import LeaveOut, Trained, Training, keep, read_kept, train
from annotruth.data.annotations import Annotations
from annotruth.errors import InputError, shorten
from annotruth.fusion.gold import Gold
from annotruth.io import refuse_used_folder
from annotruth.methods import Task, make_method
from annotruth.training.folds import check_fold, hold_out
from annotruth.validation import one_of

DEFAULT_METHODS: dict[Task, tuple[str, ...]] = {
    "masks": ("majority", "staple", "mean", "pixel-cm", "global-cm"),
    "labels": ("majority", "dawid-skene", "mean", "global-cm"),
}
"""What is compared unless told otherwise."""
DEFAULT_FOLDS = 3
"""Parts that items are split into unless told otherwise: each costs a training per method and seed."""
TRAININGS = "trainings"
"""The folder, in that of a comparison, in which finished trainings are kept."""
UPPER_BOUNDS = ("clean", "oracle-cm")
"""Methods that look at the truth, and so are none that one could choose."""

MIN_TO_LEAVE_OUT = 3
"""Raters from which on each can be left out."""

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and of how much."""


def compare(
    ann: Annotations,
    methods: Sequence[str] | None = None,
    *,
    folds: int = DEFAULT_FOLDS,
    seeds: int = 1,
    leave_out: LeaveOut = "items",
    gold: Gold = None,
    folder: str | Path | None = None,
    progress: Progress | None = None,
    begin: Callable[[], None] = lambda: None,
    **settings: Any,
) -> Comparison:
    """Find out which method to take for these annotations, by cross-validation.

    Items are split into folds. Each method learns from all folds but one and predicts the items of that one, which its
    model has never seen; every fold is left out once. Predictions are scored without truth: by the length of the
    message that tells what all raters said of these items, once the prediction is known, and by how far trainings with
    different seeds agree. Where the truth of items is known, by Dice or accuracy, too.

    Parameters
    ----------
    ann : masks with images, or a label table with images or features
    methods : names; None = ``DEFAULT_METHODS`` of masks or label tables
    folds : into how many parts items are split, whole groups together
    leave_out : "items" as told above; "raters" leaves each rater out once instead, whatever ``folds`` is, and judges
        all items' predictions by what this rater says of them, whom the model has never heard
    seeds : how many trainings of each method and fold; from two on, their agreement is told
    gold : known truth of some items, as fusion takes it (``STAPLE().fit(ann, gold=…)``); None = the truth that the
        annotations carry. No method learns from it
    folder : where finished trainings are kept, in ``trainings``; another call with the same data and settings goes on
        with these. None = nowhere
    progress : told what is being done, how many trainings are done, and of how many
    begin : called once, when all was found good and before anything is trained or written
    **settings : of every ``Segmenter`` or ``Classifier``: ``max_epochs=20``, ``network="standard"``

    Examples
    --------
    >>> from annotruth.simulate import label_group, simulate_labels
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 40)
    >>> features = np.eye(2)[truth] + rng.normal(0, 0.3, (40, 2))
    >>> ann = simulate_labels(truth, label_group("hammer-spammer", 3, 2, skill=0.9)).annotations(images=features)
    >>> found = compare(ann, ["majority", "mean"], folds=2, max_epochs=2, network="linear")
    >>> found.recommended in ("majority", "mean"), found.table.shape[0]
    (True, 2)
    """
    tell = progress or (lambda work, done, total: None)
    one_of(leave_out, ("items", "raters"), "leave_out")
    chosen, crowd, notes = _checked(ann, methods, folds, seeds, settings, lambda *at: tell("Reading", *at))
    by_whom = [ann]
    if leave_out == "raters":
        folds = _raters_to_leave_out(ann, crowd)
        by_whom = [ann.take_raters([rater]) for rater in ann.raters]
        notes.append(f"Each of {folds} raters was left out once, and predictions are judged by what that rater says.")
    truth = KnownTruth(ann, gold)
    plain = ann._with(truth=None)  # what is scored by must not be learnt from
    trainings = {
        (method, seed, fold): Training(method, fold, folds, seed, settings, crowd.digest, leave_out)
        for seed, fold, method in product(range(seeds), range(folds), chosen)
    }
    for training in trainings.values():  # a setting or a method that does not go with these data is refused now
        training.model(plain)._check(training.split(plain)[0])
    begin()
    with _kept_in(folder) as kept:
        for number, training in enumerate(trainings.values()):
            tell(str(training), number, len(trainings))
            asked = training.configuration(plain)
            if read_kept(kept / training.file, asked) is None:
                keep(kept / training.file, asked, train(training, plain))
        tell("Scoring", len(trainings), len(trainings))
        scored = []
        for name in chosen:  # one method's predictions are in memory at a time
            mine = [[trainings[name, seed, fold] for fold in range(folds)] for seed in range(seeds)]
            found = [[_reread(kept, one, plain) for one in each] for each in mine]
            scored.append(_score(ann, truth, found, list(zip(by_whom, _predicted(ann, found, leave_out)))))
    nothing = [np.zeros(ann.shape(index) if ann.kind == "masks" else (), np.uint8) for index in range(len(ann))]
    known = np.stack([one.known for one in scored])
    return Comparison(
        ann.kind, ann.items, ann.groups, tuple(chosen), folds, seeds, np.asarray(crowd.labelled.any(axis=1)),
        np.stack([one.lengths for one in scored]), np.sum([told_lengths(part, nothing) for part in by_whom], axis=0),
        np.array([one.swapped for one in scored]),
        None if seeds < 2 else np.array([one.agreement for one in scored]),
        known if np.isfinite(known).any() else None,
        np.array([one.seconds for one in scored]),
        {name: one.warned for name, one in zip(chosen, scored) if one.warned}, tuple(notes), dict(settings),
    )  # fmt: skip


def _checked(
    ann: Annotations,
    methods: Sequence[str] | None,
    folds: int,
    seeds: int,
    settings: dict[str, Any],
    tell: Callable[[int, int], None],
) -> tuple[list[str], Crowd, list[str]]:
    """The methods to compare, what the annotations hold, and what must be said; whatever is wrong is raised here."""
    for name in ("method", "seed", "fold", "progress"):
        if name in settings:
            raise InputError(f"{name} cannot be set: a comparison takes care of it itself.")
    if seeds < 1:
        raise InputError(f"seeds is how many trainings each method and fold gets, at least 1, not {seeds}.")
    chosen = list(DEFAULT_METHODS[ann.kind] if methods is None else methods)
    for name in chosen:
        make_method(name, ann.kind)
    bounds = [name for name in chosen if name in UPPER_BOUNDS]
    if bounds:
        raise InputError(f"{shorten(bounds)} learns from the truth, and so is no method to choose; leave it out.")
    if len(set(chosen)) < max(len(chosen), 2):
        raise InputError(f"Name at least two methods, each once, not {shorten(chosen) or 'none'}.")
    if not ann.has_images:
        raise InputError("Methods learn from images, and these annotations carry none: give images or features.")
    check_fold(0, folds)
    hold_out(ann, 0, folds)
    crowd = look_at(ann, tell)
    refuse_crowd(ann, crowd)
    notes = []
    if methods is None and not crowd.overlaps:
        left_out = [name for name in chosen if name in NEED_OVERLAP]
        chosen = [name for name in chosen if name not in NEED_OVERLAP]
        notes.append(f"No item was labelled by two raters, so that {shorten(left_out)} was left out.")
    refuse_without_overlap(chosen, crowd)
    for fold in range(folds):
        learnt, left = hold_out(ann, fold, folds)
        place = {item: index for index, item in enumerate(ann.items)}
        for part, what in ((learnt, "be learnt from"), (left, "judge by")):
            if not crowd.labelled[[place[item] for item in part.items]].any():
                raise InputError(
                    f"Fold {fold + 1} of {folds} leaves no label to {what}: too few items are labelled. Take fewer "
                    "folds, or label more."
                )
    return chosen, crowd, notes


@contextmanager
def _kept_in(folder: str | Path | None) -> Iterator[Path]:
    """The folder of finished trainings; one that goes when all is done, where none was named."""
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            yield Path(temporary)
        return
    kept = Path(folder) / TRAININGS
    if not kept.is_dir():
        refuse_used_folder(Path(folder))
    yield kept


def _reread(kept: Path, training: Training, annotations: Annotations) -> Trained:
    found = read_kept(kept / training.file, training.configuration(annotations))
    assert found is not None, "it was written a moment ago"
    return found


@dataclass(frozen=True)
class _Scored:
    lengths: np.ndarray
    swapped: bool
    agreement: float
    known: np.ndarray
    seconds: float
    warned: tuple[str, ...]


def _predicted(
    ann: Annotations, trained: Sequence[Sequence[Trained]], leave_out: LeaveOut
) -> Iterator[list[Predictions]]:
    """One method's predictions of all items by seed: together, or of the trainings without each of the raters."""
    if leave_out == "raters":
        for number in range(len(ann.raters)):
            yield [list(of_seed[number].predictions) for of_seed in trained]
        return
    found = [{item: one for each in of_seed for item, one in zip(each.items, each.predictions)} for of_seed in trained]
    yield [[of_seed[item] for item in ann.items] for of_seed in found]


def _score(
    ann: Annotations,
    truth: KnownTruth,
    trained: Sequence[Sequence[Trained]],
    judged: Sequence[tuple[Annotations, list[Predictions]]],
) -> _Scored:
    """Score one method's trainings, by seed and fold; ``judged`` are predictions by seed, beside who judges them."""
    every = [each for of_folds in trained for each in of_folds]
    predictions = [one for _, by_seed in judged for one in by_seed]
    agreed = [found for _, by_seed in judged if (found := agreement(ann, by_seed)) is not None]
    lengths = [np.mean([told_lengths(part, one) for one in by_seed], axis=0) for part, by_seed in judged]
    return _Scored(
        np.sum(lengths, axis=0),
        any(swaps_classes(ann, one) for one in predictions),
        float(np.mean(agreed)) if agreed else float("nan"),
        np.mean([truth.scores(one) for one in predictions], axis=0),
        float(np.mean([each.seconds for each in every])),
        tuple(dict.fromkeys(warning for each in every for warning in each.warnings)),
    )


def _raters_to_leave_out(ann: Annotations, crowd: Crowd) -> int:
    """How many raters there are, each to be left out once; refuses where what is left would be too little."""
    silent = [name for name, labelled in zip(ann.raters, crowd.by_rater) if not labelled]
    if silent:
        raise InputError(f"{shorten(silent)} labelled nothing, and so cannot be left out to judge by. Take them away.")
    if len(ann.raters) < MIN_TO_LEAVE_OUT:
        raise InputError(
            f"To leave raters out, there must be at least {MIN_TO_LEAVE_OUT}, not {len(ann.raters)}: the others must "
            "still differ. Leave out items instead."
        )
    return len(ann.raters)
