"""How well each rater does, and how sure that is: what every fitted fusion estimator says of its raters."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

from annotruth.fusion import raters
from annotruth.fusion.em import confusion_from_counts
from annotruth.fusion.one_coin import CoinState
from annotruth.fusion.params import Parameters
from annotruth.fusion.resampling import Drawing, around, widened
from annotruth.fusion.state import FusionState
from annotruth.fusion.stores import AnswerStore, MaskStore
from annotruth.fusion.votes import Votes

if TYPE_CHECKING:
    import pandas as pd

_MAX_REPLICATE_NUMBERS = 2**24  # in the matrices of all replicates


class RaterIntervals(Parameters):
    """The part of an estimator that tells how far its matrices may be trusted; all else is its other parts'."""

    scope: str
    one_coin = False
    items_: tuple[str, ...]
    raters_: tuple[str, ...]
    classes_: tuple[str, ...]
    confusion_: np.ndarray
    expected_counts_: np.ndarray
    skill_: np.ndarray
    labelled_counts_: np.ndarray
    state_: FusionState
    case_states_: list[FusionState]
    _store: MaskStore | AnswerStore
    _drawn_anew: np.ndarray | None

    @abstractmethod
    def estimate(self, votes: Votes, start: FusionState | None = None) -> FusionState: ...

    @abstractmethod
    def pseudo_counts(self, raters: Sequence[str], n_classes: int) -> np.ndarray | None: ...

    @abstractmethod
    def _check_fitted(self) -> None: ...

    def estimate_drawn(
        self, votes: Votes, weights: Iterable[np.ndarray], start: FusionState
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Expected counts and matrices of the same votes under other weights (rows,), for intervals."""
        for weight in weights:
            state = self.estimate(votes.reweighted(weight), start)
            yield state.counts, state.confusion

    def confusion_interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Bounds (low, high) of ``confusion_``, (raters, classes, classes) each; see :meth:`skill_interval`."""
        evidence, replicates = self._evidence(), self._replicates()
        apart = partial(raters.confusion_interval, evidence, level, one_coin=self.one_coin)
        if replicates is None or self._drawing is None:
            return around(self.confusion_, apart())
        return around(self.confusion_, widened(self.confusion_, replicates, self._drawing.reach(level), apart))

    def skill_interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Bounds (low, high) of ``skill_``, (raters,) each.

        Items are drawn anew, and estimated from: pixels of one image are not independent, images are. Up to 8,192
        answers (for masks, distinct votes) this is done 200 times, with replacement; up to 131,072, twentieths of the
        items are left out in turn. Beyond, and with fewer than three items, labels are taken as independent, and the
        truth as it was estimated: :func:`annotruth.fusion.raters.skill_interval`. Such bounds are too narrow.
        """
        evidence, replicates = self._evidence(), self._replicates()
        apart = partial(raters.skill_interval, evidence, level, one_coin=self.one_coin)
        if replicates is None or self._drawing is None:
            return around(self.skill_, apart())
        skills = np.diagonal(replicates, axis1=2, axis2=3).mean(axis=2)
        return around(self.skill_, widened(self.skill_, skills, self._drawing.reach(level), apart))

    @property
    def ranking_(self) -> pd.DataFrame:
        """All raters, the most skilful first: see :func:`annotruth.fusion.raters.ranking`."""
        import pandas as pd

        return pd.DataFrame(self.ranking_columns())

    def ranking_columns(self) -> dict[str, np.ndarray]:
        """The columns of ``ranking_`` by name, for those who need no data frame."""
        low, high = self.skill_interval()
        matrices: Iterable[np.ndarray] = self.confusion_
        classes = self.classes_
        if isinstance(self.state_, CoinState):  # errors are spread evenly: no need to look for the most frequent one
            matrices, classes = repeat(np.ones((1, 1)), len(self.raters_)), self.classes_[:1]
        return raters.ranking_columns(self.raters_, matrices, classes, self.skill_, low, high, self.labelled_counts_)

    def _replicates(self) -> np.ndarray | None:
        """Matrices (replicates, raters, classes, classes) of items drawn anew, or None where that cannot be done.

        Raters who labelled none of the items drawn have NaN.
        """
        if self._drawn_anew is None and self._drawing is not None:
            pseudo = self.pseudo_counts(self.raters_, len(self.classes_))
            found = []
            for counts, confusion in self._drawn_estimates(self._drawing):
                if confusion is None:
                    confusion = confusion_from_counts(counts, pseudo, one_coin=self.one_coin)
                found.append(np.where(counts.sum(axis=(1, 2), keepdims=True) > 0, confusion, np.nan))
            self._drawn_anew = np.stack(found) if found else None
        return self._drawn_anew

    @cached_property
    def _drawing(self) -> Drawing | None:
        """How to draw items anew; None where nothing is to be learnt from it, or it would take too long."""
        n_votes = len(self._store.votes().answers)
        drawing = Drawing.of(len(self.items_), n_votes)
        if drawing is None or len(self.classes_) == 1 or isinstance(self.state_, CoinState):
            return None
        return drawing if drawing.count * self.confusion_.size <= _MAX_REPLICATE_NUMBERS else None

    def _drawn_estimates(self, drawing: Drawing) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Expected counts and matrices of items drawn anew; None for matrices that follow from the counts.

        How much estimates vary is told by the votes alone, also where the places of pixels refine them.
        """
        if self.scope == "case":  # what each case adds to the counts is known
            every = np.zeros((len(self.items_), *self.confusion_.shape))
            for index, state in enumerate(self.case_states_):
                every[index, : len(state.counts)] = state.counts
            for times in drawing.times():
                yield np.tensordot(times, every, axes=1), None
            return
        votes, start = self._store.votes(), replace(self.state_, items={})
        if isinstance(self._store, MaskStore):
            counts_of = self._store.case_counts()
            if counts_of is None:
                return
            rows_of = [self._store.rows_of(index) for index in range(len(self.items_))]
        else:
            rows_of, counts_of = list(np.arange(votes.n_rows)[:, None]), list(np.ones((votes.n_rows, 1)))
        yield from self.estimate_drawn(votes, drawing.weights(rows_of, counts_of, votes.n_rows), start)

    def _evidence(self) -> np.ndarray:
        self._check_fitted()
        if isinstance(self.state_, CoinState):
            return self.state_.evidence
        pseudo = self.pseudo_counts(self.raters_, len(self.classes_))
        return self.expected_counts_ if pseudo is None else self.expected_counts_ + pseudo
