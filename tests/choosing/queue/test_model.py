"""What a trained model says of items that nobody has labelled, or few."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import annotruth as at
from annotruth.choosing.queue.model import add_labels, add_unlabelled, model_posteriors
from annotruth.errors import InputError
from annotruth.fusion.em import truth_posterior

GOOD, POOR = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[0.6, 0.4], [0.4, 0.6]])


class Model:
    """Says of an item, or of each pixel, what its image holds: the probability of the second class."""

    def __init__(self, task: str, raters: tuple[str, ...] = ("ann", "bob")) -> None:
        self.task, self.raters_, self.classes_ = task, raters, np.array(["no", "yes"])
        self.confusion_ = np.stack([GOOD, POOR, GOOD][: len(raters)])
        self.annotators_ = {rater: SimpleNamespace(labelled=7) for rater in raters}

    def predict_proba(self, X: Any, spacing: Any = None) -> Any:
        if isinstance(X, at.Annotations):
            yes = np.stack([X.item_image(index)[0] for index in range(len(X))])
            return np.stack([1 - yes, yes], axis=1)
        return [np.concatenate([1 - image, image]) for image in X]


@pytest.fixture
def table() -> at.Annotations:
    return at.Annotations.from_answers(
        np.array([[-1, -1], [-1, -1], [1, -1], [-1, 0]]),
        images=np.array([[0.5], [0.99], [0.5], [0.5]]), raters=["bob", "ann"], classes=["no", "yes"],
    )  # fmt: skip


def test_labels_are_put_together_with_what_the_model_says(table: at.Annotations) -> None:
    known, labelled = model_posteriors(Model("labels"), table, lambda *_: None)
    assert known.raters == ("ann", "bob")
    assert labelled.tolist() == [7, 7]
    assert known.posterior[0] == pytest.approx([0.5, 0.5])
    assert known.posterior[1] == pytest.approx([0.01, 0.99])
    assert known.posterior[2] == pytest.approx([0.4, 0.6])  # bob said yes
    assert known.posterior[3] == pytest.approx(np.array([0.9, 0.2]) / 1.1)  # ann said no
    queue = at.next_labels(Model("labels"), table, 2)
    assert queue.table[["item", "rater"]].iloc[:2].to_numpy().tolist() == [["item_0", "ann"], ["item_2", "ann"]]
    assert queue.table["reason"][0].startswith("nobody has labelled it; ann recognises")


def test_several_models_speak_with_one_voice(table: at.Annotations) -> None:
    one, other = Model("labels"), Model("labels")
    other.confusion_ = np.stack([POOR, POOR])
    together = SimpleNamespace(
        models=(one, other), raters_=one.raters_, classes_=one.classes_, predict_proba=one.predict_proba
    )
    known, _ = model_posteriors(together, table, lambda *_: None)
    assert known.confusion[0] == pytest.approx((GOOD + POOR) / 2)


def test_masks() -> None:
    images = np.full((3, 1, 8, 8), 0.01)
    images[1, 0, 2:4] = images[2, 0, 2:4] = 0.5
    masks = np.full((3, 1, 8, 8), 255, dtype=np.uint8)
    masks[2] = 0
    labels = at.Annotations.from_masks(masks, images=images, raters=["ann"], classes=["no", "yes"])
    known, _ = model_posteriors(Model("masks"), labels, lambda *_: None)
    assert np.diff(known.first_row).tolist() == [0, 1, 1]
    assert known.posterior[0] == pytest.approx([0.5, 0.5])
    assert known.posterior[1] == pytest.approx(np.array([0.9, 0.2]) / 1.1)
    queue = at.next_labels(Model("masks"), labels, 1)
    assert queue.table[["item", "rater"]].iloc[0].tolist() == ["item_1", "ann"]


def test_labels_on_pixels_are_bayes_rule() -> None:
    rng = np.random.default_rng(0)
    prior = rng.dirichlet(np.ones(3), 20).T
    confusion = rng.dirichlet(np.ones(3), (2, 3))
    masks = rng.integers(0, 3, (2, 20)).astype(np.uint8)
    masks[0, :5] = 255
    matrix = np.where(masks.T == 255, -1, masks.T.astype(int))
    answers = at.Annotations.from_answers(matrix, classes=3).answers
    expected, _ = truth_posterior(answers, np.log(prior.T), np.log(confusion))
    found = add_labels(prior, masks, confusion).T
    assert found == pytest.approx(expected)


def test_a_run_that_does_not_fit_is_refused(table: at.Annotations) -> None:
    with pytest.raises(InputError, match="trained on masks, and these are a label table"):
        at.next_labels(Model("masks"), table, 1)
    with pytest.raises(InputError, match="does not know bob: it was trained with ann"):
        at.next_labels(Model("labels", ("ann",)), table, 1)
    other = Model("labels")
    other.classes_ = np.array(["cat", "dog"])
    with pytest.raises(InputError, match="tells apart the classes cat, dog, the labels are of no, yes"):
        at.next_labels(other, table, 1)
    bare = at.Annotations.from_answers(np.array([[0, 1]]), raters=["ann", "bob"], classes=["no", "yes"])
    with pytest.raises(InputError, match="there are none"):
        at.next_labels(Model("labels"), bare, 1)


def test_items_without_a_picture_are_refused(table: at.Annotations) -> None:
    some = at.Annotations.from_answers(np.array([[0], [0]]), items=["item_0", "x"], images=np.zeros((2, 1)))
    with pytest.raises(InputError, match="no pictures or features of 3 of 4 items: item_1, item_2, item_3"):
        add_unlabelled(table, some)


class Shifted(Model):
    """As Model, but of one item it is sure of the contrary."""

    def predict_proba(self, X: Any, spacing: Any = None) -> Any:
        found = super().predict_proba(X)
        if isinstance(X, at.Annotations):
            found[1] = found[1, ::-1]
        else:
            found = [one[::-1] if one[1].max() > 0.9 else one for one in found]
        return found


@pytest.mark.parametrize("kind", ["labels", "masks"])
def test_bald_asks_where_models_disagree_not_where_all_are_unsure(kind: str, table: at.Annotations) -> None:
    ann = table
    if kind == "masks":
        masks = np.full((3, 2, 6, 6), 255, dtype=np.uint8)
        images = np.stack([np.full((1, 6, 6), share, dtype=np.float32) for share in (0.5, 0.99, 0.5)])
        ann = at.Annotations.from_masks(masks, images=images, raters=["ann", "bob"], classes=["no", "yes"])
    one, other = Model(kind), Shifted(kind)
    together = SimpleNamespace(
        models=(one, other), raters_=one.raters_, classes_=one.classes_,
        predict_proba=lambda X, **told: [(a + b) / 2 for a, b in zip(one.predict_proba(X), other.predict_proba(X))],
    )  # fmt: skip
    assert at.next_labels(together, ann, 1, strategy="bald").table["item"][0] == "item_1"
    with pytest.raises(InputError, match="more than one run"):
        at.next_labels(one, ann, 1, strategy="bald")
