"""Items for an expert, and hopeless ones."""

from __future__ import annotations

import numpy as np

from annotruth.choosing.queue.advice import find_unsettled
from annotruth.choosing.queue.information import information
from annotruth.choosing.queue.posteriors import ItemPosteriors
from annotruth.choosing.queue.regions import find_doubt, join_cases


def items(posterior: list[list[float]], labelled_by: list[list[int]], confusion: np.ndarray) -> ItemPosteriors:
    n_items = len(posterior)
    first = np.concatenate([[0], np.cumsum([len(each) for each in labelled_by])])
    return ItemPosteriors(
        items=tuple(f"item_{number}" for number in range(n_items)),
        raters=tuple(f"rater_{number}" for number in range(len(confusion))),
        classes=("no", "yes"), posterior=np.array(posterior), weight=np.ones(n_items),
        pieces=np.ones(n_items), size=np.ones(n_items),
        first_row=np.arange(n_items + 1), sure=0.0, total=float(n_items), confusion=confusion,
        prior=np.array([0.5, 0.5]), first_label=first,
        rater_of=np.array([one for each in labelled_by for one in each], dtype=int),
        evidence=np.full(len(confusion), 9), describe=str,
    )  # fmt: skip


def best_of(known: ItemPosteriors) -> np.ndarray:
    gain = information(known.posterior, known.confusion)
    gain[known.labelled(np.arange(len(gain)))] = -np.inf
    return gain.max(axis=1)


GOOD, SPAMMER = np.array([[0.9, 0.1], [0.1, 0.9]]), np.full((2, 2), 0.5)
CONFUSION = np.stack([GOOD, GOOD, SPAMMER])


def test_doubt_that_nobody_left_can_take_away() -> None:
    known = items(
        [[0.5, 0.5], [0.3, 0.7], [0.99, 0.01], [0.5, 0.5], [0.5, 0.5]],
        [[0, 1], [0, 1], [0, 1], [0], []],
        CONFUSION,
    )
    found = find_unsettled(known, best_of(known), np.ones(3, dtype=bool), set())
    assert found.hopeless.tolist() == [0]  # two good raters contradict each other, a spammer is left
    assert found.experts.tolist() == [1]  # something is known, and the spammer adds nothing
    # 2 is certain; 3 and 4 can still be labelled by a good rater


def test_whoever_has_no_time_cannot_help() -> None:
    known = items([[0.5, 0.5], [0.5, 0.5]], [[0], [0, 2]], CONFUSION)
    free = np.array([True, False, True])
    best = np.array([information(known.posterior[:1], CONFUSION[2:])[0, 0], -np.inf])
    found = find_unsettled(known, best, free, set())
    assert found.experts.tolist() == [0]  # one label is too few to give up
    assert found.hopeless.tolist() == [1]


def test_what_is_ordered_is_left_alone() -> None:
    known = items([[0.5, 0.5]], [[0, 1]], CONFUSION)
    found = find_unsettled(known, best_of(known), np.ones(3, dtype=bool), {0})
    assert not len(found.experts)
    assert not len(found.hopeless)


def test_a_case_with_a_disputed_border_is_not_hopeless() -> None:
    border, nowhere = np.zeros((32, 32)), np.full((32, 32), 0.4)
    border[8:24, 8:24], border[8, 8:24] = 1.0, 0.5
    cases = [find_doubt(np.stack([1 - lesion, lesion]), ("no", "yes")) for lesion in (border, nowhere)]
    labelled = np.array([[True, True]] * 2)
    confusion, prior = np.stack([GOOD] * 2), np.array([0.7, 0.3])
    known = join_cases(cases, ("border", "nowhere"), ("ann", "bob"), ("no", "yes"), confusion, prior, labelled)
    found = find_unsettled(known, np.full(2, -np.inf), np.ones(2, dtype=bool), set())
    assert found.experts.tolist() == [0]
    assert found.hopeless.tolist() == [1]
