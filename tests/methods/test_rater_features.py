"""What is known of raters, as columns of numbers; what is missing or strange is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth import Annotations
from annotruth.errors import InputError
from annotruth.methods import make_method
from annotruth.methods.rater_features import RaterCode, feature_names

KNOWN = {
    "ann": {"years": 1, "site": "A", "note": [1]},
    "bob": {"years": 3.0, "site": "B", "expert": True},
    "cy": {"years": np.int64(8), "site": "B", "years_or_so": "many"},
}


def annotations(known=KNOWN) -> Annotations:
    return Annotations.from_masks(np.zeros((1, 3, 8, 8), np.uint8), raters=["ann", "bob", "cy"], rater_info=known)


def test_numbers_are_standardised_and_words_have_columns():
    code = RaterCode.of(annotations(), ["years", "site"])
    assert code.columns == 3
    columns = code.encode_all(annotations())
    years = np.array([1, 3, 8])
    np.testing.assert_allclose(columns[:, 0], (years - years.mean()) / years.std())
    np.testing.assert_allclose(columns[:, 1:], [[2 / 3, -2 / 3], [-1 / 3, 1 / 3], [-1 / 3, 1 / 3]])
    np.testing.assert_allclose(columns.mean(axis=0), 0, atol=1e-12)  # the average rater is all zeros
    np.testing.assert_allclose(code.encode({"site": "A", "years": 4}), [0, 2 / 3, -2 / 3])
    assert RaterCode(**vars(code)) == code
    assert RaterCode.of(annotations(), []).columns == 0


def test_a_number_all_raters_share_tells_nothing():
    known = {rater: {"years": 5} for rater in KNOWN}
    np.testing.assert_array_equal(RaterCode.of(annotations(known), ["years"]).encode_all(annotations(known)), 0)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["age"], r"Rater ann: the feature age is missing\. Give it under raters in dataset\.json"),
        (["years", "expert"], "Rater ann: the feature expert is missing"),
        (["note"], r"Rater ann: the feature note is \[1\], neither a number nor a word"),
    ],
)
def test_missing_and_strange_features_are_named(names, words):
    with pytest.raises(InputError, match=words):
        RaterCode.of(annotations(), names)
    with pytest.raises(InputError, match=words):
        make_method("global-cm", "masks", {"rater_features": names}).check(annotations())


def test_a_feature_must_be_of_one_kind():
    mixed = {**KNOWN, "cy": {"years": "many"}}
    with pytest.raises(InputError, match="years is a number for some raters and a word for others"):
        RaterCode.of(annotations(mixed), ["years"])
    unknown = {**KNOWN, "cy": {"years": float("nan")}}
    with pytest.raises(InputError, match="Rater cy: the feature years is nan"):
        RaterCode.of(annotations(unknown), ["years"])


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ({"years": 2}, "The new rater: the feature site is missing"),
        ({"years": 2, "site": "C"}, "site is 'C', but the model knows only A, B"),
        ({"years": "two", "site": "A"}, "years must be a number, not 'two'"),
        ({"years": 2, "site": "A", "age": 40}, "does not know age; it knows years, site"),
    ],
)
def test_a_new_rater_the_model_cannot_know(features, words):
    with pytest.raises(InputError, match=words):
        RaterCode.of(annotations(), ["years", "site"]).encode(features)


@pytest.mark.parametrize("given", ["years,site", " years , site", ["years", "site"], ("years", "site")])
def test_names(given):
    assert feature_names(given) == ("years", "site")
    assert make_method("pixel-cm", "masks", {"rater_features": given}).rater_features == ("years", "site")


@pytest.mark.parametrize("given", ["years,", [1], 7, ["years", "years"], None])
def test_wrong_names(given):
    with pytest.raises(InputError, match=r"rater.features?"):
        make_method("pixel-cm", "masks", {"rater_features": given})


def test_methods_that_take_no_features():
    with pytest.raises(InputError, match="pixel-cm-lowrank takes no rater_features"):
        make_method("pixel-cm-lowrank", "masks", {"rater_features": "years"})
    with pytest.raises(InputError, match="features='own'"):
        make_method("pixel-cm", "masks", {"rater_features": "years", "features": "shared"})
