"""The best method is found, and those that cannot be told apart from it; the simplest of these is taken."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth.choosing.verdict import Verdict, choose, differences, in_words


def test_the_standard_error_is_that_of_the_mean_of_paired_differences():
    scores = np.random.default_rng(0).normal(size=(3, 50))
    mean, error = differences(scores)
    paired = scores[2] - scores[0]
    assert mean[2, 0] == pytest.approx(paired.mean())
    assert error[2, 0] == pytest.approx(paired.std(ddof=1) / np.sqrt(50))
    np.testing.assert_array_equal(np.diagonal(error), 0)


def test_copies_of_items_in_a_group_add_no_certainty():
    scores = np.random.default_rng(0).normal(size=(2, 20))
    twice, groups = np.repeat(scores, 2, axis=1), [str(item) for item in range(20) for _ in range(2)]
    np.testing.assert_allclose(differences(twice, groups)[1], differences(scores)[1])
    assert differences(twice)[1][0, 1] < differences(scores)[1][0, 1]


def test_items_that_do_not_count_are_left_out():
    scores = np.array([[1.0, 2.0, np.nan, 4.0], [2.0, 1.0, np.nan, 7.0]])
    mean, error = differences(scores, items=np.isfinite(scores[0]))
    assert mean[1, 0] == 1
    assert np.isfinite(error).all()


def test_one_item_alone_says_nothing_for_sure():
    mean, error = differences(np.array([[1.0], [5.0]]))
    found = choose(["pixel-cm", "majority"], mean, error, [1, 1])
    assert (found.best, found.recommended, found.sure, found.rival) == ("pixel-cm", "majority", "open", None)


@pytest.mark.parametrize(("behind", "sure"), [(3.5, "clear"), (2.5, "likely"), (1.5, "weak"), (0.5, "open")])
def test_how_sure_it_is_follows_from_standard_errors(behind: float, sure: str) -> None:
    mean = np.array([[0.0, behind], [-behind, 0.0]])
    found = choose(["majority", "pixel-cm"], mean, np.ones((2, 2)), [1, 2])
    assert found.sure == sure
    assert found.recommended == ("majority" if sure == "open" else "pixel-cm")


def test_of_methods_that_are_alike_the_simpler_one_is_taken_then_the_faster_one():
    mean, error = np.zeros((4, 4)), np.ones((4, 4))
    assert choose(["pixel-cm", "mrprism", "staple", "majority"], mean, error, [1, 1, 9, 9]).alike == (
        "majority", "staple", "mrprism", "pixel-cm",
    )  # fmt: skip
    assert choose(["pixel-cm", "mrprism"], mean[:2, :2], error[:2, :2], [1, 9]).recommended == "pixel-cm"


def test_a_lead_that_never_varies_is_clear():
    mean, error = differences(np.array([[1.0, 2.0], [2.0, 3.0]]))
    found = choose(["pixel-cm", "majority"], mean, error, [1, 1])
    assert (found.recommended, found.sure) == ("pixel-cm", "clear")
    assert in_words(found, "nats per item")[-1].endswith("by 1.0 ± 0.0 nats per item.")


def test_words_name_all_that_cannot_be_told_apart():
    best_taken = Verdict("labels", "mean", ("mean", "staple"), "mean", (3.0, 2.0), "pixel-cm", "weak")
    assert in_words(best_taken, "nats per item") == [
        "Take mean.",
        "staple cannot be told apart from it, but is no simpler.",
        "That pixel-cm is worse than mean is far from sure: by 3.0 ± 2.0 nats per item (1.5 standard errors).",
    ]
    other = Verdict("truth", "pixel-cm", ("majority", "mean", "pixel-cm"), "majority", (np.nan, np.nan), None, "open")
    told = " ".join(in_words(other, "Dice"))
    assert "Nor can mean." in told
    assert "No method can be told apart from the best" in told
