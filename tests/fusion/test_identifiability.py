"""Each reason for doubt is named when it holds, and only then."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from sklearn.metrics import f1_score

from annotruth import STAPLE, Annotations, DawidSkene
from annotruth.data.confusion import confusion_counts, normalise_rows
from annotruth.errors import IdentifiabilityWarning, InputError
from annotruth.fusion.identifiability import (
    FUSED_MASKS,
    PREDICTED_ANSWERS,
    PREDICTED_MASKS,
    Yardstick,
    co_labelling_groups,
    identifiability_problems,
    warn_identifiability,
)
from annotruth.metrics import dice_per_item
from annotruth.simulate import MaskRater, hammer_spammer, noisy_digits, simulate_labels, simulate_masks


def raters(*matrices: list[list[float]]) -> np.ndarray:
    return np.array(matrices, dtype=float)


GOOD = [[0.9, 0.1], [0.2, 0.8]]
SPAMMER = [[0.5, 0.5], [0.5, 0.5]]


def test_three_good_raters_pass() -> None:
    assert identifiability_problems(raters(GOOD, GOOD, GOOD)) == []


def test_an_estimate_that_is_unsure_of_most_items_says_so() -> None:
    (problem,) = identifiability_problems(raters(GOOD, GOOD, GOOD), certainty=0.58)
    assert "right on only 58% of the items" in problem
    assert identifiability_problems(raters(GOOD, GOOD, GOOD), certainty=0.75) == []


def test_answers_of_raters_who_hardly_know_more_than_chance_are_warned_of_and_good_ones_are_not() -> None:
    truth = np.random.default_rng(0).integers(0, 3, 400)
    for skill, warned in ((0.2, True), (0.8, False)):
        answers = simulate_labels(truth, np.stack([hammer_spammer(3, skill)] * 3), seed=1).answers
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            DawidSkene().fit(Annotations.from_answers(answers))
        assert any("By its own probabilities" in str(each.message) for each in caught) is warned


def test_two_who_draw_too_much_alike_are_named_where_most_draw_something_else() -> None:
    people = ["over", "under", "wrong", "under", MaskRater("over", 1.1, name="over too")]
    drawn = simulate_masks(noisy_digits(40)[1], people).annotations()
    with pytest.warns(IdentifiabilityWarning, match=r"not what most raters drew \(it follows over, over too; Dice"):
        STAPLE().fit(drawn)


def test_flips_of_many_raters_cancel_as_soon_as_right_answers_are_the_most_common() -> None:
    flips = [np.roll(np.eye(4), shift, axis=1) for shift in (1, 2, 3)]
    crowd = np.stack([0.4 * np.eye(4) + 0.6 * flip for flip in flips])
    assert identifiability_problems(crowd) == []


@pytest.mark.parametrize(("count", "words"), [(1, "Only one rater"), (2, "Only two raters")])
def test_too_few_raters(count: int, words: str) -> None:
    problems = identifiability_problems(raters(*[GOOD] * count))
    assert len(problems) == 1
    assert words in problems[0]


def test_two_raters_are_enough_where_a_network_sees_what_they_label() -> None:
    assert identifiability_problems(raters(GOOD, GOOD), yardstick=PREDICTED_ANSWERS) == []
    assert "Only one rater" in identifiability_problems(raters(GOOD), yardstick=PREDICTED_ANSWERS)[0]


def test_raters_without_labels_do_not_count() -> None:
    problems = identifiability_problems(raters(GOOD, GOOD, SPAMMER), labelled_counts=np.array([5, 5, 0]))
    assert len(problems) == 1
    assert "Only two" in problems[0]


def test_raters_that_share_no_items_are_named() -> None:
    groups = co_labelling_groups(np.array([0, 0, 1, 1]), np.array([0, 1, 2, 3]), 4)
    names = ["ann", "bob", "cy", "dee"]
    (problem,) = identifiability_problems(raters(*[GOOD] * 4), groups=groups, raters=names)
    assert "2 groups" in problem
    assert "ann, bob; cy, dee" in problem


def test_groups_are_linked_through_a_chain_of_items() -> None:
    item = np.array([0, 0, 1, 1, 2])
    rater = np.array([3, 1, 1, 2, 0])
    assert co_labelling_groups(item, rater, 5).tolist() == [0, 1, 1, 1, -1]


def test_gold_labels_make_up_for_few_raters_apart() -> None:
    groups = np.array([0, 1])
    assert len(identifiability_problems(raters(GOOD, GOOD), groups=groups)) == 2
    assert identifiability_problems(raters(GOOD, GOOD), groups=groups, anchored=True) == []
    swapped = [[0.1, 0.9], [0.9, 0.1]]
    assert identifiability_problems(raters(GOOD, swapped, swapped), anchored=True) == []
    (problem,) = identifiability_problems(raters(swapped, swapped), anchored=True)
    assert "faithful" in problem


def test_swapped_classes_are_named() -> None:
    turned = [[0.1, 0.9, 0.0], [0.9, 0.1, 0.0], [0.0, 0.0, 1.0]]
    (problem,) = identifiability_problems(raters(turned, turned, np.eye(3).tolist()), classes=["cat", "dog", "owl"])
    assert "swapped" in problem
    assert "true cat is called dog" in problem
    assert "owl" not in problem


def test_one_adversary_among_good_raters_is_no_problem() -> None:
    assert identifiability_problems(raters(GOOD, GOOD, GOOD, [[0.0, 1.0], [1.0, 0.0]])) == []


def test_dominance_is_judged_by_columns_not_rows() -> None:
    # Row of class 1 has a small diagonal (0.4 < 0.6), yet each diagonal leads its column.
    rows_fail = [[1.0, 0.0], [0.6, 0.4]]
    assert not [p for p in identifiability_problems(raters(*[rows_fail] * 3)) if "dominant" in p]
    columns_fail = [[0.6, 0.4, 0.0], [0.3, 0.35, 0.35], [0.0, 0.4, 0.6]]
    (problem, *_) = identifiability_problems(raters(*[columns_fail] * 3))
    assert "not diagonally dominant for 1 (right 0.35, but given to true 0 0.40)" in problem


def test_the_mean_is_weighted_by_how_much_each_rater_labelled() -> None:
    matrices = raters(GOOD, GOOD, [[0.05, 0.95], [0.95, 0.05]])
    assert identifiability_problems(matrices, labelled_counts=np.array([10, 10, 10])) == []
    assert "swapped" in identifiability_problems(matrices, labelled_counts=np.array([10, 10, 1000]))[0]


def test_pure_spammers_are_caught() -> None:
    problems = identifiability_problems(raters(SPAMMER, SPAMMER, SPAMMER))
    assert any("dominant" in p for p in problems)
    assert any("faithful" in p for p in problems)


def test_over_under_and_wrong_segmenters_without_a_faithful_one_are_caught() -> None:
    # A thin object (12 % of the pixels): one draws twice too much, one a fifth of it, one much elsewhere.
    over, under, wrong = [[0.86, 0.14], [0.0, 1.0]], [[1.0, 0.0], [0.8, 0.2]], [[0.88, 0.12], [0.3, 0.7]]
    prior = np.array([0.88, 0.12])
    problems = identifiability_problems(raters(over, under, wrong), prior, classes=["paper", "ink"])
    assert len(problems) == 1
    assert "No rater is faithful on ink" in problems[0]
    assert identifiability_problems(raters(over, under, wrong, np.eye(2).tolist()), prior) == []


def test_flippers_whose_errors_cancel_need_no_faithful_rater() -> None:
    rng = np.random.default_rng(0)
    flippers = np.zeros((5, 10, 10))
    for matrix in flippers:
        for c in range(10):
            matrix[c, c] = 0.48
            matrix[c, (c + rng.integers(1, 10)) % 10] = 0.52
    mean = flippers.mean(axis=0)
    assert (np.diag(mean) > np.where(np.eye(10, dtype=bool), 0, mean).max(axis=0)).all()
    assert [p for p in identifiability_problems(flippers) if "dominant" in p or "swapped" in p] == []


def test_classes_that_never_occur_are_left_out() -> None:
    unseen = [[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [1 / 3, 1 / 3, 1 / 3]]
    assert identifiability_problems(raters(*[unseen] * 3), np.array([0.6, 0.4, 0.0])) == []


def test_the_warning_carries_every_problem_and_points_at_the_caller() -> None:
    with pytest.warns(IdentifiabilityWarning, match=r"Only one rater.*swapped") as caught:
        problems = warn_identifiability(raters([[0.1, 0.9], [0.9, 0.1]]))
    assert caught[0].filename == __file__
    assert len(problems) >= 2


OVER, UNDER, WRONG = [[0.86, 0.14], [0.0, 1.0]], [[1.0, 0.0], [0.8, 0.2]], [[0.97, 0.03], [0.4, 0.6]]
THIN = np.array([0.88, 0.12])


@pytest.mark.parametrize("yardstick", [FUSED_MASKS, PREDICTED_MASKS])
def test_masks_need_somebody_who_is_close(yardstick: Yardstick) -> None:
    """Right more often than wrong is enough for answers, which err independently, but not for borders."""
    known = {"classes": ["paper", "ink"], "raters": ["over", "under", "wrong", "good"]}
    assert identifiability_problems(raters(OVER, UNDER, WRONG), THIN) == []
    (problem,) = identifiability_problems(raters(OVER, UNDER, WRONG), THIN, yardstick=yardstick, **known)
    assert "No rater is faithful on ink (closest: over, Dice 0.66)" in problem
    close = [[0.985, 0.015], [0.05, 0.95]]
    assert identifiability_problems(raters(OVER, UNDER, WRONG, close), THIN, yardstick=yardstick, **known) == []


def test_of_answers_the_words_are_those_of_label_tables() -> None:
    poor = [[0.5, 0.5], [0.6, 0.4]]
    problem = identifiability_problems(raters(*[poor] * 3), classes=["cat", "dog"], raters=["ann", "bo", "cy"])[-1]
    score = f1_score([0] * 10 + [1] * 10, [0] * 5 + [1] * 5 + [0] * 6 + [1] * 4, pos_label=1)
    assert f"No rater is faithful on cat (closest: ann, F1 0.48), dog (closest: ann, F1 {score:.2f})" in problem
    assert "each often takes it for another class, or another for it, and the errors do not cancel" in problem
    assert not re.search("Dice|draw|invents", problem)


def test_raters_who_agree_with_each_other_are_not_to_blame() -> None:
    """A network that is poor, on hard images, is far from everybody."""
    far = [[0.95, 0.05], [0.4, 0.6]]
    given = {"prior": THIN, "yardstick": PREDICTED_MASKS}
    assert len(identifiability_problems(raters(far, far, far), **given)) == 1
    assert len(identifiability_problems(raters(far, far, far), alike=np.array([0.9, 0.7]), **given)) == 1
    assert identifiability_problems(raters(far, far, far), alike=np.array([0.9, 0.8]), **given) == []


def test_the_closeness_is_the_dice_score() -> None:
    rng = np.random.default_rng(0)
    truth, drawn = rng.integers(0, 3, (2, 500))
    matrix = normalise_rows(confusion_counts(truth, drawn, 3))
    prior = np.bincount(truth, minlength=3) / 500
    problems = identifiability_problems(matrix[None], prior, yardstick=FUSED_MASKS)
    scores = dice_per_item(truth.reshape(1, 20, 25), drawn.reshape(1, 20, 25), 3)[0]
    for number, score in enumerate(scores):
        assert any(f"{number} (closest: rater_1, Dice {score:.2f})" in problem for problem in problems)


def test_independent_errors_of_many_raters_cancel() -> None:
    hardly_better_than_chance = [[0.55, 0.45], [0.45, 0.55]]
    assert identifiability_problems(raters(*[hardly_better_than_chance] * 100), yardstick=FUSED_MASKS) == []
    assert len(identifiability_problems(raters(*[hardly_better_than_chance] * 3), yardstick=FUSED_MASKS)) == 1


@pytest.mark.parametrize(("others", "words"), [((UNDER, UNDER), "less.*too much"), ((OVER, OVER), "more.*too little")])
def test_an_estimate_beyond_all_others_rests_on_one_alone(others: tuple, words: str) -> None:
    faithful = np.eye(2).tolist()
    (problem,) = identifiability_problems(raters(faithful, *others), THIN, classes="ab", yardstick=FUSED_MASKS)
    assert re.search(f"The estimated b rests on rater_1 alone: all others draw {words}", problem)
    assert identifiability_problems(raters(faithful, OVER, UNDER), THIN, yardstick=FUSED_MASKS) == []
    # Two of four might as well be the ones who err, alike; of three among five nothing is said.
    (problem,) = identifiability_problems(raters(faithful, faithful, *others), THIN, yardstick=FUSED_MASKS)
    assert re.search(f"The estimated 1 rests on rater_1, rater_2 alone: all others draw {words}", problem)
    most = raters(faithful, faithful, faithful, *others)
    assert identifiability_problems(most, THIN, yardstick=FUSED_MASKS) == []
    assert identifiability_problems(raters(faithful, *others), THIN, yardstick=FUSED_MASKS, anchored=True) == []
    assert identifiability_problems(raters(faithful, *others), THIN) == []


def test_a_class_the_estimate_does_not_have() -> None:
    marked = [[0.9, 0.1], [0.0, 1.0]]
    problems = identifiability_problems(raters(*[marked] * 3), np.array([1.0, 0.0]), yardstick=PREDICTED_MASKS)
    assert problems == ["The estimated truth has hardly any 1 (10 % of the labels, 0 % here): the class got lost."]


@pytest.mark.parametrize("seed", range(3))
def test_staple_on_drawn_digits(seed: int) -> None:
    """The situation of the papers: nobody faithful, or one of five."""
    _, truth, _ = noisy_digits(40, seed=seed)
    with pytest.warns(IdentifiabilityWarning, match="No rater is faithful on 1"):
        STAPLE().fit(simulate_masks(truth, ["over", "under", "wrong"], seed=seed).annotations())
    with pytest.warns(
        IdentifiabilityWarning, match=r"most raters drew \(it follows good; .* do not tell who is right.$"
    ):
        STAPLE().fit(simulate_masks(truth, seed=seed).annotations())
    most = ["good", "careless", "good", "over", "under"]
    STAPLE().fit(simulate_masks(truth, most, seed=seed).annotations())  # a warning would be an error here


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(InputError, match="raters, classes, classes"):
        identifiability_problems(np.eye(2))
