"""What is decided at the desk: the cases, what was decided of each, and the files that hold it.

    desk/
      decisions.jsonl               the log, from which all else follows
      truth/<case>.<ext>            masks that are decided; or truth.csv, for a label table
      raters/<rater>/<case>.<ext>   masks that raters drew at the desk; or labels.csv

A decision is prepared beside its final name, noted in the log, and only then put in its place. Whoever is killed in
between leaves a log that says what was decided; the files are put right at the next start.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Literal

import numpy as np

from annotruth.data.annotations import Annotations, Lazy
from annotruth.data.answers import Answers, sort_answers
from annotruth.desk.coding import from_text, to_text
from annotruth.desk.journal import Entry, Journal, sync_folder
from annotruth.errors import AnnotruthError, InputError, shorten
from annotruth.io.formats import EXACT_SUFFIXES
from annotruth.io.names import file_name, to_cell
from annotruth.io.writing import atomic, sync, write_mask
from annotruth.validation import MISSING_LABEL, MISSING_PIXEL, mask_labels

LOG, TRUTH, RATERS, STAGING = "decisions.jsonl", "truth", "raters", ".staging"
TRUTH_TABLE, LABEL_TABLE = "truth.csv", "labels.csv"
Status = Literal["open", "decided", "ambiguous", "sent"]
GOLD_ACTIONS = ("accept", "edit")
_KEPT_CASES = 2  # whose masks are kept: a case that is opened is read by several


@dataclass
class Record:
    """What is known of a case from the log.

    Attributes
    ----------
    status : "open" until something is decided
    gold : the entry that holds its truth, if it is decided
    labels : the entry that holds the newest label of each rater who labelled it here, by name
    sent : the raters who are asked and have not answered yet
    entries : all of it, in order
    """

    status: Status = "open"
    gold: Entry | None = None
    labels: dict[str, Entry] = field(default_factory=dict)
    sent: tuple[str, ...] = ()
    entries: list[Entry] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        """Take in the next entry."""
        self.entries.append(entry)
        if entry.action in GOLD_ACTIONS:
            self.status, self.gold = "decided", entry
        elif entry.action == "label":
            self.labels[entry.rater] = entry
            self.sent = tuple(rater for rater in self.sent if rater != entry.rater)
            if self.status == "sent" and not self.sent:
                self.status = "open"
        elif entry.action == "send":
            self.status, self.gold = "sent", None
            self.sent = (*(rater for rater in self.sent if rater != entry.rater), entry.rater)
        else:
            self.status, self.gold, self.sent = ("ambiguous" if entry.action == "ambiguous" else "open"), None, ()


class Study:
    """Cases, or items of a label table, with all that was decided of them.

    Parameters
    ----------
    annotations : masks or a label table
    folder : of the desk; what an earlier session left there is taken up
    raters : who may label here; names that are not among the annotations' raters are new ones

    Attributes
    ----------
    annotations : with the labels that raters gave here, and the new raters
    told : what was found and put right at the start, in sentences

    Examples
    --------
    >>> import tempfile
    >>> table = Annotations.from_answers(np.array([[0, 1], [1, 1]]), classes=["cat", "dog"], items=["a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Study(table, Path(folder)).decide(0, "accept", who="ann", labels=1, source="fused")
    ...     again = Study(table, Path(folder))
    ...     again.gold(0), again.record(1).status
    (1, 'open')
    """

    def __init__(self, annotations: Annotations, folder: Path, raters: Sequence[str] = ()) -> None:
        self.base, self.folder = annotations, folder
        self.is_masks = annotations.kind == "masks"
        for item in annotations.items if self.is_masks else ():
            file_name(item, "item")
        self.told: list[str] = []
        self._records: dict[int, Record] = {}
        self._place = {item: index for index, item in enumerate(annotations.items)}
        self.journal = Journal(folder / LOG)
        if self.journal.torn:
            self.told.append(
                f"The log ended in a line that was never finished ({len(self.journal.torn)} bytes): the decision it "
                f"was of had not been saved. It is kept in {self.journal.path.with_suffix('.torn')}."
            )
        here = [entry.rater for entry in self.journal.entries if entry.action == "label"]
        fresh = dict.fromkeys(name for name in (*raters, *here) if name not in annotations.raters)
        for name in fresh:
            file_name(name, "rater")
        self.raters = (*annotations.raters, *fresh)
        self._given_masks = lru_cache(_KEPT_CASES)(partial(annotations.item_masks, checked=False))
        for entry in self.journal.entries:
            self._take_in(entry)
        self.annotations = self._with_labels()
        self._restore()

    def __len__(self) -> int:
        return len(self.base)

    def record(self, index: int) -> Record:
        """What is known of a case; a new record where that is nothing."""
        return self._records.get(index) or Record()

    def records(self) -> dict[int, Record]:
        """The cases of which anything is known, by number."""
        return dict(self._records)

    def gold(self, index: int) -> np.ndarray | int | None:
        """The truth of a case: a mask (*spatial) uint8, or a class number; None where it is not decided."""
        entry = self.record(index).gold
        return None if entry is None else self._labels_of(entry)

    def label(self, index: int, rater: str) -> np.ndarray | int | None:
        """What a rater said of a case, here or before; None if nothing."""
        if self.is_masks:
            mask = self.annotations.item_masks(index, checked=False)[self.raters.index(rater)]
            return mask if (mask != MISSING_PIXEL).any() else None
        answers, number = self.annotations.answers, self.raters.index(rater)
        first, last = np.searchsorted(answers.item, [index, index + 1])
        found = np.flatnonzero(answers.rater[first:last] == number)
        return int(answers.label[first + found[0]]) if len(found) else None

    def decide(
        self,
        index: int,
        action: str,
        *,
        who: str,
        role: str = "curator",
        labels: np.ndarray | int | None = None,
        source: str = "",
        why: str = "",
        rater: str = "",
    ) -> Entry:
        """Decide a case: when this returns, the decision is on the disk.

        Parameters
        ----------
        action : one of ``annotruth.desk.journal.ACTIONS``
        labels : with "accept", "edit" and "label": a mask (*spatial), 255 = not known; or a class number

        Raises
        ------
        AnnotruthError : it could not be written; all is as it was before
        """
        item = self.base.items[index]
        if (labels is None) == (action in (*GOLD_ACTIONS, "label")):
            raise InputError(f"Item {item}: {action} {'needs' if labels is None else 'goes without'} a label.")
        told: dict[str, object] = {"source": source, "why": why, "rater": rater}
        staged: Path | None = None
        if isinstance(labels, np.ndarray):
            mask = mask_labels(labels, len(self.base.classes), f"Item {item}")
            staged = write_mask(self.folder / STAGING, self.base, index, mask)
            _to_disk(staged)
            told |= {"mask": to_text(mask), "shape": mask.shape}
        elif labels is not None:
            if not 0 <= labels < len(self.base.classes):
                raise InputError(f"Item {item}: there is no class number {labels}.")
            told["label"] = self.base.classes[labels]
        try:
            entry = self.journal.append(who=who, role=role, case=item, action=action, **told)
        except AnnotruthError:
            if staged is not None:
                staged.unlink(missing_ok=True)
            raise
        self._take_in(entry)
        if action == "label" and not self.is_masks:
            self.annotations = self._with_labels()
        self._put_in_place(index, entry, staged)
        return entry

    def rewrite(self) -> int:
        """Make every file anew from the log; give how many there are."""
        count = 0
        for index, record in self._records.items():
            for entry in (record.gold, *record.labels.values()):
                if entry is not None:
                    self._write(index, entry)
                    count += 1
        return count

    # -- the log, as files ----------------------------------------------------------------------------------------

    def _take_in(self, entry: Entry) -> None:
        if entry.case not in self._place:
            raise InputError(
                f"{self.journal.path}: {entry.case!r}, which was decided, is not among these cases "
                f"({shorten(self.base.items, 3)}). Is it the desk of another data set? Name another folder with -o."
            )
        index = self._place[entry.case]
        if entry.label is not None and entry.label not in self.base.classes:
            raise InputError(f"{self.journal.path}: {entry.case} was decided to be {entry.label!r}, which is no class.")
        lacking = entry.mask is None or entry.shape is None if self.is_masks else entry.label is None
        if lacking and entry.action in (*GOLD_ACTIONS, "label"):
            raise InputError(f"{self._where(entry)}: the entry has no label. Put the line right, or remove it.")
        self._records.setdefault(index, Record()).add(entry)

    def _where(self, entry: Entry) -> str:
        return f"{self.journal.path}, number {entry.number}, {entry.case}"

    def _labels_of(self, entry: Entry) -> np.ndarray | int:
        if entry.mask is not None and entry.shape is not None:
            try:
                return from_text(entry.mask, entry.shape)
            except InputError as error:
                raise InputError(f"{self._where(entry)}: {error} Remove the line, and decide again.") from None
        return self.base.classes.index(str(entry.label))

    def _path(self, index: int, entry: Entry) -> Path:
        """Where an entry's label lies, without suffix."""
        home = self.folder / RATERS / entry.rater if entry.action == "label" else self.folder / TRUTH
        return home / self.base.items[index]

    def _files(self, path: Path) -> list[Path]:
        """The file of a label, whatever its suffix; mostly one or none."""
        name = path.name
        if not path.parent.is_dir():
            return []
        return [each for each in (path.with_name(name + suffix) for suffix in EXACT_SUFFIXES) if each.is_file()]

    def _put_in_place(self, index: int, entry: Entry, staged: Path | None) -> None:
        """Let the files follow the log; where that fails, they are made from the log at the next start."""
        try:
            if not self.is_masks:
                self._write_tables()
                return
            if staged is not None:
                home = self._path(index, entry).parent
                home.mkdir(parents=True, exist_ok=True)
                os.replace(staged, home / staged.name)
                sync_folder(home)
            elif self.record(index).gold is None:
                for file in self._files(self.folder / TRUTH / self.base.items[index]):
                    file.unlink()
        except (OSError, AnnotruthError) as error:
            for file in self._files(self._path(index, entry)) if self.is_masks else ():
                with suppress(OSError):  # an old label must not pass for the new one
                    file.unlink()
            raise KeptInLog(
                f"The decision is kept in the log, but its file could not be written: {error} It will be made from the "
                "log when the desk is started again."
            ) from error

    def _write(self, index: int, entry: Entry) -> None:
        labels = self._labels_of(entry)
        if isinstance(labels, np.ndarray):
            write_mask(self._path(index, entry).parent, self.base, index, labels)

    def _restore(self) -> None:
        """Put right what a process that was killed left half done: what the last entry says, and files that lack."""
        staging = self.folder / STAGING
        for left in staging.iterdir() if staging.is_dir() else ():
            left.unlink()
        if not self.journal.entries:
            return
        if not self.is_masks:
            self._write_tables()
            return
        last, lacking = self.journal.entries[-1], 0
        for index, record in self._records.items():
            for entry in (record.gold, *record.labels.values()):
                if entry is not None and (entry is last or not self._files(self._path(index, entry))):
                    lacking += not self._files(self._path(index, entry))
                    self._write(index, entry)
            if record.gold is None:
                for file in self._files(self.folder / TRUTH / self.base.items[index]):
                    file.unlink()
        if lacking:
            self.told.append(f"{lacking} decided masks were not there, and were made anew from the log.")

    def _write_tables(self) -> None:
        rows: dict[str, list[tuple[str, ...]]] = {
            TRUTH_TABLE: [("item", "truth")], LABEL_TABLE: [("item", "rater", "label")],
        }  # fmt: skip
        for index, record in sorted(self._records.items()):
            item = to_cell(self.base.items[index])
            if record.gold is not None:
                rows[TRUTH_TABLE].append((item, to_cell(str(record.gold.label))))
            for entry in record.labels.values():
                rows[LABEL_TABLE].append((item, to_cell(entry.rater), to_cell(str(entry.label))))
        for name, lines in rows.items():
            if len(lines) > 1 or (self.folder / name).exists():
                with atomic(self.folder / name) as temporary:
                    with temporary.open("w", encoding="utf-8", newline="") as file:
                        csv.writer(file, lineterminator="\n").writerows(lines)
                    sync(temporary)

    # -- what raters say here, beside what they said before -------------------------------------------------------

    def _with_labels(self) -> Annotations:
        base = self.base
        same = {"items": base.items, "raters": self.raters, "classes": base.classes}
        if not self.is_masks:
            return Annotations(kind="labels", answers=self._all_answers(), **same)  # type: ignore[arg-type]
        masks = [Lazy(partial(self._masks_of, i), (len(self.raters), *base.shape(i))) for i in range(len(base))]
        return Annotations(kind="masks", masks=masks, **same)  # type: ignore[arg-type]

    def _masks_of(self, index: int) -> np.ndarray:
        masks = self._given_masks(index)
        labels = self.record(index).labels
        if not labels and len(self.raters) == len(masks):
            return masks
        every = np.full((len(self.raters), *masks.shape[1:]), MISSING_PIXEL, dtype=np.uint8)
        every[: len(masks)] = masks
        for rater, entry in labels.items():
            every[self.raters.index(rater)] = self._labels_of(entry)
        return every

    def _all_answers(self) -> Answers:
        given = [
            (index, self.raters.index(rater), self.base.classes.index(str(entry.label)))
            for index, record in self._records.items()
            for rater, entry in record.labels.items()
        ]
        before = self.base.answers
        if not given:
            return before
        item, rater, label = np.array(given, dtype=np.int64).T
        replaced = np.isin(
            before.item.astype(np.int64) * len(self.raters) + before.rater, item * len(self.raters) + rater
        )
        return sort_answers(
            np.concatenate([before.item[~replaced], item]),
            np.concatenate([before.rater[~replaced], rater]),
            np.concatenate([before.label[~replaced], label]),
        )

    def gold_classes(self) -> np.ndarray:
        """The decided class of each item of a label table, (items,) int16, -1 = not decided."""
        known = np.full(len(self), MISSING_LABEL, dtype=np.int16)
        for index, record in list(self._records.items()):
            if record.gold is not None:
                known[index] = self._labels_of(record.gold)
        return known


class KeptInLog(AnnotruthError):
    """A decision was made, but its file could not be written."""


def _to_disk(path: Path) -> None:
    try:
        sync(path)
    except OSError as error:
        with suppress(OSError):
            path.unlink()
        raise AnnotruthError(
            f"{path}: could not be written: {error.strerror or error}. Nothing was changed."
        ) from error
