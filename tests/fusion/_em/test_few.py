"""Loops in NumPy beside the compiled ones, which have tests of their own: the same arguments, the same results."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth.fusion._em import em_kernels, few, pattern_kernels

RATERS, CLASSES, ROWS = 6, 3, 40
Problem = dict[str, np.ndarray]


@pytest.fixture
def problem() -> Problem:
    """Rows of no to six answers, some of known truth, one of which no class explains."""
    rng = np.random.default_rng(1)
    given = rng.integers(0, RATERS + 1, ROWS)
    given[:2] = 0, 3
    start = np.concatenate([[0], np.cumsum(given)])
    rater = np.concatenate([np.sort(rng.permutation(RATERS)[:count]) for count in given]).astype(np.int64)
    label = rng.integers(0, CLASSES, len(rater)).astype(np.int16)
    gold = np.where(rng.random(ROWS) < 0.2, rng.integers(0, CLASSES, ROWS), -1).astype(np.int16)
    gold[1] = -1
    seen = np.log(rng.dirichlet(np.ones(CLASSES), (RATERS, CLASSES))).transpose(0, 2, 1)
    seen[rater[0], label[0]] = -np.inf
    return {
        "start": start, "cell": ((rater * CLASSES + label) * CLASSES).astype(np.uint32), "label": label, "gold": gold,
        "weight": rng.integers(0, 4, ROWS).astype(float), "seen": seen.reshape(-1).copy(),
        "log_prior": np.log(rng.dirichlet(np.ones(CLASSES))[None]), "rater": rater,
        "item": np.repeat(np.arange(ROWS), given),
    }  # fmt: skip


def test_posterior_is_that_of_the_compiled_loop(problem: Problem) -> None:
    found = []
    for loops in (em_kernels, few):
        posterior, evidence = np.zeros((ROWS, CLASSES)), np.zeros(ROWS)
        given = (problem[name] for name in ("start", "cell", "gold", "log_prior", "seen"))
        loops.posterior_rows(3, ROWS, *given, posterior, evidence)
        loops.posterior_rows(0, 3, *(problem[name] for name in ("start", "cell", "gold", "log_prior", "seen")),
                             posterior, evidence)  # fmt: skip
        found.append((posterior, evidence))
    np.testing.assert_allclose(found[1][0], found[0][0], atol=1e-14)
    np.testing.assert_allclose(found[1][1], found[0][1], atol=1e-12)


@pytest.mark.parametrize("name", ["expect_rows", "share_rows", "count_rows"])
def test_sums_are_those_of_the_compiled_loops(name: str, problem: Problem) -> None:
    start, cell, weight, gold = (problem[each] for each in ("start", "cell", "weight", "gold"))
    given = {
        "expect_rows": (start, cell, weight, gold, problem["log_prior"], problem["seen"]),
        "share_rows": (start, cell, problem["label"], weight, gold),
        "count_rows": (start, cell, np.random.default_rng(0).random((ROWS, CLASSES))),
    }[name]
    after = {"expect_rows": ((),), "share_rows": (CLASSES,), "count_rows": ()}[name]
    found = []
    for loops in (em_kernels, few):
        counts, classes = np.zeros(RATERS * CLASSES**2 + 16), np.zeros(CLASSES + 16)
        sums = (counts,) if name == "count_rows" else (counts, classes)
        likelihood = getattr(loops, name)(0, ROWS, *given, *sums, *after)
        found.append((counts, classes, likelihood or 0.0))
    for compiled, plain in zip(*found):
        np.testing.assert_allclose(plain, compiled, atol=1e-11)


UNROLLED = pytest.mark.parametrize("unrolled", [(), (0,) * CLASSES])


@UNROLLED
def test_weighted_votes_are_those_of_the_compiled_loops(problem: Problem, unrolled: tuple[int, ...]) -> None:
    start, rater, label, gold = (problem[each] for each in ("start", "rater", "label", "gold"))
    weight = np.append(np.arange(RATERS - 1.0), -1.0)
    found = []
    for loops in (em_kernels, few):
        right, posterior = np.zeros(RATERS + 16), np.zeros((ROWS, CLASSES))
        for part in ((3, ROWS), (0, 3)):
            counted = right, CLASSES, unrolled
            loops.agree_rows(*part, start, rater, label, problem["weight"], gold, weight, 1e-9, *counted)
            loops.weighted_rows(*part, start, rater, label, gold, weight, np.full(CLASSES, 0.25), posterior, unrolled)
        found.append((right, posterior))
    for compiled, plain in zip(*found):
        np.testing.assert_allclose(plain, compiled, atol=1e-11)


@UNROLLED
def test_counts_of_weighted_votes_are_those_of_their_shares(problem: Problem, unrolled: tuple[int, ...]) -> None:
    start, rater, label, gold = (problem[each] for each in ("start", "rater", "label", "gold"))
    weight = np.append(np.arange(RATERS - 1.0), -1.0)
    posterior = np.zeros((ROWS, CLASSES))
    em_kernels.weighted_rows(0, ROWS, start, rater, label, gold, weight, np.zeros(CLASSES), posterior, ())
    expected = np.zeros(RATERS * CLASSES**2 + 16)
    posterior *= problem["weight"][:, None]
    em_kernels.count_rows(0, ROWS, start, problem["cell"], posterior, expected)
    for loops in (em_kernels, few):
        counts, classes = np.zeros(RATERS * CLASSES**2 + 16), np.zeros(CLASSES + 16)
        for part in ((3, ROWS), (0, 3)):
            given = start, rater, label, problem["weight"], gold, weight
            loops.count_weighted_rows(*part, *given, counts, classes, unrolled)
        np.testing.assert_allclose(counts, expected, atol=1e-11)
        np.testing.assert_allclose(classes[:CLASSES], posterior.sum(axis=0), atol=1e-11)


def test_an_index_of_answers_says_where_items_begin_and_who_gave_how_many(problem: Problem) -> None:
    item, rater = problem["item"], problem["rater"]
    for loops in (em_kernels, few):
        start, given = np.full(ROWS + 1, len(item)), np.zeros(RATERS)
        for part in ((7, len(item)), (0, 7), (7, 7)):
            loops.index_answers(*part, item, rater, start, given)
        np.testing.assert_array_equal(start, problem["start"])
        np.testing.assert_array_equal(given, np.bincount(rater, minlength=RATERS))


def test_linked_raters_are_those_of_the_compiled_loop(problem: Problem) -> None:
    for n_answers in (0, 1, 9, len(problem["item"])):
        item, rater = problem["item"][:n_answers], problem["rater"][:n_answers]
        expected = em_kernels.first_linked(item, rater, RATERS)
        np.testing.assert_array_equal(few.first_linked(item, rater, RATERS), expected)


@pytest.mark.parametrize("with_gold", [False, True])
@pytest.mark.parametrize("strange", [False, True])
def test_pixels_are_counted_and_written_as_by_the_compiled_passes(with_gold: bool, strange: bool) -> None:
    rng = np.random.default_rng(2)
    masks = rng.choice([0, 1, 255], (3, 40_000)).astype(np.uint8)
    masks[1, 17] = 2 if strange else 0
    gold = rng.choice([0, 1, 255], 40_000).astype(np.uint8) if with_gold else np.empty(0, np.uint8)
    size = 3 ** (3 + with_gold)
    table = rng.random((2, size)).astype(np.float32)
    found = []
    for loops in (pattern_kernels, few):
        counted, odd = loops.count_dense(masks, gold, 5, 40_000, 2, size)
        out = np.zeros((2, 40_000), dtype=np.float32)
        complete = loops.write_dense(masks, gold, 5, 40_000, 2, table, np.float32(-1), out)
        found.append((counted, bool(odd), complete, out))
    assert found[0][1] == found[1][1] == strange
    assert found[0][2]
    assert found[1][2]
    np.testing.assert_array_equal(found[1][0], found[0][0])
    np.testing.assert_array_equal(found[1][3], found[0][3])
    table[0, found[0][0].argmax()] = -1
    assert not few.write_dense(masks, gold, 5, 40_000, 2, table, np.float32(-1), found[1][3])
