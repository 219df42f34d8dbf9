"""The contract of fusion estimators, and what all share: taking labels in, handing truth and raters' errors out."""

from __future__ import annotations

import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Self

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import AnnotruthWarning, InputError, shorten
from annotruth.fusion.em import best_classes, confusion_from_counts
from annotruth.fusion.gold import Gold
from annotruth.fusion.identifiability import ANSWERS, FUSED_MASKS, co_labelling_groups, warn_identifiability
from annotruth.fusion.intervals import RaterIntervals
from annotruth.fusion.one_coin import CoinState
from annotruth.fusion.state import CaseState, FusionState, RefineCases, StreamedVotes, pool_states
from annotruth.fusion.stores import AnswerStore, Case, MaskStore, count_case
from annotruth.fusion.votes import PatternLookup, Patterns, Votes
from annotruth.parallel.memory import available_memory
from annotruth.validation import MISSING_LABEL, one_of

if TYPE_CHECKING:
    from annotruth.fusion.shown import Shown

_MAX_KEPT_BYTES = 2**28  # of refined posteriors kept from fit to predict; beyond this they are computed again
_BYTES_PER_ENTRY = 88  # of a confusion matrix, in all the arrays that are made of it on the way to the results
_FREE_BYTES = 2**31  # up to which nobody asks
_MAX_ENTRIES_PER_ANSWER = 100  # beyond this, entries are the prior's and not the raters'
CaseEstimate = tuple[FusionState, CaseState | None]
"""What was learnt of a case on its own, and its last refinement if there was one."""
RunCases = Callable[[Sequence[FusionState], bool], Iterable[CaseState | None]]
"""Refines every case, each with a state of its own; with True, for the last time. None for a case that was lost."""


def too_many_matrices(n_raters: int, n_classes: int) -> bool:
    """Whether confusion matrices of so many raters and classes take more memory than anybody gives without being asked.

    Examples
    --------
    >>> too_many_matrices(5000, 10), too_many_matrices(5000, 1000)
    (False, True)
    """
    return n_raters * n_classes**2 * _BYTES_PER_ENTRY > _FREE_BYTES


def check_iterations(max_iter: int, tol: float = 0.0) -> None:
    """Refuse to iterate less than once, or until less than nothing changes."""
    if not (max_iter >= 1 and tol >= 0):
        raise InputError(f"max_iter must be at least 1 and tol at least 0, found {max_iter} and {tol}.")


def foreground_classes(names: tuple[str, ...], wanted: str | int | None) -> tuple[tuple[str, ...], int | None]:
    """What ``truth_classes`` gives where one class, by name or number, is told apart from all others.

    Examples
    --------
    >>> foreground_classes(("background", "organ", "lesion"), "lesion")
    (('not lesion', 'lesion'), 2)
    """
    if wanted is None:
        return names, None
    if not isinstance(wanted, str) and 0 <= wanted < len(names):
        return (f"not {names[wanted]}", names[wanted]), int(wanted)
    if wanted not in names:
        raise InputError(f"foreground={wanted!r} is not among the classes {shorten(names, 10)}.")
    return (f"not {wanted}", str(wanted)), names.index(str(wanted))


class UnlabelledWarning(AnnotruthWarning):
    """Somewhere nobody labelled anything: the posterior there is the prior."""


class UnsettledWarning(AnnotruthWarning):
    """Iterations ran out; scikit-learn's ``ConvergenceWarning``, for those who have not loaded it."""


def convergence_warning() -> type[Warning]:
    """Give scikit-learn's warning to whoever can name it: loading it for a warning would take a second."""
    loaded = sys.modules.get("sklearn.exceptions")
    return UnsettledWarning if loaded is None else loaded.ConvergenceWarning


class FusionEstimator(RaterIntervals):
    """Base of the fusion estimators.

    An estimator is three steps. **Count**: what the labels say is summed up as :class:`~annotruth.fusion.votes.Votes`,
    one row for each item of a label table, or for all pixels of masks that share a tuple of votes. **Estimate**: a
    :class:`~annotruth.fusion.state.FusionState` is learnt from all rows (:meth:`estimate`). **Posterior**: votes and
    state give the truth (:meth:`posterior`). That is enough for masks, tables, folders and worker processes. One whose
    truth also depends on where pixels lie sets ``refines`` and has two more: :meth:`refine_case` looks at one case, in
    any process, and :meth:`refine` sums up. Cases are read one at a time.

    Attributes
    ----------
    items_, raters_, classes_ : names, in the order of all arrays below
    confusion_ : (raters, classes, classes), [true, observed], rows sum to 1. A rater without any label has uniform rows
    expected_counts_ : (raters, classes, classes) labels behind it
    prior_ : (classes,) how common the classes are
    skill_ : (raters,) mean diagonal of ``confusion_``
    labelled_counts_ : (raters,) how many items or pixels each labelled
    ranking_ : table of the raters, the most skilful first
    unlabelled_ : (items,) how many of the item's pixels nobody labelled; their posterior is the prior
    case_confusion_, case_prior_ : (items, raters, classes, classes) and (items, classes), with ``scope="case"``
    state_ : all that was learnt
    """

    has_item_state = False
    """Whether the state holds something for single items, in ``FusionState.items``."""
    warns_of_identifiability = True

    # -- the contract -------------------------------------------------------------------------------------------

    def check(self, annotations: Annotations) -> None:
        """Refuse wrong parameters; called before any label is read."""
        one_of(self.scope, ("dataset", "case"), "scope")
        if len(annotations) == 0:
            raise InputError("There is no item to fuse.")
        if self.scope == "case" and annotations.kind != "masks":
            raise InputError(
                "scope='case' needs masks: one answer per rater and item says nothing of a rater's errors."
            )
        self._refuse_too_many_matrices(annotations)

    def _refuse_too_many_matrices(self, annotations: Annotations) -> None:
        """Refuse matrices that would take all memory, or hundreds of times more entries than there are answers."""
        n_raters, n_classes = len(annotations.raters), len(self.truth_classes(annotations.classes)[0])
        entries = n_raters * n_classes**2
        needed = entries * _BYTES_PER_ENTRY
        scarce = annotations.kind == "labels" and entries > _MAX_ENTRIES_PER_ANSWER * len(annotations.answers)
        if not too_many_matrices(n_raters, n_classes) or (self.keeps_one_number and annotations.kind == "labels"):
            return
        if scarce or needed > available_memory() // 2:
            told = f"; {len(annotations.answers):,} answers cannot fill them" if scarce else ""
            raise InputError(
                f"{n_raters:,} raters and {n_classes:,} classes make {entries:,} entries of confusion matrices, which "
                f"take about {needed / 2**30:,.1f} GB{told}. Join rare classes, or leave out raters with few answers. "
                "Or give each rater one number: --method dawid-skene --option one_coin=true. (Is the column of labels "
                "the right one?)"
            )

    def truth_classes(self, names: tuple[str, ...]) -> tuple[tuple[str, ...], int | None]:
        """Names of the classes of the truth; and the number of the one class told apart from all others, if so."""
        return names, None

    def count(self, annotations: Annotations, index: int, gold: Gold = None) -> Patterns:
        """Sum up one case's masks; only this case is read. What it gives is small and travels between processes."""
        return count_case(annotations, index, gold)

    @abstractmethod
    def estimate(self, votes: Votes, start: FusionState | None = None) -> FusionState:
        """Learn from votes; ``start`` is what was learnt of fewer of them, without what belongs to single items."""

    @abstractmethod
    def posterior(self, votes: Votes, state: FusionState) -> np.ndarray:
        """Posterior (rows, classes) float64 of the votes. The rows of ``state.items`` are those of the votes."""

    @property
    def keeps_one_number(self) -> bool:
        """Whether a rater's matrix follows from one number, so that matrices need not be kept where they are many."""
        return False

    @property
    def adds_up(self) -> bool:
        """Whether sums over parts of a label table are enough to learn from: then :meth:`estimate_sums` does."""
        return False

    def estimate_sums(self, sums: StreamedVotes) -> FusionState:
        """Learn from a label table that is not in memory; an estimator that adds up writes this."""
        raise TypeError(f"{type(self).__name__} adds up, and so needs a method estimate_sums.")

    @property
    def refines(self) -> bool:
        """Whether there is more to a case's truth than its votes: then :meth:`refine_case` gives it."""
        return False

    @property
    def looks_at_images(self) -> bool:
        """Whether :meth:`refine_case` reads the case's image."""
        return False

    def refine_case(self, case: Case, state: FusionState) -> CaseState:
        """Look at the pixels of a case, given what was learnt of all; an estimator that refines writes this."""
        raise TypeError(f"{type(self).__name__} refines, and so needs a method refine_case.")

    def refine(self, votes: Votes, state: FusionState, refine_cases: RefineCases) -> FusionState:
        """Improve the state learnt from votes by what :meth:`refine_case` finds in the cases, once or several times.

        An estimator that refines writes this.
        """
        raise TypeError(f"{type(self).__name__} refines, and so needs a method refine.")

    def pseudo_counts(self, raters: Sequence[str], n_classes: int) -> np.ndarray | None:
        """Labels (raters, classes, classes) that raters are taken to have given before."""
        return None

    def is_anchored(self, votes: Votes, state: FusionState) -> bool:
        """Whether gold labels of every class, or prior matrices, tie the estimate to the truth."""
        return set(np.flatnonzero(state.prior)) <= set(votes.gold[votes.gold != MISSING_LABEL].tolist())

    # -- one case: what any process can do ----------------------------------------------------------------------

    def read_case(
        self, annotations: Annotations, index: int = 0, gold: Gold = None, patterns: Patterns | None = None
    ) -> Case:
        """One case by itself, counted unless its ``patterns`` are known."""
        classes, only = self.truth_classes(annotations.classes)
        store = MaskStore(len(classes), only, by_case=True)
        store.add(annotations.take([index]), gold, None if patterns is None else [patterns])
        return store.case(0)

    def estimate_case(self, case: Case) -> CaseEstimate:
        """Learn from one case on its own."""
        last: list[CaseState] = []

        def refine_cases(state: FusionState, final: bool = False) -> list[CaseState]:
            found = self.refine_case(case, state)
            last[:] = [found] if final else []
            return [found]

        state = self.estimate(case.votes)
        state = self.refine(case.votes, state, refine_cases) if self.refines else state
        return state, last[0] if last else None

    def fuse_case(self, case: Case, state: FusionState, last: CaseState | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Most probable labels (pixels,) uint8 of a case, and its posterior (classes, pixels) float32.

        ``state`` is what :meth:`case_state` gives, ``last`` the case's last refinement if that is known.
        """
        if self.refines:
            refined = (last or self.refine_case(case, state)).posterior
            return best_classes(refined.T).astype(np.uint8), refined
        posterior = self.posterior(case.votes, state)
        labels = case.to_pixels(best_classes(posterior)[None].astype(np.uint8))[0]
        return labels, case.to_pixels(posterior.T.astype(np.float32))

    # -- taking labels in ---------------------------------------------------------------------------------------

    def fit(
        self,
        annotations: Annotations,
        gold: Gold = None,
        patterns: Sequence[Patterns] | None = None,
        *,
        cases: Sequence[CaseEstimate] = (),
        run_cases: RunCases | None = None,
    ) -> Self:
        """Learn from annotations, forgetting what was learnt before.

        Parameters
        ----------
        annotations : masks or a label table
        gold : true labels of some items or pixels: an array like the annotations' truth (255, or -1 in tables, where
            unknown), or labels by item name, or a table with columns item and label; "truth" for the annotations' own
        patterns : each case's :meth:`count`, if other processes have counted already
        cases : with ``scope="case"``, each case's :meth:`estimate_case`, if other processes have made them
        run_cases : runs :meth:`refine_case` on every case in other processes, for an estimator that refines
        """
        self.check(annotations)
        self.classes_, only = self.truth_classes(annotations.classes)
        self._class_names = annotations.classes
        n_classes, by_case = len(self.classes_), self.scope == "case" or self.has_item_state
        is_masks = annotations.kind == "masks"
        self._store = MaskStore(n_classes, only, by_case) if is_masks else AnswerStore(n_classes, only)
        self._add(annotations, gold, patterns)
        self._forget_last()
        self.case_states_ = [state for state, _ in cases]
        for index, (_, last) in enumerate(cases):
            self._keep_last(index, last)
        return self._learn(None, run_cases)

    def partial_fit(
        self, annotations: Annotations, gold: Gold = None, patterns: Sequence[Patterns] | None = None
    ) -> Self:
        """Add cases, items, answers or raters to what was given before, and go on from what was learnt.

        Parameters are as in :meth:`fit`. Raters and items are known by name.
        """
        if not hasattr(self, "state_"):
            return self.fit(annotations, gold, patterns)
        self.check(annotations)
        if annotations.classes != self._class_names:
            before, now = shorten(self._class_names), shorten(annotations.classes)
            raise InputError(f"The classes must stay the same: {before} before, {now} now.")
        if (annotations.kind == "masks") != isinstance(self._store, MaskStore):
            raise InputError("Masks and label tables do not mix: add the kind of labels that fit was given.")
        self._add(annotations, gold, patterns)
        return self._learn(replace(self.state_, items={}).for_raters(len(self.raters_)), None)

    def _add(self, annotations: Annotations, gold: Gold, patterns: Sequence[Patterns] | None) -> None:
        if isinstance(self._store, MaskStore):
            self._store.add(annotations, gold, patterns)
        else:
            self._store.add(annotations, gold)
        self.items_, self.raters_ = self._store.items, self._store.raters
        self._tables: dict[int, tuple[PatternLookup, np.ndarray]] = {}

    def _learn(self, start: FusionState | None, run_cases: RunCases | None) -> Self:
        """Estimate from all that was given, going on from what was learnt before."""
        votes = self._store.votes()
        if isinstance(self._store, AnswerStore) and not votes.answered.any():
            raise InputError(
                f"There is nothing to fuse: nobody labelled any of the {len(self.items_)} items "
                f"({shorten(self.items_, 3)})."
            )
        self.labelled_counts_, self.unlabelled_ = votes.labelled_counts(), self._store.unlabelled
        if self.scope == "case":
            state = self._estimate_cases()
        else:
            state = self.estimate(votes, start)
            if state.items and not self.has_item_state:  # nobody kept which rows are a case's
                raise TypeError(
                    f"The state of {type(self).__name__} holds items: set has_item_state = True in the class."
                )
            if self.refines:
                state = self.refine(votes, state, self._refine_with(run_cases or self._run_here))
        self._take(state)
        self._warn(votes)
        return self

    def fit_sums(self, sums: StreamedVotes, outline: Annotations, labelled_counts: np.ndarray, gold: Votes) -> Self:
        """Learn from a label table that is not in memory; what is learnt of raters is kept, and nothing of items.

        Parameters
        ----------
        outline : has the raters, the classes and as many answers as there are, but not the answers themselves
        labelled_counts : (raters,) how many items each labelled
        gold : rows without answers for every class that known truth names
        """
        self.check(outline)
        self.classes_, only = self.truth_classes(outline.classes)
        self._class_names = outline.classes
        self._store, self.items_, self.raters_ = AnswerStore(len(self.classes_), only), (), outline.raters
        self.labelled_counts_, self.unlabelled_ = labelled_counts, np.zeros(0, dtype=np.int64)
        self._take(self.estimate_sums(sums))
        self._warn(gold, sums.rater_groups)
        return self

    def _take(self, state: FusionState) -> None:
        """Keep what was learnt."""
        self.state_, self._drawn_anew = state, None
        self.__dict__.pop("_drawing", None)
        self.confusion_, self.expected_counts_, self.prior_ = state.confusion, state.counts, state.prior
        self.skill_ = np.diagonal(self.confusion_, axis1=1, axis2=2).mean(axis=1)
        if state.n_iter:
            self.log_likelihood_, self.n_iter_ = state.log_likelihood, state.n_iter

    def _estimate_cases(self) -> FusionState:
        """Estimate each case that is new on its own; sum up over all of them."""
        for index in range(len(self.case_states_), len(self.items_)):
            state, last = self.estimate_case(self._masks.case(index))
            self.case_states_.append(state)
            self._keep_last(index, last)
        n_raters = len(self.raters_)
        self.case_confusion_ = np.stack([case.for_raters(n_raters).confusion for case in self.case_states_])
        self.case_prior_ = np.stack([case.prior for case in self.case_states_])
        sizes = [prod(shape) for shape in self._masks.shapes()]
        pooled = pool_states(self.case_states_, np.array(sizes), n_raters)
        pseudo = self.pseudo_counts(self.raters_, len(self.classes_))
        return replace(pooled, confusion=confusion_from_counts(pooled.counts, pseudo, one_coin=self.one_coin))

    def _refine_with(self, run_cases: RunCases) -> RefineCases:
        def refine_cases(state: FusionState, final: bool = False) -> Iterator[CaseState]:
            self._forget_last()
            states = [self._for_case(state, index) for index in range(len(self.items_))]
            for index, found in enumerate(run_cases(states, final)):
                if found is not None:
                    if final:
                        self._keep_last(index, found)
                    yield found

        return refine_cases

    def _run_here(self, states: Sequence[FusionState], final: bool) -> Iterator[CaseState]:
        for index, state in enumerate(states):
            yield self.refine_case(self._masks.case(index), state)

    def _forget_last(self) -> None:
        self._last: dict[int, CaseState] = {}
        self._kept_bytes = 0

    def _keep_last(self, index: int, last: CaseState | None) -> None:
        """Remember how a case was refined at last, with its posterior as long as they take little memory."""
        if last is not None:
            self._kept_bytes += last.posterior.nbytes
            self._last[index] = last if self._kept_bytes <= _MAX_KEPT_BYTES else last.without_posterior()

    def _warn(self, votes: Votes, groups: np.ndarray | None = None) -> None:
        """Tell what should make users doubt; ``groups`` (raters,) of raters linked by items, if they are known."""
        unlabelled = [self.items_[index] for index in np.flatnonzero(self.unlabelled_)]
        if unlabelled:
            warnings.warn(
                f"Nobody labelled {len(unlabelled)} of the items, or some of their pixels ({shorten(unlabelled)}): the "
                "posterior is the prior there.",
                UnlabelledWarning,
                stacklevel=4,
            )
        if not self.state_.converged:
            warnings.warn(
                f"{type(self).__name__} did not settle within max_iter iterations; raise max_iter or tol.",
                convergence_warning(),
                stacklevel=4,
            )
        if self.warns_of_identifiability and len(self.classes_) > 1 and not isinstance(self.state_, CoinState):
            anchored = self.is_anchored(votes, self.state_)
            certainty = self._certainty(votes) if groups is None else None  # of a table in memory
            if groups is None and not anchored:
                groups = co_labelling_groups(votes.answers.item, votes.answers.rater, votes.n_raters)
            masks = isinstance(self._store, MaskStore)
            compare = masks and not anchored and self.scope != "case"
            voted = votes.dice_with(self.posterior(votes, self.state_)) if compare else None
            shown = self._shown_by_images() if masks and not anchored else None
            warn_identifiability(
                self.confusion_, self.prior_, self.labelled_counts_,
                None if anchored else groups,
                raters=self.raters_, classes=self.classes_, anchored=anchored, stacklevel=5,
                yardstick=FUSED_MASKS if masks else ANSWERS, voted=voted, certainty=certainty,
                elsewhere=shown.others if shown and shown.elsewhere else None,
                borne_out=shown is not None and shown.borne_out,
            )  # fmt: skip

    def _shown_by_images(self) -> Shown | None:
        """What images show of fused borders. They are not needed to fuse: those that cannot be read do no harm."""
        if not any(batch.annotations.has_images for batch in self._masks.batches):
            return None
        from annotruth.fusion.shown import look, some_of  # and what it loads, which takes long

        def cases() -> Iterator[tuple[Case, np.ndarray]]:
            for index in some_of(len(self.items_)).tolist():
                if self._masks.find(index)[0].annotations.has_images:
                    case = self._masks.case(index)
                    with suppress(InputError):
                        _ = case.image
                        yield case, self.predict_item(index).ravel()

        return look(cases(), self.raters_, len(self.classes_))

    def _certainty(self, votes: Votes) -> float | None:
        """How sure the most probable class of a labelled item is on average; None of masks, whose borders err alike."""
        answered = votes.answered
        if not isinstance(self._store, AnswerStore) or not answered.any():
            return None
        columns = iter(self.posterior(votes, self.state_).T)
        best = next(columns).copy()
        for column in columns:  # quicker than the maximum of each short row
            np.maximum(best, column, out=best)
        return float(best @ answered) / int(answered.sum())

    # -- handing results out ------------------------------------------------------------------------------------

    def predict(self) -> np.ndarray | list[np.ndarray]:
        """Most probable labels, in the items' order.

        Returns
        -------
        class numbers: (items,) for a label table; (items, *spatial) uint8 for masks, a list where sizes differ.
        Of classes that are tied, the one that comes first in ``classes_`` wins.
        """
        self._check_fitted()
        if isinstance(self._store, AnswerStore):
            return best_classes(self.posterior(self._store.votes(), self.state_))
        return self._fill((), np.uint8)

    def predict_proba(self) -> np.ndarray | list[np.ndarray]:
        """Posterior of each class, in the items' order.

        Returns
        -------
        (items, classes) float64 for a label table; (items, classes, *spatial) float32 for masks, a list of
        (classes, *spatial) where sizes differ
        """
        self._check_fitted()
        if isinstance(self._store, AnswerStore):
            return self.posterior(self._store.votes(), self.state_)
        return self._fill((len(self.classes_),), np.float32)

    def predict_item(self, index: int) -> np.ndarray:
        """Most probable labels (*spatial) uint8 of one case; only this case is read."""
        self._check_fitted()
        batch, local = self._masks.find(index)
        out = np.empty(batch.annotations.shape(local), dtype=np.uint8)
        self._write(index, out.reshape(1, -1))
        return out

    def predict_proba_item(self, index: int) -> np.ndarray:
        """Posterior (classes, *spatial) float32 of one case; only this case is read."""
        self._check_fitted()
        batch, local = self._masks.find(index)
        out = np.empty((len(self.classes_), *batch.annotations.shape(local)), dtype=np.float32)
        self._write(index, out.reshape(len(self.classes_), -1))
        return out

    def votes(self) -> Votes:
        """What was counted: a row for each item of a label table, or for all pixels that share a tuple of votes."""
        self._check_fitted()
        return self._store.votes()

    def labelled_cases(self) -> np.ndarray:
        """Who labelled anything of which case, bool (items, raters); no mask is read."""
        self._check_fitted()
        return self._masks.labelled()

    def case_shape(self, index: int) -> tuple[int, ...]:
        """The grid of one case's pixels."""
        batch, local = self._masks.find(index)
        return batch.annotations.shape(local)

    def case(self, index: int) -> Case:
        """One case: its tuples of votes, and its pixels, which are read when they are needed."""
        self._check_fitted()
        return self._masks.case(index)

    def with_confusion(self, confusion: np.ndarray) -> Self:
        """The same estimator, whose posteriors follow from other matrices (raters, classes, classes) of the raters.

        Not for one that refines, nor with ``scope="case"``.
        """
        self._check_fitted()
        other = copy(self)
        other.state_ = replace(self.state_, confusion=confusion)
        other.confusion_, other._tables = confusion, {}
        return other

    def case_state(self, index: int) -> FusionState:
        """What one case's truth follows from, with :meth:`fuse_case`."""
        self._check_fitted()
        index = index % len(self.items_)
        if self.scope == "case":
            return self.case_states_[index].for_raters(len(self.raters_))
        return self._for_case(self.state_, index)

    # -- inner workings -----------------------------------------------------------------------------------------

    def _fill(self, channels: tuple[int, ...], dtype: type) -> np.ndarray | list[np.ndarray]:
        """Every case's posterior or labels, in one array if they are of one size."""
        shapes = self._masks.shapes()
        if len(set(shapes)) > 1:
            one = self.predict_proba_item if channels else self.predict_item
            return [one(index) for index in range(len(shapes))]
        out: np.ndarray = np.empty((len(shapes), *channels, *shapes[0]), dtype=dtype)
        for index in range(len(shapes)):
            self._write(index, out[index].reshape(prod(channels), -1))
        return out

    def _write(self, index: int, out: np.ndarray) -> None:
        """Fill out with one case's posterior (classes, pixels) float32 or labels (1, pixels) uint8."""
        if self.refines:
            last = self._last.get(index % len(self.items_))
            if last is None or not last.posterior.size:
                last = self.refine_case(self._masks.case(index), self.case_state(index))
            out[:] = last.posterior if out.dtype == np.float32 else best_classes(last.posterior.T)
            return
        lookup, posterior = self._table(index)
        table = (
            posterior.T.astype(np.float32)
            if out.dtype == np.float32
            else best_classes(posterior)[None].astype(np.uint8)
        )
        batch, local = self._masks.find(index)
        masks, gold = batch.read(local)
        lookup.write(masks, table, out, gold)

    def _table(self, index: int) -> tuple[PatternLookup, np.ndarray]:
        """The posteriors (rows, classes) of a case's tuples of votes, and where its pixels find them."""
        batch, local = self._masks.find(index)
        if batch.cases is not None:
            patterns = batch.cases[local]
            votes = self._masks.votes_of(batch, patterns)
            return batch.lookup(patterns), self.posterior(votes, self.case_state(index))
        if id(batch) not in self._tables:  # one for all its cases
            votes = self._masks.votes_of(batch, batch.patterns)
            self._tables[id(batch)] = batch.lookup(batch.patterns), self.posterior(votes, self.state_)
        return self._tables[id(batch)]

    def _for_case(self, state: FusionState, index: int) -> FusionState:
        return state.take(self._masks.rows_of(index)) if state.items else state

    @property
    def _masks(self) -> MaskStore:
        if not isinstance(self._store, MaskStore):
            raise InputError("A label table has no cases to go through one by one: use predict or predict_proba.")
        return self._store

    def _check_fitted(self) -> None:
        if not hasattr(self, "state_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                f"This {type(self).__name__} has not learnt anything yet: call fit(annotations) first."
            )
