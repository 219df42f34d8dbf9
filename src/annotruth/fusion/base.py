"""What all fusion estimators share: taking labels in, handing truth and raters' errors out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError, shorten
from annotruth.fusion import intervals
from annotruth.fusion.em import confusion_from_counts
from annotruth.fusion.estimates import best_classes, for_all_raters, pool
from annotruth.fusion.gold import Gold
from annotruth.fusion.identifiability import ANSWERS, FUSED_MASKS, co_labelling_groups, warn_identifiability
from annotruth.fusion.maximise import Estimate
from annotruth.fusion.patterns import PatternLookup, Patterns
from annotruth.fusion.ranking import ranking
from annotruth.fusion.stores import CollectedAnswers, CollectedMasks, MaskSource
from annotruth.fusion.votes import Votes
from annotruth.fusion.warn import warn_unlabelled, warn_unsettled
from annotruth.validation import MISSING_LABEL, one_of


class FusionEstimator(BaseEstimator):
    """Base of the fusion estimators.

    A subclass says how to estimate (:meth:`_estimate`) and what follows for the truth (:meth:`_posterior`). On masks
    both see distinct vote tuples instead of pixels; cases are read one at a time, once to count and once to predict.

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
    """

    scope: str
    _given: CollectedMasks | CollectedAnswers
    _cases: list[Estimate]
    _warns_of_identifiability = True
    _one_coin = False

    # -- taking labels in ---------------------------------------------------------------------------------------

    def fit(self, annotations: Annotations, gold: Gold = None, patterns: Sequence[Patterns] | None = None) -> Self:
        """Learn from annotations, forgetting what was learnt before.

        Parameters
        ----------
        annotations : masks or a label table
        gold : true labels of some items or pixels: an array like the annotations' truth (255, or -1 in tables, where
            unknown), or labels by item name, or a table with columns item and label; "truth" for the annotations' own
        patterns : each case's :func:`~annotruth.fusion.count_case`, if other processes have counted already
        """
        self._take_in(annotations, gold, patterns)
        return self._learn(start=None, first=0)

    def partial_fit(
        self, annotations: Annotations, gold: Gold = None, patterns: Sequence[Patterns] | None = None
    ) -> Self:
        """Add cases, items, answers or raters to what was given before, and go on from what was learnt.

        Parameters are as in :meth:`fit`. Raters and items are known by name.
        """
        if not hasattr(self, "confusion_"):
            return self.fit(annotations, gold, patterns)
        self._check(annotations)
        if annotations.classes != self._class_names:
            before, now = shorten(self._class_names), shorten(annotations.classes)
            raise InputError(f"The classes must stay the same: {before} before, {now} now.")
        if (annotations.kind == "masks") != isinstance(self._given, CollectedMasks):
            raise InputError("Masks and label tables do not mix: add the kind of labels that fit was given.")
        first = len(self._given.items)
        _add(self._given, annotations, gold, patterns)
        self._note_given()
        return self._learn(start=(self.confusion_, self.prior_), first=first)

    def _take_in(self, annotations: Annotations, gold: Gold, patterns: Sequence[Patterns] | None = None) -> None:
        """Take labels in, forgetting those given before."""
        self._check(annotations)
        self.classes_, only = self._classes(annotations.classes)
        self._class_names = annotations.classes
        by_case = self.scope == "case"
        given = CollectedMasks(only, by_case) if annotations.kind == "masks" else CollectedAnswers(only)
        _add(given, annotations, gold, patterns)
        self._given = given
        self._note_given()

    def _note_given(self) -> None:
        self.items_, self.raters_ = self._given.items, self._given.raters
        self._tables: dict[int, tuple[PatternLookup, np.ndarray]] = {}

    def _learn(self, start: tuple[np.ndarray, np.ndarray] | None, first: int) -> Self:
        """Estimate from all that was given, items from number ``first`` on being new."""
        votes = self._given.votes(len(self.classes_))
        self.labelled_counts_, self.unlabelled_ = votes.labelled_counts(), self._given.unlabelled
        if self.scope == "case":
            estimate = self._estimate_cases(first)
        else:
            begin = None if start is None else (for_all_raters(start[0], len(self.raters_)), start[1])
            estimate = self._refine(range(len(self.items_)), self._estimate(votes, begin))
        self._keep(estimate)
        warn_unlabelled(self.items_, self.unlabelled_, stacklevel=4)
        warn_unsettled(type(self).__name__, estimate, stacklevel=4)
        if self._warns_of_identifiability and len(self.classes_) > 1:
            self._warn_identifiability(votes)
        return self

    def _warn_identifiability(self, votes: Votes) -> None:
        anchored = self._anchored(votes)
        warn_identifiability(
            self.confusion_, self.prior_, self.labelled_counts_,
            None if anchored else co_labelling_groups(votes.answers.item, votes.answers.rater, votes.n_raters),
            raters=self.raters_, classes=self.classes_, anchored=anchored, stacklevel=5,
            yardstick=FUSED_MASKS if isinstance(self._given, CollectedMasks) else ANSWERS,
        )  # fmt: skip

    def _keep(self, estimate: Estimate) -> None:
        self.confusion_, self.expected_counts_, self.prior_ = estimate.confusion, estimate.counts, estimate.prior
        self.skill_ = np.diagonal(self.confusion_, axis1=1, axis2=2).mean(axis=1)
        if len(estimate.log_likelihood):
            self.log_likelihood_, self.n_iter_ = estimate.log_likelihood, estimate.n_iter

    def _estimate_cases(self, first: int) -> Estimate:
        """Estimate each case on its own from number ``first`` on; sum up over all of them."""
        done = self._cases[:first] if first else []
        for index in range(first, len(self.items_)):
            source, local = self._masks.find(index)
            votes = self._masks.votes_of(source.patterns_of(local), source, len(self.classes_))
            done.append(self._refine([index], self._estimate(votes, None)))
        self._cases = done
        self.case_confusion_ = np.stack([for_all_raters(case.confusion, len(self.raters_)) for case in done])
        self.case_prior_ = np.stack([case.prior for case in done])
        sizes = [prod(shape) for shape in self._masks.shapes()]
        pooled = pool(done, np.array(sizes), len(self.raters_))
        confusion = confusion_from_counts(pooled.counts, self._pseudo_counts(), one_coin=self._one_coin)
        return replace(pooled, confusion=confusion)

    # -- what a subclass says -----------------------------------------------------------------------------------

    def _check(self, annotations: Annotations) -> None:
        """Refuse wrong parameters; called before any label is read."""
        one_of(self.scope, ("dataset", "case"), "scope")
        if len(annotations) == 0:
            raise InputError("There is no item to fuse.")
        if self.scope == "case" and annotations.kind != "masks":
            raise InputError(
                "scope='case' needs masks: one answer per rater and item says nothing of a rater's errors."
            )

    def _classes(self, names: tuple[str, ...]) -> tuple[tuple[str, ...], int | None]:
        """Names of the classes of the truth; and the number of the one class told apart from all others, if so."""
        return names, None

    @abstractmethod
    def _estimate(self, votes: Votes, start: tuple[np.ndarray, np.ndarray] | None) -> Estimate:
        """Estimate the raters from votes, going on from ``start`` (confusion, prior) if given."""

    @abstractmethod
    def _posterior(self, votes: Votes, confusion: np.ndarray, prior: np.ndarray) -> np.ndarray:
        """Posterior (rows, classes) float64 of the votes."""

    def _pseudo_counts(self) -> np.ndarray | None:
        """Labels (raters, classes, classes) that raters are taken to have given before."""
        return None

    def _refine(self, items: Sequence[int], estimate: Estimate) -> Estimate:
        """Improve an estimate by looking at the pixels of its cases."""
        return estimate

    def _pixel_posterior(self, index: int) -> np.ndarray | None:
        """One case's posterior (classes, pixels) float32, where a pixel's votes alone do not tell it; else None."""
        return None

    def _anchored(self, votes: Votes) -> bool:
        """Whether gold labels of every class, or prior matrices, tie the estimate to the truth."""
        return set(np.flatnonzero(self.prior_)) <= set(votes.gold[votes.gold != MISSING_LABEL].tolist())

    # -- handing results out ------------------------------------------------------------------------------------

    def predict(self) -> np.ndarray | list[np.ndarray]:
        """Most probable labels, in the items' order.

        Returns
        -------
        class numbers: (items,) for a label table; (items, *spatial) uint8 for masks, a list where sizes differ.
        Of classes that are tied, the one that comes first in ``classes_`` wins.
        """
        self._check_fitted()
        if isinstance(self._given, CollectedAnswers):
            return best_classes(self._posterior(self._given.votes(len(self.classes_)), self.confusion_, self.prior_))
        shapes = self._given.shapes()
        if len(set(shapes)) > 1:
            return [self.predict_item(index) for index in range(len(shapes))]
        out = np.empty((len(shapes), *shapes[0]), dtype=np.uint8)
        for index in range(len(shapes)):
            self._write(index, out[index].reshape(1, -1))
        return out

    def predict_proba(self) -> np.ndarray | list[np.ndarray]:
        """Posterior of each class, in the items' order.

        Returns
        -------
        (items, classes) float64 for a label table; (items, classes, *spatial) float32 for masks, a list of
        (classes, *spatial) where sizes differ
        """
        self._check_fitted()
        if isinstance(self._given, CollectedAnswers):
            return self._posterior(self._given.votes(len(self.classes_)), self.confusion_, self.prior_)
        shapes = self._given.shapes()
        if len(set(shapes)) > 1:
            return [self.predict_proba_item(index) for index in range(len(shapes))]
        out = np.empty((len(shapes), len(self.classes_), *shapes[0]), dtype=np.float32)
        for index in range(len(shapes)):
            self._write(index, out[index].reshape(len(self.classes_), -1))
        return out

    def predict_item(self, index: int) -> np.ndarray:
        """Most probable labels (*spatial) uint8 of one case; only this case is read."""
        self._check_fitted()
        source, local = self._masks.find(index)
        out = np.empty(source.annotations.shape(local), dtype=np.uint8)
        self._write(index, out.reshape(1, -1))
        return out

    def predict_proba_item(self, index: int) -> np.ndarray:
        """Posterior (classes, *spatial) float32 of one case; only this case is read."""
        self._check_fitted()
        source, local = self._masks.find(index)
        out = np.empty((len(self.classes_), *source.annotations.shape(local)), dtype=np.float32)
        self._write(index, out.reshape(len(self.classes_), -1))
        return out

    def confusion_interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Credible bounds (low, high) of ``confusion_``; see :func:`annotruth.fusion.intervals.confusion_interval`."""
        return intervals.confusion_interval(self._evidence(), level, one_coin=self._one_coin)

    def skill_interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Credible bounds (low, high) of ``skill_``; see :func:`annotruth.fusion.intervals.skill_interval`."""
        return intervals.skill_interval(self._evidence(), level, one_coin=self._one_coin)

    @property
    def ranking_(self) -> pd.DataFrame:
        """All raters, the most skilful first: see :func:`annotruth.fusion.ranking.ranking`."""
        low, high = self.skill_interval()
        return ranking(self.raters_, self.confusion_, self.classes_, self.skill_, low, high, self.labelled_counts_)

    # -- inner workings -----------------------------------------------------------------------------------------

    def _write(self, index: int, out: np.ndarray) -> None:
        """Fill out with one case's posterior (classes, pixels) float32 or labels (1, pixels) uint8."""
        posterior = self._pixel_posterior(index)
        if posterior is None:
            self._write_votes(index, out)
        else:
            out[:] = posterior if out.dtype == np.float32 else best_classes(posterior.T)

    def _write_votes(self, index: int, out: np.ndarray) -> None:
        """Do so from the posteriors of vote tuples."""
        source, local = self._masks.find(index)
        if source.cases is not None:
            lookup, posterior = self._tabulate(source, local, self.case_confusion_[index], self.case_prior_[index])
        else:
            if id(source) not in self._tables:
                self._tables[id(source)] = self._tabulate(source, local, self.confusion_, self.prior_)
            lookup, posterior = self._tables[id(source)]
        table = (
            posterior.T.astype(np.float32)
            if out.dtype == np.float32
            else best_classes(posterior)[None].astype(np.uint8)
        )
        masks, gold = source.read(local)
        lookup.write(masks, table, out, gold)

    def _tabulate(
        self, source: MaskSource, local: int, confusion: np.ndarray, prior: np.ndarray
    ) -> tuple[PatternLookup, np.ndarray]:
        votes = self._masks.votes_of(source.patterns_of(local), source, len(self.classes_))
        return source.lookup(local), self._posterior(votes, confusion, prior)

    def _evidence(self) -> np.ndarray:
        self._check_fitted()
        pseudo = self._pseudo_counts()
        return self.expected_counts_ if pseudo is None else self.expected_counts_ + pseudo

    @property
    def _masks(self) -> CollectedMasks:
        if not isinstance(self._given, CollectedMasks):
            raise InputError("A label table has no cases to go through one by one: use predict or predict_proba.")
        return self._given

    def _check_fitted(self) -> None:
        if not hasattr(self, "confusion_"):
            raise NotFittedError(
                f"This {type(self).__name__} has not learnt anything yet: call fit(annotations) first."
            )


def _add(
    given: CollectedMasks | CollectedAnswers, annotations: Annotations, gold: Gold, patterns: Sequence[Patterns] | None
) -> None:
    if isinstance(given, CollectedMasks):
        given.add(annotations, gold, patterns)
    else:
        given.add(annotations, gold)
