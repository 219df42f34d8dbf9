"""The desk at work: decisions are saved one after the other, and a thread lets the fusion and the queue follow."""

from __future__ import annotations

import threading
import time
import traceback
from dataclasses import dataclass
from typing import Any

import numpy as np

from annotruth.choosing.queue.information import entropy, information
from annotruth.choosing.queue.posteriors import ItemPosteriors
from annotruth.desk.fusing import MaskFusion, Model, TableFusion
from annotruth.desk.journal import Entry
from annotruth.desk.leases import Leases
from annotruth.desk.study import KeptInLog, Study
from annotruth.errors import AnnotruthError

TURN = 0.5
"""Seconds of looking after which pages are told what was found."""
STATUS = ("open", "decided", "ambiguous", "sent")


@dataclass(frozen=True)
class Progress:
    """How far the first look at all cases is."""

    done: int = 0
    total: int = 1

    @property
    def is_over(self) -> bool:
        return self.done >= self.total


class Desk:
    """All that the pages ask of the server.

    Parameters
    ----------
    study : the cases and the log
    title : what the pages are headed
    model : a trained model, to be asked, too

    Attributes
    ----------
    version : grows whenever the fusion and the queue have changed
    fault : why the fusion no longer follows, if so; decisions are saved all the same
    """

    def __init__(self, study: Study, title: str = "", model: Model | None = None) -> None:
        self.study, self.title = study, title
        self.fusion = MaskFusion(study, model) if study.is_masks else TableFusion(study, model)
        self.leases = Leases()
        self.version, self.fault = 0, ""
        self.progress = Progress()
        self.known: ItemPosteriors | None = None
        self.doubt = np.zeros(len(study))
        self._order = np.arange(len(study))
        self._status = np.zeros(len(study), dtype=np.int8)
        for index, record in study.records().items():
            self._status[index] = STATUS.index(record.status)
        self._saving = threading.Lock()
        self._news = threading.Condition()
        self._changed: set[int] = set()
        self._busy, self._ended = True, False
        self._thread = threading.Thread(target=self._work, name="fusion", daemon=True)

    def start(self) -> Desk:
        """Let the fusion begin; pages can be served meanwhile."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End the fusion's thread."""
        with self._news:
            self._ended = True
            self._news.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout=60)

    def wait(self, seconds: float = 60.0) -> bool:
        """Wait until the fusion has followed all decisions; whether it has."""
        until = time.monotonic() + seconds
        with self._news:
            while self._busy or self._changed:
                if self.fault or not self._news.wait(max(0.0, until - time.monotonic())):
                    return False
        return True

    @property
    def is_busy(self) -> bool:
        return (self._busy or bool(self._changed)) and not self.fault

    # -- decisions ------------------------------------------------------------------------------------------------

    def decide(self, index: int, action: str, **told: Any) -> tuple[Entry, str]:
        """Save a decision; give its entry, and a warning if only the log has it."""
        warning = ""
        with self._saving:
            try:
                entry = self.study.decide(index, action, **told)
            except KeptInLog as error:
                entry, warning = self.study.journal.entries[-1], str(error)
            self._status[index] = STATUS.index(self.study.record(index).status)
        with self._news:
            self._changed.add(index)
            self._news.notify_all()
        return entry, warning

    def counts(self) -> dict[str, int]:
        """How many cases have which status."""
        return dict(zip(STATUS, np.bincount(self._status, minlength=len(STATUS)).tolist()))

    # -- the queue ------------------------------------------------------------------------------------------------

    def queue(self, show: str, find: str, start: int, count: int) -> tuple[int, list[dict[str, Any]]]:
        """Part of the curator's queue, most doubtful first: how many cases there are in all, and some of them.

        Parameters
        ----------
        show : a status, or "all"
        find : part of a name
        """
        order = self._order
        if show != "all":
            order = order[self._status[order] == STATUS.index(show)]
        return self._rows(order, find, start, count)

    def rater_queue(self, rater: str, show: str, find: str, start: int, count: int) -> tuple[int, list[dict[str, Any]]]:
        """Part of a rater's own queue: what was sent to them, then what their label would tell most about.

        What is ambiguous is asked of nobody. Nothing in it tells what others said.
        """
        asked = [index for index, record in self.study.records().items() if rater in record.sent]
        done = self._labelled_by(rater)
        if show == "open":
            rest = self._order_for(rater)
            rest = rest[~done[rest] & ~np.isin(rest, asked) & (self._status[rest] != STATUS.index("ambiguous"))]
            order = np.concatenate([np.array(asked, dtype=np.int64), rest])
        else:
            order = np.flatnonzero(done)
        total, rows = self._rows(order, find, start, count)
        keep = ("index", "item")
        own = [{name: row[name] for name in keep} | {"asked": row["index"] in asked} for row in rows]
        return total, [row | {"status": "done" if done[row["index"]] else "open"} for row in own]

    def _rows(self, order: np.ndarray, find: str, start: int, count: int) -> tuple[int, list[dict[str, Any]]]:
        items, wanted = self.study.base.items, find.casefold()
        if wanted:
            order = np.array([i for i in order.tolist() if wanted in items[i].casefold()], dtype=np.int64)
        most = float(self.doubt.max(initial=0.0)) or 1.0
        rows = []
        for index in order[start : start + count].tolist():
            record = self.study.record(index)
            last = record.entries[-1] if record.entries else None
            rows.append({
                "index": index, "item": items[index], "status": STATUS[self._status[index]],
                "doubt": round(float(self.doubt[index]) / most, 4), "reason": self.reason(index),
                "last": "" if last is None else last.who, "sent": list(record.sent),
            })  # fmt: skip
        return len(order), rows

    def reason(self, index: int) -> str:
        """What there is to be seen of a case, in words."""
        return "" if self.known is None else self.known.describe(index)

    def gains(self, index: int) -> list[tuple[str, float]]:
        """What each rater's label of a case is expected to tell, in nats, the most first; without who labelled it."""
        known = self.known
        if known is None:
            return []
        rows = slice(int(known.first_row[index]), int(known.first_row[index + 1]))
        gain = (information(known.posterior[rows], known.confusion) * known.weight[rows, None]).sum(axis=0)
        taken = known.labelled(np.array([index]))[0]
        order = [r for r in np.argsort(-gain, kind="stable").tolist() if not taken[r]]
        return [(known.raters[r], float(gain[r])) for r in order]

    def _labelled_by(self, rater: str) -> np.ndarray:
        done = np.zeros(len(self.study), dtype=bool)
        known, number = self.known, self.study.raters.index(rater)
        if known is not None:
            item = np.repeat(np.arange(len(self.study)), np.diff(known.first_label))
            done[item[known.rater_of == number]] = True
        for index, record in self.study.records().items():
            done[index] |= rater in record.labels
        return done

    def _order_for(self, rater: str) -> np.ndarray:
        known = self.known
        if known is None:
            return np.arange(len(self.study))
        number = known.raters.index(rater)
        gain = known.sums(information(known.posterior, known.confusion[number : number + 1])[:, 0] * known.weight)
        return np.argsort(-gain, kind="stable")

    # -- the thread -----------------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            self.fusion.prepare(self._tell)
            self._publish()
            while self._next():
                self._publish()
                while self._settle():
                    self._publish()
        except Exception as error:  # a page must still be able to save; it shows why nothing follows
            if self._ended:
                return
            if not isinstance(error, AnnotruthError):
                traceback.print_exc()
            self.fault = f"The fusion has stopped: {error} Decisions are saved all the same. Start the desk again."
            with self._news:
                self._news.notify_all()

    def _tell(self, done: int, total: int) -> None:
        self.progress = Progress(done, total)
        if self._ended:
            raise InterruptedError("the desk is closed")

    def _next(self) -> bool:
        """Wait for decisions and take them in; False when the desk is closed."""
        with self._news:
            while not self._changed and not self._ended:
                self._busy = False
                self._news.notify_all()
                self._news.wait()
            if self._ended:
                return False
            changed, self._changed, self._busy = sorted(self._changed), set(), True
        self.fusion.follow(changed)
        return True

    def _settle(self) -> bool:
        """Look again at what decisions have changed, in turns short enough for new ones; whether that changed more."""
        if not self.fusion.is_stale:
            return False
        until = time.monotonic() + TURN
        self.fusion.settle(lambda: not self._changed and not self._ended and time.monotonic() < until)
        return not self._changed and not self._ended

    def _publish(self) -> None:
        known = self.fusion.known()
        self.doubt = known.sums(entropy(known.posterior) * known.weight)
        self.known = known
        self._order = np.argsort(-self.doubt, kind="stable")
        self.version += 1
