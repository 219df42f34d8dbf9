"""The fusion behind the desk: it follows each decision, counting one case again and going on from what was learnt."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Any, Protocol

import numpy as np
from scipy import ndimage

from annotruth.choosing.queue.fusing import usual_estimator
from annotruth.choosing.queue.posteriors import ItemPosteriors, shared_items, shrink, table_posteriors
from annotruth.choosing.queue.regions import CERTAIN, describe_regions, foreground_size, wary_posterior
from annotruth.desk.study import Study
from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.em import confusion_from_counts
from annotruth.fusion.registry import make_estimator
from annotruth.fusion.state import FusionState
from annotruth.fusion.stores import Case
from annotruth.fusion.votes import Patterns, Votes, join_votes, merge_patterns
from annotruth.validation import MISSING_PIXEL

MASK_METHODS = ("majority", "staple", "dawid-skene", "spatial-staple")
TABLE_METHODS = ("majority", "dawid-skene", "ibcc", "mace")
MANY_ANSWERS = 300_000
"""Of label tables with more answers, only the vote is told beside the fusion."""
Tell = Callable[[int, int], None]
Fused = tuple[np.ndarray, np.ndarray]
"""A case's labels, (*spatial) uint8, and how probable each is, (*spatial) float32."""


class Model(Protocol):
    """A trained model, whose word is one more opinion."""

    def predict_proba(self, images: Any, **told: Any) -> Any: ...


@dataclass(frozen=True)
class CaseDoubt:
    """The doubt about a case, as :func:`annotruth.choosing.queue.regions.find_doubt` finds it, by tuples of votes.

    Attributes
    ----------
    votes : all of the case's tuples of votes
    unsure : bool (rows,) which of them were in doubt when regions were looked for
    words : what there was to be seen
    """

    votes: Votes
    unsure: np.ndarray
    words: str


def find_case_doubt(case: Case, posterior: np.ndarray, classes: tuple[str, ...]) -> CaseDoubt:
    """Find the regions of a case in which pixels are in doubt.

    Parameters
    ----------
    posterior : (rows of the case's votes, classes)
    """
    unsure = posterior.max(axis=1) < CERTAIN
    answered = case.votes.answered.any()
    if not unsure.any():
        words = "no pixel is in doubt" if answered else "nobody has labelled it"
        return CaseDoubt(case.votes, unsure, words)
    row = case.to_pixels(np.arange(len(posterior), dtype=np.int32)[None])[0]
    in_doubt = unsure[row]
    touching = ndimage.generate_binary_structure(len(case.shape), len(case.shape))
    region, count = ndimage.label(in_doubt.reshape(case.shape), structure=touching)
    pixels = np.flatnonzero(in_doubt)
    number, own = region.reshape(-1)[pixels], row[pixels]
    area = np.bincount(number, minlength=count + 1)
    words = describe_regions(posterior[own], number, area, classes) if answered else "nobody has labelled it"
    return CaseDoubt(case.votes, unsure, words)


class MaskFusion:
    """Fusion of masks: cases are counted once, one of them again after each decision.

    Parameters
    ----------
    study : the cases
    model : a trained model, to be asked beside the methods of fusion
    """

    def __init__(self, study: Study, model: Model | None = None) -> None:
        self.study, self.model = study, model
        self.methods = (*MASK_METHODS, *(("model",) if model is not None else ()))
        self._estimator = usual_estimator(study.annotations)
        self._patterns: list[Patterns | None] = [None] * len(study)
        self._doubt: list[CaseDoubt | None] = [None] * len(study)
        self._labelled = np.zeros((len(study), len(study.raters)), dtype=bool)
        self._state: FusionState | None = None
        self._sober: FusionState | None = None
        self._others: dict[str, FusionState] = {}
        self._stale: list[int] = []

    def prepare(self, tell: Tell) -> None:
        """Count every case, learn, and find where doubt is."""
        steps = 2 * len(self.study)
        for index in range(len(self.study)):
            self._count(index)
            tell(index + 1, steps)
        self._learn()
        for index in range(len(self.study)):
            self._find_doubt(index)
            tell(len(self.study) + index + 1, steps)

    def follow(self, changed: Iterable[int]) -> None:
        """Take in what was decided, or labelled, of some cases."""
        for index in changed:
            self._count(index)
        self._learn()
        for index in changed:
            self._find_doubt(index)

    def known(self) -> ItemPosteriors:
        """What is known of all cases.

        Words on regions are of those that were found last, until :meth:`settle` has looked again.
        """
        study, found = self.study, [doubt for doubt in self._doubt if doubt is not None]
        state = self._sober
        assert state is not None
        votes = join_votes([doubt.votes for doubt in found])
        case = np.repeat(np.arange(len(found)), [doubt.votes.n_rows for doubt in found])
        before = np.concatenate([doubt.unsure for doubt in found])
        posterior = wary_posterior(self._estimator, votes, state)
        edges = pairwise(np.searchsorted(case, np.arange(len(found) + 1)))
        foreground = [foreground_size(posterior[a:b].T, votes.weight[a:b]) for a, b in edges]
        weight = votes.weight / np.array(foreground)[case]
        unsure = posterior.max(axis=1) < CERTAIN
        self._stale = np.unique(case[unsure != before]).tolist()
        stale = set(self._stale)
        item, rater = np.nonzero(self._labelled)
        first_label = np.searchsorted(item, np.arange(len(study) + 1))

        def describe(index: int) -> str:
            return "its doubt is being looked at" if index in stale else found[index].words

        return ItemPosteriors(
            items=study.base.items, raters=study.raters, classes=study.base.classes, posterior=posterior[unsure],
            weight=weight[unsure], pieces=np.sqrt(votes.weight[unsure]), size=votes.weight[unsure],
            first_row=np.searchsorted(case[unsure], np.arange(len(study) + 1)), sure=0.0, total=0.0,
            confusion=state.confusion, prior=state.prior, first_label=first_label, rater_of=rater,
            evidence=shared_items(first_label, rater, len(study.raters)), describe=describe,
        )  # fmt: skip

    @property
    def is_stale(self) -> bool:
        """Whether other pixels are in doubt than when regions were looked for."""
        return bool(self._stale)

    def settle(self, go_on: Callable[[], bool]) -> None:
        """Look for regions again where that is so, as long as one may."""
        while self._stale and go_on():
            self._find_doubt(self._stale.pop(0))

    def fused(self, index: int) -> Fused:
        """What the raters' labels say of a case, its own decision apart; of one case alone until all are counted."""
        case = self._estimator.read_case(self.study.annotations, index)
        state = self._state
        return _hard(case, *self._estimator.fuse_case(case, state if state is not None else self._alone(case)))

    def say(self, index: int, method: str) -> Fused:
        """What a method, or the model, says of a case."""
        if method == "model":
            return self._ask_model(index)
        if method == "spatial-staple":
            estimator = make_estimator(method, "case")
            case = estimator.read_case(self.study.annotations, index)
            return _hard(case, *estimator.fuse_case(case, *estimator.estimate_case(case)))
        estimator = make_estimator(method)
        case = estimator.read_case(self.study.annotations, index)
        state = self._others.get(method)
        if state is None:
            complete = all(pattern is not None for pattern in self._patterns)
            state = estimator.estimate(self._votes() if complete else case.votes)
            if complete:
                self._others[method] = state
        return _hard(case, *estimator.fuse_case(case, state))

    def _ask_model(self, index: int) -> Fused:
        base = self.study.base
        image, spacing = base.item_image(index), base.spacing(index)
        assert self.model is not None
        posterior = np.asarray(self.model.predict_proba([image], spacing=spacing)[0], dtype=np.float32)
        return posterior.argmax(axis=0).astype(np.uint8), posterior.max(axis=0)

    def _alone(self, case: Case) -> FusionState:
        return self._estimator.estimate(case.votes)

    def _gold(self, index: int) -> dict[str, Any] | None:
        gold = self.study.gold(index)
        return None if gold is None else {self.study.base.items[index]: gold}

    def _count(self, index: int) -> None:
        patterns = self._estimator.count(self.study.annotations.take([index]), 0, self._gold(index))
        self._patterns[index] = patterns
        self._labelled[index] = (patterns.votes != MISSING_PIXEL).any(axis=1)

    def _votes(self) -> Votes:
        raters, n_classes = self.study.raters, len(self.study.base.classes)
        patterns = merge_patterns([pattern for pattern in self._patterns if pattern is not None], n_classes)
        return patterns.for_raters(np.arange(len(raters)), raters, n_classes)

    def _learn(self) -> None:
        votes = self._votes()
        state = self._estimator.estimate(votes, None if self._state is None else replace(self._state, items={}))
        # As annotruth.choosing does it: neighbouring pixels are not independent, and count as their square root.
        sizes = np.array([prod(self.study.base.shape(index)) for index in range(len(self.study))])
        pieces = np.sqrt(sizes[:, None] * self._labelled).sum(axis=0)
        counts = state.counts * (pieces / np.maximum(votes.labelled_counts(), 1))[:, None, None]
        self._state, self._others = state, {}
        self._sober = replace(state, confusion=confusion_from_counts(counts, shrink(counts)))

    def _find_doubt(self, index: int) -> None:
        assert self._sober is not None
        annotations, gold = self.study.annotations, self._gold(index)
        case = self._estimator.read_case(annotations, index, gold, self._patterns[index])
        posterior = wary_posterior(self._estimator, case.votes, self._sober)
        self._doubt[index] = find_case_doubt(case, posterior, self.study.base.classes)


class TableFusion:
    """Fusion of a label table. Parameters are those of :class:`MaskFusion`."""

    def __init__(self, study: Study, model: Model | None = None) -> None:
        self.study, self.model = study, model
        many = len(study.base.answers) > MANY_ANSWERS
        self.methods = (*TABLE_METHODS[: 1 if many else None], *(("model",) if model is not None else ()))
        self._fitted: FusionEstimator | None = None
        self._others: dict[str, np.ndarray] = {}

    def prepare(self, tell: Tell) -> None:
        """Learn from all answers."""
        self.follow(())
        tell(1, 1)

    def follow(self, changed: Iterable[int]) -> None:
        """Take in what was decided, or labelled, of some items."""
        annotations = self.study.annotations
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._fitted = usual_estimator(annotations).fit(annotations, self.study.gold_classes())
        if any(self.study.record(index).labels for index in changed):
            self._others = {}

    def known(self) -> ItemPosteriors:
        """What is known of all items."""
        assert self._fitted is not None
        return table_posteriors(self._fitted)

    @property
    def is_stale(self) -> bool:
        """Whether anything is to be looked at again: nothing is."""
        return False

    def settle(self, go_on: Callable[[], bool]) -> None:
        """Look at nothing."""

    def posterior(self, index: int) -> np.ndarray | None:
        """What the raters' labels say of an item, its own decision apart: (classes,); None until it is learnt."""
        n_classes = len(self.study.base.classes)
        fitted = self._fitted
        if fitted is None:
            return None
        answers = self.study.annotations.answers.take(np.array([index]), len(self.study))
        votes = Votes.from_answers(answers, 1, len(self.study.raters), n_classes, raters=self.study.raters)
        return fitted.posterior(votes, replace(fitted.state_, items={}))[0]

    def say(self, method: str) -> np.ndarray:
        """What a method says of every item: (items,) class numbers."""
        if method not in self._others:
            annotations = self.study.annotations
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._others[method] = np.asarray(make_estimator(method).fit(annotations).predict())
        return self._others[method]

    def ask_model(self, index: int) -> np.ndarray:
        """What the model says of an item: (classes,)."""
        assert self.model is not None
        return np.asarray(self.model.predict_proba(self.study.base.take([index])))[0]


def _hard(case: Case, labels: np.ndarray, posterior: np.ndarray) -> Fused:
    return labels.reshape(case.shape), posterior.max(axis=0).reshape(case.shape)
