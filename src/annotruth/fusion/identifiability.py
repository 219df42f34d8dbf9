"""Whether labels and estimates allow the truth to be told from the raters' errors; if not, a named warning.

Every part of annotruth that estimates confusion matrices asks the same questions here, so that the user reads the
same words whichever method was used.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from annotruth.errors import IdentifiabilityWarning, InputError, shorten
from annotruth.fusion._em import row_loops

MIN_RATERS = 3
"""With two raters, many truths explain the same answers equally well; three are enough (independent errors)."""
MIN_RATERS_OF_PICTURES = 2
"""Where a network sees what is labelled, two are nearly as good as three: docs/explanation/trace.md."""
MIN_NOTICED_ERROR = 0.15
"""Share of a class's size that a rater must miss or add to be said to draw less or more."""
MIN_COUNTERWEIGHT = 0.25
"""Raters lie on both sides of an estimate if what some draw more is at least this share of what others draw less."""
MANY_RATERS = 5
"""From this many raters on, errors cancel sooner the more there are."""
MIN_CLASS_SHARE = 0.1
"""A class is lost if the estimate has less than this share of what the raters mark on average."""
MIN_CERTAINTY = 0.7
"""Share of items that the estimate must be right on by its own posterior, which is rather too sure of weak raters."""


class Yardstick(NamedTuple):
    """When a rater counts as faithful, and when the errors of others cancel.

    Attributes
    ----------
    dice : how closely a rater must agree with the estimate on a class
    margin : errors of few raters cancel if, in the mean confusion, right is this many times as common as any one
        error; of many raters sooner, as not all of them err alike
    loses : whether the estimate may lose a class that raters name
    raters : how many there must be
    """

    dice: float
    margin: float
    loses: bool = True
    raters: int = MIN_RATERS


ANSWERS = Yardstick(dice=0.0, margin=1.0, loses=False)
"""Single answers err independently: it is enough that somebody, or the mean, is right more often than wrong."""
PREDICTED_ANSWERS = Yardstick(dice=0.0, margin=1.0, raters=MIN_RATERS_OF_PICTURES)
"""A network sees the errors of all items that look alike, so that they cancel as soon as right is more common."""
FUSED_MASKS = Yardstick(dice=8 / 9, margin=2.0)
"""Whole borders err together, and a fused mask is made of the raters' own: if one is faithful, it is very close."""
PREDICTED_MASKS = Yardstick(dice=0.75, margin=2.0)
"""A network cannot follow every stroke of anybody."""


def identifiability_problems(
    confusion: np.ndarray,
    prior: np.ndarray | None = None,
    labelled_counts: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    *,
    raters: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    anchored: bool = False,
    yardstick: Yardstick = ANSWERS,
    alike: np.ndarray | None = None,
    voted: np.ndarray | None = None,
    certainty: float | None = None,
    elsewhere: str | None = None,
    borne_out: bool = False,
) -> list[str]:
    """List the reasons why these confusion matrices, and the truth that came with them, may be wrong.

    Parameters
    ----------
    confusion : (raters, classes, classes) labels counted against the estimated truth, [true, observed], rows sum to 1
    prior : (classes,) how common each class is; classes of prior 0 are left out. By default all alike
    labelled_counts : (raters,) how many items or pixels each rater labelled: the weights of the mean confusion.
        Raters without any label are left out. By default all alike
    groups : (raters,) the group of raters linked by common items, from :func:`co_labelling_groups`. Leave it out where
        something else links the raters, such as a network that sees the images
    raters, classes : names for the messages
    anchored : gold labels or prior matrices tie the estimate to the truth: then few raters, raters apart and raters
        who are mostly wrong do no harm, as long as somebody is faithful
    yardstick : what makes a rater faithful: ``ANSWERS``, ``PREDICTED_ANSWERS``, ``FUSED_MASKS`` or ``PREDICTED_MASKS``
    alike : (classes,) Dice of the two raters who agree best. Two who agree as closely as the yardstick asks are
        faithful to something: then a poor estimate is the network's fault, not the raters'
    voted : (classes,) Dice of fused masks and the majority vote
    certainty : mean probability of the most probable class of an item, where it is known
    elsewhere : whose borders images show rather than those of fused masks, in words; None where they do not
    borne_out : whether images show the borders of fused masks: then it does not matter who drew something else

    Returns
    -------
    One sentence per problem; empty when nothing speaks against the estimate.

    Notes
    -----
    The truth is identified if the *mean* confusion of the raters is diagonally dominant: each diagonal entry exceeds
    every other entry of its column. No rater needs to be good if errors differ and cancel in the mean; a rater who
    is faithful is enough otherwise. With neither, nothing recovers the truth.

    Whether somebody *is* faithful can only be judged by the estimate itself. An estimate that nobody's labels come
    close to is doubtful. One that few raters come close to is as good as they are. If it is another than the vote's
    (``voted``), the user is told so: at these pixels the mean confusion is not dominant. Where that is not known: if
    some others draw more and some less, it lies between them, and nothing more can be said; if all others err to one
    side, it is an extreme.

    Examples
    --------
    >>> good, swapped = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[0.1, 0.9], [0.8, 0.2]])
    >>> identifiability_problems(np.stack([good, good, good]))
    []
    >>> for problem in identifiability_problems(np.stack([good, swapped, swapped]), classes=["cat", "dog"]):
    ...     print(problem)
    Classes look swapped: by the mean confusion of the raters, true cat is called dog, true dog is called cat.
    """
    confusion = np.asarray(confusion, dtype=np.float64)
    if confusion.ndim != 3 or confusion.shape[1] != confusion.shape[2]:
        raise InputError(f"Confusion matrices have the shape (raters, classes, classes), not {confusion.shape}.")
    n_raters, n_classes, _ = confusion.shape
    rater_names = list(raters) if raters is not None else [f"rater_{r + 1}" for r in range(n_raters)]
    class_names = list(classes) if classes is not None else [str(c) for c in range(n_classes)]
    weight = np.ones(n_raters) if labelled_counts is None else np.asarray(labelled_counts, dtype=np.float64)
    frequency = np.full(n_classes, 1 / n_classes) if prior is None else np.asarray(prior, dtype=np.float64)

    active = np.flatnonzero(weight > 0)
    problems = [] if anchored else _too_few(len(active), yardstick.raters) + _apart(active, groups, rater_names)
    masks = yardstick.dice > 0
    if certainty is not None and certainty < MIN_CERTAINTY:
        problems += _unsure(certainty)
    if elsewhere is not None:
        problems.append(f"Edges of the images do not lie along the fused borders, but along {elsewhere}: look at some.")
    if yardstick.loses and len(active):
        problems += _lost(confusion[active], weight[active], frequency, class_names)
    seen = np.flatnonzero(frequency > 0)
    if len(active) == 0 or len(seen) < 2:
        return problems
    names, who = [class_names[c] for c in seen], [rater_names[r] for r in active]
    matrices = confusion[np.ix_(active, seen, seen)]
    mean = np.average(matrices, axis=0, weights=weight[active])
    if not anchored:
        problems += _swapped(mean, names) or _not_dominant(mean, names)
    support = _Support(matrices, mean, frequency[seen], yardstick, None if alike is None else alike[seen])
    problems += support.nobody(names, who, masks)
    if not masks or anchored or borne_out:
        return problems
    if voted is None:
        return problems + support.few_alone(names, who)
    return problems + support.outvoted(voted[seen], names, who, yardstick.dice)


def warn_identifiability(confusion: np.ndarray, *args: Any, stacklevel: int = 2, **kwargs: Any) -> list[str]:
    """Give one :class:`~annotruth.errors.IdentifiabilityWarning` naming every problem found; return the problems.

    Takes what :func:`identifiability_problems` takes.

    Examples
    --------
    >>> warn_identifiability(np.tile(np.eye(2), (3, 1, 1)))
    []
    """
    problems = identifiability_problems(confusion, *args, **kwargs)
    if problems:
        warnings.warn(
            "The estimated truth may be wrong. " + " ".join(problems), IdentifiabilityWarning, stacklevel=stacklevel
        )
    return problems


def co_labelling_groups(item: np.ndarray, rater: np.ndarray, n_raters: int) -> np.ndarray:
    """Number the groups of raters linked by common items.

    Parameters
    ----------
    item, rater : (answers,) who labelled what, as in :class:`~annotruth.data.answers.Answers`

    Returns
    -------
    (raters,) int group of each rater, numbered from 0 in the raters' order; -1 = the rater labelled nothing

    Examples
    --------
    >>> co_labelling_groups(np.array([0, 0, 1, 1]), np.array([0, 1, 2, 4]), n_raters=5)
    array([ 0,  0,  1, -1,  1])
    """
    item, rater = np.asarray(item), np.asarray(rater)
    if (item[1:] < item[:-1]).any():
        order = np.argsort(item, kind="stable")
        item, rater = item[order], rater[order]
    labelled = np.bincount(rater, minlength=n_raters) > 0
    groups = np.full(n_raters, -1, dtype=np.int64)
    groups[labelled] = np.unique(
        row_loops(len(item)).first_linked(item, rater, n_raters)[labelled], return_inverse=True
    )[1]
    return groups


def _too_few(count: int, least: int) -> list[str]:
    if count >= least:
        return []
    if count == 2:
        return [
            "Only two raters labelled anything: where they differ, nothing but the prior says who is right; "
            "add a third rater, gold items or prior confusion matrices."
        ]
    who = "Only one rater" if count == 1 else "No rater"
    return [f"{who} labelled anything: errors cannot be told from the truth; add raters or gold items."]


def _apart(active: np.ndarray, groups: np.ndarray | None, names: list[str]) -> list[str]:
    if groups is None or len(active) < 2:
        return []
    members: dict[int, list[str]] = {}
    for rater, group in zip(active.tolist(), np.asarray(groups)[active].tolist()):
        members.setdefault(group, []).append(names[rater])
    if len(members) < 2:
        return []
    listed = "; ".join(shorten(group, 3) for group in list(members.values())[:4]) + ("; …" if len(members) > 4 else "")
    return [
        f"The raters fall into {len(members)} groups that share no item ({listed}): skills cannot be compared "
        "across groups; have some items labelled by raters of several groups."
    ]


def _unsure(certainty: float) -> list[str]:
    return [
        f"By its own probabilities the estimate is right on only {certainty:.0%} of the items: so few labels of raters "
        "who err so much say little of either; add labels, better raters or gold items."
    ]


def _swapped(mean: np.ndarray, names: list[str]) -> list[str]:
    """Compare the best one-to-one naming of the classes with the names they bear."""
    own = np.arange(len(mean))
    if (mean.argmax(axis=1) == own).all():
        return []
    from scipy.optimize import linear_sum_assignment  # takes longer to load than most fits

    _, best = linear_sum_assignment(mean, maximize=True)
    if mean[own, best].sum() <= mean[own, own].sum():
        return []
    moved = [f"true {names[c]} is called {names[best[c]]}" for c in own if best[c] != c]
    return [f"Classes look swapped: by the mean confusion of the raters, {shorten(moved, 4)}."]


def _not_dominant(mean: np.ndarray, names: list[str]) -> list[str]:
    rival = np.where(np.eye(len(mean), dtype=bool), -np.inf, mean)
    weak = np.flatnonzero(np.diag(mean) <= rival.max(axis=0))
    if len(weak) == 0:
        return []
    listed = [
        f"{names[c]} (right {mean[c, c]:.2f}, but given to true {names[rival[:, c].argmax()]} {rival[:, c].max():.2f})"
        for c in weak
    ]
    return [
        f"The mean confusion of the raters is not diagonally dominant for {shorten(listed, 3)}: "
        "the truth is then not identified; add better raters or gold items."
    ]


def _lost(matrices: np.ndarray, weight: np.ndarray, frequency: np.ndarray, names: list[str]) -> list[str]:
    """Find classes that raters mark and the estimate does not have."""
    marked = frequency @ np.average(matrices, axis=0, weights=weight)
    lost = np.flatnonzero(frequency < MIN_CLASS_SHARE * marked)
    if len(lost) == 0:
        return []
    listed = [f"{names[c]} ({100 * marked[c]:.2g} % of the labels, {100 * frequency[c]:.2g} % here)" for c in lost]
    return [f"The estimated truth has hardly any {shorten(listed, 3)}: the class got lost."]


class _Support:
    """Who is close to the estimate on each class, and whether the others' errors cancel."""

    def __init__(
        self,
        matrices: np.ndarray,
        mean: np.ndarray,
        frequency: np.ndarray,
        yardstick: Yardstick,
        alike: np.ndarray | None,
    ) -> None:
        off = np.eye(len(mean), dtype=bool)
        share = frequency[:, None] * matrices  # how often (true, observed) occurs, by rater
        found = np.diagonal(share, axis1=1, axis2=2)
        self.missed = 1 - np.diagonal(matrices, axis1=1, axis2=2)
        self.added = (share.sum(axis=1) - found) / frequency
        self.dice = 2 * found / (share.sum(axis=1) + frequency).clip(1e-12)
        precise = found > np.where(off, -np.inf, share).max(axis=1)
        complete = 1 - self.missed > np.where(off, -np.inf, matrices).max(axis=2)
        self.faithful = precise & complete & (self.dice >= yardstick.dice)
        self.agreed = np.zeros(len(mean), dtype=bool) if alike is None else alike >= yardstick.dice
        margin = 1 + (yardstick.margin - 1) * min(1.0, MANY_RATERS / len(matrices))
        mean_share = frequency[:, None] * mean
        self.cancels = (np.diag(mean) > margin * np.where(off, -np.inf, mean).max(axis=1)) & (
            np.diag(mean_share) > margin * np.where(off, -np.inf, mean_share).max(axis=0)
        )

    def nobody(self, names: list[str], raters: list[str], masks: bool) -> list[str]:
        """Name classes that no rater marks faithfully and whose errors do not cancel in the mean either."""
        score = "Dice" if masks else "F1"  # the same number, by the name it has for drawings and for answers
        wrong = "misses or invents much of it" if masks else "often takes it for another class, or another for it"
        lost = np.flatnonzero(~(self.faithful.any(axis=0) | self.cancels | self.agreed))
        if len(lost) == 0:
            return []
        closest = self.dice.argmax(axis=0)
        listed = [f"{names[c]} (closest: {raters[closest[c]]}, {score} {self.dice[closest[c], c]:.2f})" for c in lost]
        return [f"No rater is faithful on {shorten(listed, 3)}: each {wrong}, and the errors do not cancel."]

    def outvoted(self, voted: np.ndarray, names: list[str], raters: list[str], least: float) -> list[str]:
        """Name classes of which most raters drew something else than what is estimated, and who drew that."""
        problems = []
        for c in np.flatnonzero(voted < least):
            close = [rater for rater, is_close in zip(raters, self.dice[:, c] >= least) if is_close]
            who = f"it follows {shorten(close, 3)}" if close else "nobody drew it so"
            problems.append(
                f"The estimated {names[c]} is not what most raters drew ({who}; Dice with the majority vote "
                f"{voted[c]:.2f}): labels alone do not tell who is right."
            )
        return problems

    def few_alone(self, names: list[str], raters: list[str]) -> list[str]:
        """Name classes on which at most half of the raters are close to the estimate, and all others err to one side.

        Those who are close may be faithful, or share a habit: what they draw does not tell which.
        """
        problems = []
        told = np.arange(len(names)) > (0 if len(names) == 2 else -1)  # what is more of one class is less of the other
        count = self.faithful.sum(axis=0)
        for c in np.flatnonzero(
            (count > 0) & (2 * count <= max(len(raters), 2)) & ~(self.cancels | self.agreed) & told
        ):
            others = ~self.faithful[:, c]
            if not others.any():
                continue
            added, missed = (float(errors[others, c].max()) for errors in (self.added, self.missed))
            more, less = (
                one > max(MIN_NOTICED_ERROR, MIN_COUNTERWEIGHT * other)
                for one, other in ((added, missed), (missed, added))
            )
            if more and less:
                continue
            which, too = ("more", "little") if more else ("less", "much")
            who = shorten([rater for rater, close in zip(raters, self.faithful[:, c]) if close], 3)
            problems.append(
                f"The estimated {names[c]} rests on {who} alone: all others draw {which} of it. If {who} "
                f"{'draws' if count[c] == 1 else 'draw'} too {too}, so does the estimate."
            )
        return problems
