"""Skill over time: raters who change, tire, or hurry, where a label table tells when answers were given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.stats import rankdata

from annotruth.data.annotations import Annotations
from annotruth.data.answers import Answers
from annotruth.data.confusion import normalise_rows
from annotruth.errors import InputError
from annotruth.fusion.spamming import others_posterior
from annotruth.io.timing import AnswerTimes

LEVEL = 0.05
"""How probable it is, at most, that any rater at all is wrongly said to change (or to tire, or to err in haste)."""
PRIOR_ANSWERS = 2.0
"""Of each class, that a rater is taken to have given by the matrix told."""
MIN_ANSWERS = 20
"""Of fewer answers nothing is said."""
MIN_EFFECT = 0.05
"""Differences in the chance to be right that are not worth a word if smaller."""
MIN_PART = 5
"""Answers on either side of a change."""
PAUSE = 30 * 60.0
"""Seconds without an answer that end a session."""
PERMUTATIONS = 999
"""Random orders that a history is compared with; more where there are many raters."""
_MOST_POINTS = 400  # longer histories are put together to so many means, for the sake of time
_MOST_ORDERS, _AT_ONCE, _CLEAR = 100_000, 333, 20  # orders at most, at a time, and how many as strong make it clear


@dataclass(frozen=True)
class Change:
    """A point in time before and after which a rater's skill differs.

    Attributes
    ----------
    time : of the first answer after it, seconds since 1970
    before, after : chance to be right between the changes on either side
    """

    time: float
    before: float
    after: float


@dataclass(frozen=True)
class Trend:
    """How the chance to be right goes with something.

    Attributes
    ----------
    slope : by how much the chance to be right changes, per hour in a session (fatigue) or when an answer takes twice as
        long (speed)
    chance : that order alone makes a trend as strong or stronger (permutations)
    found : whether it is one, at the level stated, given how many raters were asked about
    """

    slope: float
    chance: float
    found: bool


@dataclass(frozen=True)
class RaterHistory:
    """One rater over time.

    Attributes
    ----------
    rater : name
    time, right : (answers,) when, in order, and how probably the answer is right by what the others say
    seconds : median duration; nan = not told
    chance : that the order of the answers makes a change as strong as the strongest (permutations); nan = too few
    changes : in order; none unless one is found at the level stated
    fatigue, speed : None where there are too few answers, or no durations
    """

    rater: str
    time: np.ndarray
    right: np.ndarray
    seconds: float
    chance: float
    changes: tuple[Change, ...]
    fatigue: Trend | None
    speed: Trend | None

    @property
    def words(self) -> tuple[str, ...]:
        """What was found, in sentences."""
        said = []
        for change in self.changes:
            way = "worse" if change.after < change.before else "better"
            on = np.datetime64(int(change.time), "s").item()
            said.append(
                f"{way} from {on:%Y-%m-%d %H:%M} on: right in {change.before:.0%} before, {change.after:.0%} after"
            )
        if self.fatigue is not None and self.fatigue.found:
            way, less = ("tires", "less") if self.fatigue.slope < 0 else ("warms up", "more")
            said.append(f"{way} within a session: an hour on, {abs(self.fatigue.slope):.0%} {less} is right")
        if self.speed is not None and self.speed.found:
            when = "hurried" if self.speed.slope > 0 else "slow"
            said.append(f"{when} answers are wrong more often: by {abs(self.speed.slope):.0%} where twice as much so")
        return tuple(said)


def skill_over_time(
    annotations: Annotations,
    frequency: np.ndarray,
    confusion: np.ndarray,
    times: AnswerTimes,
    level: float = LEVEL,
    seed: int = 0,
) -> list[RaterHistory]:
    """Look for changes in skill, fatigue and haste of every rater of a label table with times.

    How probably each answer is right follows from what the *others* say of the item; what is to be expected of it by
    the rater's matrix is taken off, so that a run of hard classes, or of items of which the others say little, is no
    change. If nothing changes, answers might stand in any order: the strongest step between two parts of the history is
    compared with those of random orders, and so are the trend within sessions (30 minutes without an answer end one;
    orders at random within each) and that with the logarithm of durations. Each of the three is stated at the level
    for all raters together (Holm): with a probability of at most 5 % is any rater said to change who does not. This
    holds if the items come in no order of their own, as from easy to hard. Where a change is found, both sides are
    looked at again; and the rater counts as another one from then on, lest the others seem to change.

    Parameters
    ----------
    frequency : (classes,) how often each class is the true one
    confusion : (raters, classes, classes) of a fitted estimator
    times : as :func:`annotruth.io.timing.read_times` gives them

    Examples
    --------
    >>> from annotruth.simulate import hammer_spammer, simulate_labels
    >>> truth = np.random.default_rng(0).integers(0, 3, 200)
    >>> answers = simulate_labels(truth, np.stack([hammer_spammer(3, 0.8)] * 4)).answers
    >>> answers[120:, 3] = np.random.default_rng(1).integers(0, 3, 80)  # no longer looks
    >>> ann = Annotations.from_answers(answers)
    >>> times = AnswerTimes(60.0 * ann.answers.item, np.full(len(ann.answers), np.nan))
    >>> from annotruth.fusion import DawidSkene
    >>> fused = DawidSkene().fit(ann)
    >>> found = skill_over_time(ann, fused.prior_, fused.confusion_, times)
    >>> [(one.rater, round(change.time / 60)) for one in found for change in one.changes]
    [('rater_4', 123)]
    """
    if not 0 < level < 1:
        raise InputError(f"The level is a probability between 0 and 1, not {level!r}.")
    answers, n_raters = annotations.answers, len(annotations.raters)
    if len(times.time) != len(answers):
        raise InputError(f"There are {len(answers)} answers but {len(times.time)} times: there must be one each.")
    rng, most = np.random.default_rng(seed), int(np.clip(2 * n_raters / level, PERMUTATIONS, _MOST_ORDERS))
    mine = _by_rater(answers.rater, times.time, n_raters)
    part = np.zeros(len(answers), dtype=np.int64)  # of each answer: how many changes of its rater came before
    right, rest = _rightness(annotations, frequency, confusion, answers.rater, part)
    chance = np.array([_step_chance(rest[places], rng, most)[0] for places in mine])
    steps: dict[int, list[int]] = {}
    suspects = [int(rater) for rater in np.flatnonzero(holm(chance.tolist(), level))]
    while suspects:
        # The most striking one first: others may only seem to change with them.
        rater = max(suspects, key=lambda one: _strongest_step(rest[mine[one]][None])[1][0])
        suspects.remove(rater)
        places = mine[rater]
        again = _step_chance(rest[places], rng, most)[0]
        if again > level / max(np.isfinite(chance).sum(), 1):
            chance[rater] = max(chance[rater], again)
            continue
        steps[rater] = _divide(rest[places], level, rng, most)
        part[places] = np.searchsorted(steps[rater], np.arange(len(places)), side="right")
        right, rest = _rightness(annotations, frequency, confusion, answers.rater, part)
    tired, hurried = [], []
    for places in mine:
        tired.append(_fatigue(times.time[places], rest[places], rng, most))
        hurried.append(_speed(times.seconds[places], rest[places], rng, most))
    tires, hurries = (_judge(trends, level) for trends in (tired, hurried))
    return [
        RaterHistory(
            name, times.time[places], right[places], _median(times.seconds[places]), float(chance[number]),
            _changes(times.time[places], right[places], steps.get(number, [])), tires[number], hurries[number],
        )
        for number, (name, places) in enumerate(zip(annotations.raters, mine))
    ]  # fmt: skip


def _rightness(
    annotations: Annotations,
    frequency: np.ndarray,
    confusion: np.ndarray,
    rater: np.ndarray,
    part: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """How probably each answer is right by what the others say, and how much more so than is to be expected.

    Parameters
    ----------
    part : (answers,) which part of its rater's history an answer is of: each has a matrix of its own for the others
    """
    answers, matrices = annotations.answers, np.asarray(confusion, dtype=float)
    known = others_posterior(annotations, frequency, matrices)
    numbers, place = np.unique(np.stack([rater, part]), axis=1, return_inverse=True)
    place = place.reshape(-1).astype(np.int32)
    # Matrices are counted anew: a model's may be of other answers, and those of a part of a history are its own.
    counts = np.zeros((len(numbers[0]), *matrices.shape[1:]))
    for k, observed in np.ndindex(*matrices.shape[1:]):
        said = answers.label == observed
        counts[:, k, observed] = np.bincount(place[said], known[said, k], minlength=len(counts))
    parts = Annotations(
        kind="labels", items=annotations.items, raters=[str(number) for number in range(len(counts))],
        classes=annotations.classes, answers=Answers(answers.item, place, answers.label),
    )  # fmt: skip
    known = others_posterior(parts, frequency, normalise_rows(counts + PRIOR_ANSWERS * matrices[numbers[0]]))
    right = known[np.arange(len(answers)), answers.label]
    expected = np.empty(len(answers))
    for who, matrix in enumerate(matrices):
        mine = rater == who
        usual = normalise_rows(counts[numbers[0] == who].sum(axis=0) + PRIOR_ANSWERS * matrix)
        expected[mine] = ((known[mine] @ usual) * known[mine]).sum(axis=1)
    return right, right - expected


def holm(chances: Sequence[float], level: float) -> list[bool]:
    """Which of several tests reject, so that any does wrongly with at most the level's probability; nan = not asked.

    Examples
    --------
    >>> holm([0.04, 0.001, float("nan")], 0.05), holm([0.04, 0.03], 0.05)
    ([True, True, False], [False, False])
    """
    given = np.asarray(chances, dtype=float)
    asked = np.flatnonzero(~np.isnan(given))
    rejected = [False] * len(given)
    for number, place in enumerate(asked[np.argsort(given[asked], kind="stable")]):
        if given[place] * (len(asked) - number) > level:
            break
        rejected[place] = True
    return rejected


def _strongest_step(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of histories (orders, answers): where the strongest step begins, and how strong it is."""
    count = values.shape[1]
    before = np.cumsum(values - values.mean(axis=1, keepdims=True), axis=1)[:, :-1]
    at = np.arange(1, count)
    strength = np.abs(before) / np.sqrt(at * (count - at) / count)
    strength[:, : MIN_PART - 1] = strength[:, count - MIN_PART :] = -np.inf
    where = strength.argmax(axis=1)
    return where + 1, strength[np.arange(len(values)), where]


def _step_chance(rest: np.ndarray, rng: np.random.Generator, most: int) -> tuple[float, int]:
    """How probable a step as strong as the strongest is if order means nothing; and where it begins."""
    if len(rest) < MIN_ANSWERS:
        return np.nan, 0
    if np.ptp(rest) < 1e-12:
        return 1.0, 0
    size = -(-len(rest) // _MOST_POINTS)
    values = rest if size == 1 else np.array([part.mean() for part in np.array_split(rest, len(rest) // size)])
    where, strength = _strongest_step(values[None])
    if abs(values[: where[0]].mean() - values[where[0] :].mean()) < MIN_EFFECT:
        return 1.0, 0

    def draw(count: int) -> np.ndarray:
        return _strongest_step(rng.permuted(np.broadcast_to(values, (count, len(values))), axis=1))[1]

    return _exceeded(float(strength[0]), draw, most), int(where[0]) * size


def _exceeded(found: float, draw: Callable[[int], np.ndarray], most: int) -> float:
    """The chance of what was found among random orders, drawn until it is clear or there are enough of them."""
    drawn = more = 0
    while drawn < most:
        count = min(_AT_ONCE, most - drawn)
        more += int((draw(count) >= found - 1e-12).sum())
        drawn += count
        if more >= _CLEAR:
            break
    return (1 + more) / (1 + drawn)


def _fatigue(time: np.ndarray, rest: np.ndarray, rng: np.random.Generator, most: int) -> Trend | None:
    """The trend within sessions, per hour."""
    if len(time) < MIN_ANSWERS:
        return None
    session = np.concatenate([[0], np.cumsum(np.diff(time) > PAUSE)])
    return _trend((time - time[np.searchsorted(session, session)]) / 3600, rest, session, rng, most)


def _speed(seconds: np.ndarray, rest: np.ndarray, rng: np.random.Generator, most: int) -> Trend | None:
    """The trend with durations, per doubling."""
    told = np.isfinite(seconds) & (seconds > 0)
    if told.sum() < MIN_ANSWERS:
        return None
    return _trend(np.log2(seconds[told]), rest[told], np.zeros(int(told.sum()), dtype=np.int64), rng, most)


def _trend(x: np.ndarray, rest: np.ndarray, group: np.ndarray, rng: np.random.Generator, most: int) -> Trend | None:
    """Trend of the rest with x within groups, tested by ranks, in orders at random within each group."""
    centred = x - _means(x, group)
    spread = float(centred @ centred)
    if spread < 1e-12:
        return None
    slope = float(centred @ rest) / spread
    if 2 * abs(slope) * np.sqrt(spread / len(x)) < MIN_EFFECT:
        return Trend(slope, 1.0, False)
    ranks = rankdata(x)
    ranks -= _means(ranks, group)

    def draw(count: int) -> np.ndarray:
        order = np.argsort(group + rng.random((count, len(rest))), axis=1)  # answers stand in the order of groups
        return np.abs(rest[order] @ ranks)

    return Trend(slope, _exceeded(abs(float(ranks @ rest)), draw, most), False)


def _means(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """The mean of each value's group."""
    return np.asarray((np.bincount(group, values) / np.maximum(np.bincount(group), 1))[group])


def _judge(trends: Sequence[Trend | None], level: float) -> list[Trend | None]:
    """Note which trends are found, at the level for all together."""
    found = holm([np.nan if trend is None else trend.chance for trend in trends], level)
    return [None if trend is None else Trend(trend.slope, trend.chance, one) for trend, one in zip(trends, found)]


def _divide(rest: np.ndarray, level: float, rng: np.random.Generator, most: int) -> list[int]:
    """Where a history that changes does so: the strongest step, and further ones on either side of it."""
    places: list[int] = []
    parts = [(0, len(rest), True)]
    while parts:
        start, stop, sure = parts.pop()
        chance, where = _step_chance(rest[start:stop], rng, most)
        if where and (sure or chance <= level):
            places.append(start + where)
            parts += [(start, start + where, False), (start + where, stop, False)]
    return sorted(places)


def _changes(time: np.ndarray, right: np.ndarray, places: Sequence[int]) -> tuple[Change, ...]:
    means = [float(right[start:stop].mean()) for start, stop in pairwise([0, *places, len(right)]) if stop > start]
    return tuple(Change(float(time[at]), *sides) for at, sides in zip(places, pairwise(means)))


def _median(seconds: np.ndarray) -> float:
    told = seconds[np.isfinite(seconds)]
    return float(np.median(told)) if len(told) else float("nan")


def _by_rater(rater: np.ndarray, time: np.ndarray, count: int) -> list[np.ndarray]:
    """Places of each rater's answers of known time, in their order."""
    order = np.lexsort((time, rater))
    order = order[np.isfinite(time[order])]
    edges = np.searchsorted(rater[order], np.arange(count + 1))
    return [order[start:stop] for start, stop in pairwise(edges)]
