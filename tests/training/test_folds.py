"""Folds: which items are held out, what is refused, and where the runs of folds lie."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold

from annotruth import Annotations, Classifier
from annotruth.errors import InputError
from annotruth.training.folds import fold_folder, fold_folders, hold_out

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")


def held_out_items(annotations, folds):
    return [set(hold_out(annotations, fold, folds)[1].items) for fold in range(folds)]


@pytest.mark.parametrize("folds", [2, 3, 5, 12])
def test_every_item_is_held_out_once_in_parts_as_equal_as_those_of_scikit_learn(make_cases, folds):
    annotations = make_cases(12)
    parts = held_out_items(annotations, folds)
    assert sorted(item for part in parts for item in part) == sorted(annotations.items)
    theirs = [len(test) for _, test in KFold(folds).split(np.zeros(12))]
    assert sorted(map(len, parts)) == sorted(theirs)
    for fold, part in enumerate(parts):
        train, _ = hold_out(annotations, fold, folds)
        assert train.items == tuple(item for item in annotations.items if item not in part), "in their order"


def test_groups_stay_whole_and_no_fold_is_empty(make_cases):
    annotations = make_cases(12, groups=["large"] * 8 + ["a", "b", "c", "c"])
    for folds in (2, 3, 4):
        parts = held_out_items(annotations, folds)
        assert all(parts)
        for fold in range(folds):
            train, held_out = hold_out(annotations, fold, folds)
            assert not set(train.groups) & set(held_out.groups)
            assert len(train) + len(held_out) == 12


def test_the_split_depends_on_names_alone(make_cases, tiny):
    annotations = make_cases(12)
    turned = annotations.take(np.arange(12)[::-1])
    assert held_out_items(annotations, 4) == held_out_items(turned, 4)
    for fold in range(4):
        of_seeds = {tiny(fold=fold, folds=4, seed=seed)._split(annotations)[1].items for seed in range(5)}
        assert len(of_seeds) == 1


def test_a_model_learns_from_the_other_folds_and_stops_by_its_own(cases, tiny):
    model = tiny(fold=1, folds=4)
    data = model._read(model._check(cases))
    assert len(data.train) == 9
    assert data.held_out.annotations.items == hold_out(cases, 1, 4)[1].items
    model.fit(cases)
    assert model.history_.val_loss.notna().all()
    assert (model.settings_["fold"], model.settings_["folds"]) == (1, 4)
    assert "folds" not in tiny().fit(cases).settings_


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"fold": 5}, "fold is a whole number from 0 to 4, as there are 5 folds, not 5"),
        ({"fold": -1}, "from 0 to 4"),
        ({"fold": 1.0}, "from 0 to 4"),
        ({"fold": True}, "from 0 to 4"),
        ({"fold": "all"}, "from 0 to 4, as there are 5 folds, not 'all'"),
        ({"fold": 0, "folds": 1}, "folds is a whole number from 2"),
        ({"fold": 0, "folds": 2.5}, "folds is a whole number from 2"),
        ({"fold": 0, "folds": 13}, "more folds than cases, 13 and 12; take at most 12 folds"),
        ({"fold": 0, "validation": 0.3}, "With a fold, that fold is what is held out; leave validation away"),
        ({"fold": 0, "validation": 0}, "leave validation away"),
    ],
)
def test_wrong_folds_are_refused_before_anything_is_trained(cases, tiny, tmp_path, params, message):
    with pytest.raises(InputError, match=message):
        tiny(**params).fit(cases, run_folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_one_case_or_one_group_cannot_be_split(make_cases, tiny):
    with pytest.raises(InputError, match="There is only one case, so that none can be held out; train without a fold"):
        tiny(fold=0).fit(make_cases(1))
    with pytest.raises(InputError, match="All cases are of one group"):
        tiny(fold=0).fit(make_cases(6, groups=["only"] * 6))
    with pytest.raises(InputError, match="more folds than groups of cases, 5 and 2"):
        tiny(fold=0).fit(make_cases(6, groups=["a"] * 3 + ["b"] * 3))


def test_a_label_table_is_split_by_the_items_that_somebody_labelled():
    answers = np.array([[0], [1], [0], [1], [-1], [-1]])
    features = np.random.default_rng(0).normal(size=(6, 2))
    table = Annotations.from_answers(answers, images=features)
    with pytest.raises(InputError, match="more folds than cases, 5 and 4"):
        Classifier(fold=0, progress=False).fit(table)
    model = Classifier(fold=3, folds=4, max_epochs=1, progress=False)
    assert len(model._read(model._check(table)).train) == 3


def test_another_fold_is_not_resumed(cases, tiny, tmp_path):
    run = tmp_path / "run"
    model = tiny(fold=0, folds=3).fit(cases, run_folder=run)
    again = tiny(fold=0, folds=3).fit(cases, run_folder=run, resume=True)
    np.testing.assert_array_equal(again.predict_proba(cases.images), model.predict_proba(cases.images))
    for other, now in (({"fold": 1, "folds": 3}, "1 of 3"), ({"fold": 0, "folds": 4}, "0 of 4"), ({}, "None")):
        with pytest.raises(InputError, match=rf"another fold \(then 0 of 3, now {now}\)"):
            tiny(**other).fit(cases, run_folder=run, resume=True)


def test_folders_of_folds_are_found_in_order(tmp_path):
    for name in (*range(12), "1b", "01"):
        fold_folder(tmp_path, name).mkdir()
        (fold_folder(tmp_path, name) / "run.json").touch()
    (tmp_path / "fold_20").mkdir()  # of somebody else
    assert [path.name for path in fold_folders(tmp_path)] == [f"fold_{number}" for number in range(12)]
