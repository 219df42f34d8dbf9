"""KOS: messages between raters and items, for two classes."""

from __future__ import annotations

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.base import FusionEstimator, check_iterations, foreground_classes
from annotruth.fusion.majority import decide, summed_up
from annotruth.fusion.registry import register
from annotruth.fusion.state import FusionState
from annotruth.fusion.votes import Votes
from annotruth.fusion.weighted import score_shares


@register("kos")
class KOS(FusionEstimator):
    """Karger, Oh and Shah's message passing: raters are as reliable as others confirm them, item by item.

    Every answer carries a message about how reliable its rater is *on all other items*, so that nobody confirms
    themselves. Raters who mostly say the opposite get negative messages, and help all the same.

    Parameters
    ----------
    max_iter : most rounds of messages
    tol : stop when no message, the largest being 1, moves by more than this
    foreground : with more than two classes, the one that is told apart from all others
    scope : messages over the whole data set ("dataset") or in each case with masks on its own ("case")

    Notes
    -----
    The posterior is the share of the reliabilities that speak for a class: it orders the classes, but is no probability
    that was learnt. Messages start alike, not at random.

    References
    ----------
    Karger, Oh and Shah, Budget-optimal task allocation for reliable crowdsourcing systems, 2014.

    Examples
    --------
    >>> from annotruth import Annotations
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 400)
    >>> answers = np.stack([np.where(rng.random(400) < p, truth, 1 - truth) for p in (0.9, 0.8, 0.7, 0.6, 0.1)], axis=1)
    >>> fused = KOS().fit(Annotations.from_answers(answers))
    >>> bool((fused.predict() == truth).mean() > 0.93)
    True
    """

    warns_of_identifiability = False
    has_item_state = True

    def __init__(
        self, max_iter: int = 100, tol: float = 1e-6, foreground: str | None = None, scope: str = "dataset"
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.foreground = foreground
        self.scope = scope

    def truth_classes(self, names: tuple[str, ...]) -> tuple[tuple[str, ...], int | None]:
        return foreground_classes(names, self.foreground)

    def check(self, annotations: Annotations) -> None:
        super().check(annotations)
        n_classes = len(self.truth_classes(annotations.classes)[0])
        if n_classes > 2:
            raise InputError(
                f"KOS tells two classes apart, and there are {n_classes}. Take m-msr or dawid-skene, or one class "
                f"against all others: --option foreground={annotations.classes[-1]}."
            )
        check_iterations(self.max_iter, self.tol)

    def estimate(self, votes: Votes, start: FusionState | None = None) -> FusionState:
        if votes.n_classes > 1 and not (np.diff(votes.first_answer) > 1).any():
            raise InputError(
                "KOS lets raters confirm each other on the items that they share, and no item has two answers. Take "
                "dawid-skene with known truth of some items, or majority."
            )
        item, rater = votes.answers.item, votes.answers.rater
        said = 2.0 * votes.answers.label - 1.0
        weight, known = votes.weight[item], votes.gold[item] >= 0
        truth = 2.0 * votes.gold[item] - 1.0
        message, converged = np.ones(len(item)), not len(item)
        for _ in range(self.max_iter):
            if converged:
                break
            spoken = said * message
            inferred = np.bincount(item, spoken, minlength=votes.n_rows)[item] - spoken
            scale = np.abs(inferred).max()
            inferred = np.where(known, truth * scale, inferred)
            heard = said * inferred
            new = np.bincount(rater, weight * heard, minlength=votes.n_raters)[rater] - heard
            new /= max(np.abs(new).max(), np.finfo(float).tiny)
            converged = bool(np.abs(new - message).max() <= self.tol)
            message = new
        support = votes.vote_counts(np.where(message >= 0, message, 0.0))
        against = votes.vote_counts(np.where(message < 0, -message, 0.0))
        scores = support + against[:, ::-1]  # whoever is held for a liar speaks for the other class
        posterior = decide(votes, score_shares(scores), np.zeros(votes.n_classes))
        found = summed_up(votes, posterior)
        return FusionState(found.confusion, found.counts, found.prior, converged=converged, items={"scores": scores})

    def posterior(self, votes: Votes, state: FusionState) -> np.ndarray:
        return decide(votes, score_shares(state.items["scores"]), state.prior)
