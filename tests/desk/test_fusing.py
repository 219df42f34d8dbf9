"""The fusion behind the desk says what fusing everything anew would say."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import annotruth as at
from annotruth.choosing.queue.posteriors import table_posteriors
from annotruth.choosing.queue.regions import mask_posteriors
from annotruth.desk.fusing import MaskFusion, TableFusion
from annotruth.desk.study import Study

from .conftest import draw_cases, draw_table


def ignore(done, total):
    pass


@pytest.fixture
def fusion(tmp_path):
    made = MaskFusion(Study(draw_cases(), tmp_path, raters=["dora"]))
    made.prepare(ignore)
    return made


def anew(study, gold=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return at.STAPLE().fit(study.annotations, gold)


def doubts(known):
    from annotruth.choosing.queue.information import entropy

    return known.sums(entropy(known.posterior) * known.weight)


def test_the_truth_is_that_of_staple(fusion):
    fused = anew(fusion.study)
    for index in range(len(fusion.study)):
        labels, probability = fusion.fused(index)
        assert (labels == fused.predict_item(index)).all()
        assert probability == pytest.approx(fused.predict_proba_item(index).max(axis=0), abs=1e-6)


def test_doubt_is_what_the_choice_of_labels_goes_by(fusion):
    wanted = mask_posteriors(anew(fusion.study))
    known = fusion.known()
    assert doubts(known) == pytest.approx(doubts(wanted), rel=0.02)
    assert [known.describe(i) for i in range(6)] == [wanted.describe(i) for i in range(6)]
    assert known.evidence.tolist() == wanted.evidence.tolist()


def test_it_follows_decisions_and_labels_as_if_begun_anew(fusion):
    study = fusion.study
    gold = study.base.item_masks(4)[2]
    study.decide(4, "edit", who="Ada", labels=gold)
    study.decide(1, "label", who="dora", role="rater", rater="dora", labels=gold)
    fusion.follow([1, 4])
    fused = anew(study, {study.base.items[4]: gold})
    assert fusion._state.confusion == pytest.approx(fused.confusion_, abs=1e-3)
    at_once = doubts(fusion.known())
    assert (at_once > 0).tolist() == (doubts(mask_posteriors(fused)) > 0).tolist(), "new doubt is seen at once"
    fusion.settle(lambda: True)
    assert doubts(fusion.known()) == pytest.approx(doubts(mask_posteriors(fused)), rel=0.05, abs=1e-6)
    assert (fusion.fused(1)[0] == fused.predict_item(1)).all()


def test_a_case_can_be_looked_at_before_all_are_counted(tmp_path):
    early = MaskFusion(Study(draw_cases(), tmp_path))
    labels, _ = early.fused(0)
    assert (labels == draw_cases().item_masks(0)[0]).all()
    assert (early.say(0, "majority")[0] == labels).all()


def test_a_table_follows_decisions(tmp_path):
    study = Study(draw_table(), tmp_path)
    fusion = TableFusion(study)
    assert fusion.posterior(0) is None, "before anything is learnt"
    fusion.prepare(ignore)
    alone = fusion.posterior(2)
    study.decide(2, "edit", who="Ada", labels=1)
    fusion.follow([2])
    assert fusion.known().posterior[2].tolist() == [0, 1]
    assert fusion.posterior(2)[1] > alone[1], "the rater who was right is trusted more"
    assert fusion.posterior(2)[1] < 1, "what raters say is told apart from the decision"
    fitted = fusion._fitted
    assert fusion.known().posterior == pytest.approx(table_posteriors(fitted).posterior)


def test_what_methods_say_of_a_table(tmp_path):
    fusion = TableFusion(Study(draw_table(), tmp_path))
    assert fusion.methods == ("majority", "dawid-skene", "ibcc", "mace")
    for method in fusion.methods:
        said = fusion.say(method)
        assert said[[1, 3, 4, 6]].tolist() == [1, 1, 0, 0]
        assert said.dtype.kind in "iu"


def test_nobody_in_doubt_leaves_nothing_to_ask(tmp_path):
    same = np.zeros((2, 3, 6, 6), dtype=np.uint8)
    same[..., 2:4, 2:4] = 1
    fusion = MaskFusion(Study(at.Annotations.from_masks(same), tmp_path))
    fusion.prepare(ignore)
    known = fusion.known()
    assert doubts(known).tolist() == [0, 0]
    assert known.describe(0) == "no pixel is in doubt"
