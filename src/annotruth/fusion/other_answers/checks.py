"""Checks that any model of comparisons, marks or findings must pass, to be run on a new one in its tests.

>>> from annotruth import BradleyTerry
>>> for check in CHECKS:
...     check(BradleyTerry())
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from annotruth.data.comparisons import Comparisons
from annotruth.data.findings import Findings
from annotruth.data.marks import Marks
from annotruth.errors import InputError
from annotruth.fusion.other_answers.base import AnswerModel

N_ITEMS, N_RATERS, N_FINDINGS, N_PAIRS = 12, 4, 3, 200


def made_up_answers(kind: type[Any], seed: int = 0) -> Any:
    """Answers of raters who are mostly right, of any of the three types.

    Examples
    --------
    >>> made_up_answers(Marks)
    Marks(48 answers: 12 items, 4 raters)
    """
    rng = np.random.default_rng(seed)
    items, raters = (tuple(f"{what}{n}" for n in range(count)) for what, count in (("i", N_ITEMS), ("r", N_RATERS)))
    item, rater = (each.ravel() for each in np.indices((N_ITEMS, N_RATERS)))
    if kind is Marks:
        return Marks(items, raters, item, rater, item + rng.normal(0, 0.5 + rater))
    if kind is Comparisons:
        left = rng.integers(0, N_ITEMS, N_PAIRS)
        right = (left + rng.integers(1, N_ITEMS, N_PAIRS)) % N_ITEMS
        return Comparisons(items, raters, left, right, rng.integers(0, N_RATERS, N_PAIRS), left > right)
    item, rater, finding = (each.ravel() for each in np.indices((N_ITEMS, N_RATERS, N_FINDINGS)))
    present = ((item + finding) % 3 == 0) == (rng.random(len(item)) < 0.85)
    return Findings(items, raters, ("a", "b", "c"), item, rater, finding, present)


def check_constructor_only_stores(model: AnswerModel[Any]) -> None:
    """Parameters come back as they were given, from the model and from its clone."""
    assert all(getattr(model, name) is value for name, value in model.get_params().items())
    assert clone(model).get_params() == model.get_params()
    assert not [name for name in vars(model) if name.endswith("_")], "nothing is learnt before fit"


def check_asks_for_fit_first(model: AnswerModel[Any]) -> None:
    """Results before fit are refused by name."""
    for ask in ("truth_", "ranking_"):
        try:
            getattr(clone(model), ask)
        except NotFittedError:
            continue
        raise AssertionError(f"{ask} gave a result before fit")


def check_refuses_other_answers(model: AnswerModel[Any]) -> None:
    """Answers of another type are refused, with the columns of the right one."""
    other = Marks if model.takes is not Marks else Comparisons
    try:
        clone(model).fit(made_up_answers(other))
    except InputError as error:
        words = str(error)
    else:
        raise AssertionError(f"{other.__name__} were taken")
    assert all(name in words for name in model.takes.columns)


def check_tables(model: AnswerModel[Any]) -> None:
    """There is a row per item and per rater, of finite numbers and words, the best rater first."""
    answers = made_up_answers(model.takes)
    fused = clone(model)
    assert fused.fit(answers) is fused
    truth, ranking = fused.truth_, fused.ranking_
    assert tuple(truth["item"]) == answers.items
    assert set(ranking["rater"]) == set(answers.raters)
    for table in (truth, ranking):
        assert np.isfinite(table.select_dtypes("number").to_numpy()).all()
    assert ranking.iloc[:, 1].is_monotonic_decreasing


def check_order_of_answers(model: AnswerModel[Any]) -> None:
    """The order of the answers changes nothing."""
    answers = made_up_answers(model.takes)
    order = np.random.default_rng(1).permutation(len(answers))
    arrays = {name: value[order] for name, value in vars(answers).items() if isinstance(value, np.ndarray)}
    one, other = clone(model).fit(answers), clone(model).fit(replace(answers, **arrays))
    for name, values in one.truth_columns().items():
        if values.dtype != object:
            np.testing.assert_allclose(values, other.truth_columns()[name], rtol=1e-3, atol=1e-3)


def check_travels(model: AnswerModel[Any]) -> None:
    """A model that was fitted is the same in another process."""
    fused = clone(model).fit(made_up_answers(model.takes))
    assert pickle.loads(pickle.dumps(fused)).truth_.equals(fused.truth_)


CHECKS: tuple[Callable[[AnswerModel[Any]], None], ...] = (
    check_constructor_only_stores,
    check_asks_for_fit_first,
    check_refuses_other_answers,
    check_tables,
    check_order_of_answers,
    check_travels,
)
