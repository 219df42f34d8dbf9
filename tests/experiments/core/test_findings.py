"""Sentences about a table, true to it either way."""

import pytest

from annotruth.experiments.core.findings import (
    above_on_every_seed,
    above_others,
    at_least,
    at_most,
    close_to,
    leads,
    lower_than,
    near_best,
    never_swapped,
    rises,
)


def table(**dice):
    """A table of one setting with these Dice scores; CM RMSE is one minus them."""
    metrics = [{"name": "dice", "title": "Dice"}, {"name": "cm_rmse", "title": "CM RMSE"}]
    rows = [
        {
            "setting": "dense", "method": name.replace("_", "-"), "seeds": [0, 1], "swapped": 0,
            "dice": {"mean": value, "sd": 0.002}, "cm_rmse": {"mean": 1 - value},
        }
        for name, value in dice.items()
    ]  # fmt: skip
    return {"metrics": metrics, "rows": rows}


def test_a_method_above_all_comparisons_but_below_what_knows_more():
    (said,) = above_others("pixel-cm")(table(pixel_cm=0.9, mean=0.8, staple=0.85, clean=0.95))
    assert said == "dense: pixel-cm is above every comparison in Dice, clean left aside."


def test_those_above_a_method_are_named_the_best_first():
    (said,) = above_others("pixel-cm")(table(pixel_cm=0.9, mean=0.91, staple=0.92, majority=0.5, clean=0.95))
    assert said == (
        "dense: pixel-cm is below staple (by 2.00 points) and mean (by 1.00 points) in Dice, "
        "above the other comparisons."
    )


def test_a_lead_that_seeds_alone_could_make_is_called_that():
    (said,) = above_others("pixel-cm")(table(pixel_cm=0.9, mean=0.901))
    assert said == "dense: pixel-cm is below mean (by 0.10 points, less than the seeds' standard deviation) in Dice."


@pytest.mark.parametrize(("score", "word"), [(0.945, "reached"), (0.93, "missed"), (0.96, "reached")])
def test_distance_from_a_bound(score, word):
    (said,) = close_to("pixel-cm", "clean", {"dense": 0.01})(table(pixel_cm=score, clean=0.95))
    assert word in said
    assert ("above clean" in said) == (score > 0.95)


@pytest.mark.parametrize(
    ("each", "words"), [([0.9, 0.8], "2 of 2 seeds (target: all, reached)"), ([0.9, 0.7], "1 of 2")]
)
def test_above_another_whatever_the_seed(each, words):
    seen = table(pixel_cm=0.85, majority=0.75)
    seen["rows"][0]["dice"]["each"], seen["rows"][1]["dice"]["each"] = each, [0.8, 0.7]
    (said,) = above_on_every_seed("pixel-cm", "majority")(seen)
    assert words in said


def test_a_score_reached_on_average_or_on_every_seed():
    seen = table(clean=0.9)
    seen["rows"][0]["dice"]["each"] = [0.95, 0.85]
    (mean,) = at_least("clean", "dice", {"dense": 0.88})(seen)
    assert mean == "dense: Dice of clean is 0.9000 (target: at least 0.88, reached)."
    (least,) = at_least("clean", "dice", {"dense": 0.88}, every_seed=True)(seen)
    assert least == "dense: Dice of clean is 0.8500 or more (target: at least 0.88 on every seed, missed)."


@pytest.mark.parametrize(("score", "word"), [(0.97, "reached"), (0.9, "missed")])
def test_an_error_within_its_bound(score, word):
    (said,) = at_most("pixel-cm", "cm_rmse", {"dense": 0.04})(table(pixel_cm=score))
    assert f"{1 - score:.4f}" in said
    assert word in said


def test_an_error_beside_another_methods():
    assert "is below" in lower_than("pixel-cm", "staple", "cm_rmse")(table(pixel_cm=0.9, staple=0.8))[0]
    assert "is not below" in lower_than("pixel-cm", "staple", "cm_rmse")(table(pixel_cm=0.8, staple=0.9))[0]
    assert lower_than("pixel-cm", "prob-unet", "cm_rmse")(table(pixel_cm=0.8)) == []


def test_a_default_beside_the_best_of_a_sweep():
    (said,) = near_best("default", 0.005)(table(default=0.9, low=0.902, high=0.5))
    assert said.startswith("dense: default is 0.20 points below the best of the sweep, low (")
    assert said.endswith("at most 0.50 points below, reached).")


def test_swapped_seeds_are_counted():
    assert never_swapped("clean")(table(clean=0.9)) == [
        "dense: clean ended with classes swapped or lost on 0 of 2 seeds."
    ]


def curve(means):
    """A table whose rows are points of one line."""
    rows = [
        {
            "setting": "s",
            "method": name,
            "lines": ["l"],
            "options": {"ratio": ratio},
            "miou": {"mean": mean, "sd": 0.01},
        }
        for name, (ratio, mean) in means.items()
    ]
    return {"rows": rows, "metrics": [{"name": "miou", "title": "mIoU"}]}


def test_a_row_that_leads_and_a_curve_that_rises():
    rising = curve({"a": (0.1, 0.5), "b": (0.5, 0.495), "c": (1.0, 0.6)})
    (told,) = rises("l", "ratio", "miou")(rising)
    assert "rises, up to what seeds make" in told
    (told,) = rises("l", "ratio", "miou")(curve({"a": (0.1, 0.5), "c": (1.0, 0.4)}))
    assert "falls from 0.1 to 1 by 10.00 points" in told
    (told,) = leads("c", "a", 0.02, "miou")(rising)
    assert "10.00 points above a" in told
    assert told.endswith("reached).")
    assert "missed" in leads("a", "c", 0.0, "miou")(rising)[0]
