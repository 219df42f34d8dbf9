"""Ways to choose what to label next, by name. Adding one is adding a function that scores items.

All but "information" score items alone; they serve for comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from annotruth.choosing.queue.information import entropy
from annotruth.choosing.queue.posteriors import ItemPosteriors
from annotruth.choosing.queue.scoring import InformationScores, ItemScores, Scores
from annotruth.errors import InputError
from annotruth.fusion.em import best_classes
from annotruth.fusion.votes import Votes
from annotruth.validation import one_of

ScoreItems = Callable[[ItemPosteriors, np.random.Generator], np.ndarray]
"""Gives each item a score (items,): the higher, the sooner it is labelled."""


@dataclass(frozen=True)
class Strategy:
    """What a name stands for.

    Attributes
    ----------
    score : of the items; None = items and raters are chosen together, by information per cost
    by_information : whether the rater whose label tells most about the item is asked; else one at random
    about : what it does, in words
    """

    score: ScoreItems | None
    by_information: bool
    about: str


STRATEGIES: dict[str, Strategy] = {
    "information": Strategy(None, True, "the pairs whose labels are expected to tell most about the truth, per cost")
}


def register(name: str, *, raters: str = "random") -> Callable[[ScoreItems], ScoreItems]:
    """Make a score of items known by a name; the first sentence of its docstring says what it does.

    Parameters
    ----------
    raters : who is asked: "random", or by "information"
    """

    def add(score: ScoreItems) -> ScoreItems:
        about = (score.__doc__ or "").split(".")[0]
        STRATEGIES[name] = Strategy(score, one_of(raters, ("random", "information"), "way") == "information", about)
        return score

    return add


def make_scores(name: str, told: InformationScores, rng: np.random.Generator) -> Scores:
    """What pairs are worth under a strategy.

    Parameters
    ----------
    told : what information says of them
    """
    one_of(name, tuple(STRATEGIES), "strategy")
    strategy = STRATEGIES[name]
    if strategy.score is None:
        return told
    return ItemScores(told, strategy.score(told.known, rng), strategy.by_information, rng)


@register("entropy")
def score_entropy(known: ItemPosteriors, rng: np.random.Generator) -> np.ndarray:
    """Items whose posterior is most spread out, by raters at random."""
    return known.sums(entropy(known.posterior) * known.weight)


@register("disagreement")
def score_disagreement(known: ItemPosteriors, rng: np.random.Generator) -> np.ndarray:
    """Items whose labels differ most, by raters at random. Every item counts as having one vote for each class."""
    counts = _votes(known, "disagreement").vote_counts() + 1 / len(known.classes)
    return entropy(counts / counts.sum(axis=1, keepdims=True))


@register("consensus")
def score_consensus(known: ItemPosteriors, rng: np.random.Generator) -> np.ndarray:
    """Items on whose consensus label the raters, weighed by how often they agree with it, are least united.

    As ActiveLab (Goh and Mueller, 2023) without its classifier: a rater's label speaks for the consensus as far as
    raters agree with it on average, one more who knows nothing is added, and raters weigh what they are better than
    always naming the commonest class.
    """
    votes, n_classes = _votes(known, "consensus"), len(known.classes)
    item, rater = votes.answers.item, votes.answers.rater
    consensus = best_classes(known.posterior)
    agrees = votes.answers.label == consensus[item]
    several = np.diff(votes.first_answer)[item] > 1
    counted = np.bincount(rater[several], minlength=votes.n_raters)
    mean = float(agrees[several].mean()) if several.any() else 1 / n_classes
    share = np.bincount(rater[several], agrees[several], minlength=votes.n_raters)
    share = np.where(counted > 0, share / np.maximum(counted, 1), mean)
    commonest = np.bincount(consensus, minlength=n_classes).max() / len(consensus)
    weight = np.clip(1 - (1 - share) / max(1 - commonest, 1e-6), 1e-6, None)
    average = float(weight[rater].mean()) if len(rater) else 1.0
    speaks = np.where(agrees, mean, (1 - mean) / max(n_classes - 1, 1))
    quality = np.bincount(item, weight[rater] * speaks, minlength=votes.n_rows) + average / n_classes
    quality /= np.bincount(item, weight[rater], minlength=votes.n_rows) + average
    return 1 - quality


@register("bald")
def score_disagreeing_models(known: ItemPosteriors, rng: np.random.Generator) -> np.ndarray:
    """Items on which models of several seeds disagree most, each of them sure, by raters at random.

    Houlsby and others, Bayesian active learning for classification and preference learning, 2011: the mutual
    information of the truth and the model.
    """
    if known.disagreement is None:
        raise InputError(
            "The strategy bald asks where several models disagree: give more than one run, trained with other seeds "
            "(--run A --run B, or a folder of folds; an at.Ensemble)."
        )
    return np.maximum(known.disagreement, 1e-12)


@register("random")
def score_nothing(known: ItemPosteriors, rng: np.random.Generator) -> np.ndarray:
    """Items and raters at random."""
    return 1 - rng.random(len(known.items))


@register("raters", raters="information")
def score_nothing_but_raters(known: ItemPosteriors, rng: np.random.Generator) -> np.ndarray:
    """Items at random, by the raters whose labels are expected to tell most per cost."""
    return 1 - rng.random(len(known.items))


@register("items")
def score_information(known: ItemPosteriors, rng: np.random.Generator) -> np.ndarray:
    """Items about which the best label is expected to tell most, by raters at random."""
    most = InformationScores(known, np.ones(len(known.raters))).best()[1]
    return np.where(np.isfinite(most), most, 0.0)


def _votes(known: ItemPosteriors, name: str) -> Votes:
    if known.votes is None:
        raise InputError(f"The strategy {name} counts votes on items: it is for label tables. Take another for masks.")
    return known.votes
