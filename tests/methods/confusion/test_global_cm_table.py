"""global-cm on label tables: matrices counted against an averaged network."""

import numpy as np
import pytest
import torch

from annotruth import Classifier
from annotruth.errors import CopiesWarning
from annotruth.fusion.em import confusion_from_counts
from annotruth.methods import Batch, DataSpec, make_method
from annotruth.methods.confusion.global_cm_table import (
    ANY_PSEUDO_COUNT,
    POOLED_PSEUDO_COUNT,
    RIGHT_PSEUDO_COUNT,
    with_least_trace,
)
from annotruth.simulate import label_group, simulate_labels

SPEC = DataSpec(channels=3, raters=3, classes=3, dims=0, task="labels")


@pytest.fixture
def method():
    return make_method("global-cm", "labels")


@pytest.fixture
def model(method):
    torch.manual_seed(0)
    return method.build(SPEC, torch.nn.Linear(3, 3, bias=False))


def scores(model, network):
    """Make a network answer with the item's largest feature."""
    with torch.no_grad():
        getattr(model, network).weight.copy_(20 * torch.eye(3))


def test_the_average_reaches_back_over_a_thirtieth_of_the_steps(model):
    with torch.no_grad():
        model.truth.weight.zero_()
    for _ in range(1000):
        model.follow()
    assert abs(model.average.weight).max() < 1e-6
    with torch.no_grad():
        model.truth.weight.fill_(1.0)
    for _ in range(33):
        model.follow()
    assert 0.5 < model.average.weight.mean() < 0.75  # 1 − (1000 / 1033)^30 = 0.62


def test_the_network_learns_and_the_average_is_used(model):
    scores(model, "average")
    image = torch.tensor([[0.0, 1.0, 0.0]])
    assert model.eval().log_truth(image).argmax() == 1
    learning = model.train().log_truth(image)
    np.testing.assert_allclose(learning.exp().detach(), model.truth(image).softmax(dim=1).detach(), rtol=1e-5)


def test_first_everybody_is_judged_by_the_clearest_items_and_drawn_to_the_mean(method, model):
    scores(model, "average")
    images = torch.eye(3)[[0, 0, 1, 2]]
    labels = torch.tensor([[0, -1, -1], [1, -1, -1], [1, -1, -1], [-1, 2, -1]])  # the third rater says nothing
    method.stages.finish(model.eval(), [Batch(images, labels, raters=torch.arange(3))])
    counts = np.zeros((3, 3, 3))
    counts[0, 0, 0] = counts[0, 1, 1] = counts[1, 2, 2] = 1  # of two items of the first class, one is enough
    before = RIGHT_PSEUDO_COUNT * np.eye(3) + ANY_PSEUDO_COUNT
    pooled = confusion_from_counts(counts.sum(axis=0, keepdims=True), before)
    expected = confusion_from_counts(counts, before + POOLED_PSEUDO_COUNT * pooled)
    np.testing.assert_allclose(model.annotators.matrices, expected, rtol=1e-5)
    assert model.stage == 1


def test_three_labels_an_item_are_put_together_before_the_network_has_learnt_anything(method):
    """Five people who confuse a class in nearly half of its items, each with another one."""
    truth = np.random.default_rng(0).integers(0, 3, 600)
    raters = label_group("pairwise-flipper", 5, 3, skill=0.55, seed=1)
    simulation = simulate_labels(truth, raters, keep="all", seed=0)
    model = method.build(DataSpec(channels=3, raters=5, classes=3, dims=0, task="labels"), torch.nn.Linear(3, 3))
    annotations = simulation.annotations(images=np.zeros((600, 3)), classes=["a", "b", "c"])
    method.prepare(model, annotations)
    batch = Batch(torch.zeros(600, 3), torch.from_numpy(simulation.answers).long(), raters=torch.arange(5))
    method.stages.begin_epoch(model.eval(), [batch], progress=0.05)
    assert model.stage == 0
    method.stages.begin_epoch(model, [batch], progress=0.1)
    assert model.stage == 1
    assert abs(model.annotators.matrices.numpy() - simulation.confusion).max() < 0.2  # the identity: 0.5
    guesses = label_group("hammer-spammer", 5, 3, skill=0.1, seed=1)
    for labels in (simulate_labels(truth, raters, keep=1, seed=0), simulate_labels(truth, guesses, seed=0)):
        method.prepare(model, labels.annotations(images=np.zeros((600, 3)), classes=["a", "b", "c"]))
        assert not model.many


def test_the_trace_takes_part_in_learning_but_not_in_what_is_told(model):
    heavy, light = (make_method("global-cm", "labels", {"trace_weight": weight}) for weight in (0.5, 0.0))
    scores(model, "average")
    batch = Batch(torch.eye(3)[[0, 1, 2] * 5], torch.tensor([0, 1, 2] * 5)[:, None], raters=torch.tensor([0]))
    told, learnt = [], []
    for method in (heavy, light):
        model.stage.zero_()
        model.ready.fill_(True)
        method.stages.begin_epoch(model.eval(), [batch], progress=0.6)
        learnt.append(model.annotators.matrices.clone())
        model.stage.zero_()
        method.stages.finish(model, [batch])
        told.append(model.annotators.matrices.clone())
    torch.testing.assert_close(told[0], told[1])
    assert learnt[0][0].trace() < learnt[1][0].trace()


def test_least_trace_maximises_the_penalised_likelihood():
    shares, weight = np.array([[0.6, 0.3, 0.1]]), 0.2
    best = with_least_trace(np.stack([*shares] * 3), weight)[0]
    assert best.sum() == pytest.approx(1)

    def value(row):
        return float((shares[0] * np.log(row)).sum() - weight * row[0])

    for other in np.random.default_rng(0).dirichlet(100 * best, size=200):
        assert value(other) <= value(best) + 1e-12


def test_few_items_and_a_linear_model_need_no_settings():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 600)
    features = np.eye(3)[truth] + rng.normal(0, 0.2, (600, 3))
    raters = label_group("pairwise-flipper", 5, 3, skill=0.7)
    answers = simulate_labels(truth, raters, keep=1).answers
    model = Classifier("global-cm", network="linear", progress=False, accelerator="cpu").fit(features, answers)
    assert model.score(features, truth) > 0.95
    assert not model.warnings_
    assert model.settings_["max_epochs"] == 55
    assert model.settings_["learning_rate"] == 0.02


def test_of_copies_the_first_that_labelled_an_item_counts(model):
    model.copies.copy_(torch.tensor([0, 1, 0]))
    labels = torch.tensor([[2, 1, 2], [-1, 1, 0], [2, -1, -1]])
    kept = model.once(Batch(torch.zeros(3, 3), labels, torch.arange(3)))
    assert kept.tolist() == [[2, 1, -1], [-1, 1, 0], [2, -1, -1]]
    some = model.once(Batch(torch.zeros(3, 3), labels[:, 1:], torch.arange(3), raters=torch.tensor([1, 2])))
    assert some.tolist() == labels[:, 1:].tolist()


@pytest.mark.parametrize("seed", range(3))
def test_three_copies_of_one_flipper_do_not_outvote_two_good_raters(seed):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, 500)
    features = np.eye(4)[truth] + rng.normal(0, 0.25, (500, 4))
    flipper, good = label_group("pairwise-flipper", 1, 4, 0.55, seed=seed), label_group("hammer-spammer", 2, 4, 0.9)
    answers = simulate_labels(truth, np.concatenate([flipper, good]), seed=seed).annotations().answer_matrix()
    copied = answers[:, [0, 0, 0, 1, 2]]
    model = Classifier("global-cm", network="linear", max_epochs=15, seed=seed, progress=False)
    with pytest.warns(CopiesWarning, match="rater_1, rater_2, rater_3 give the same answers.*counted as one"):
        model.fit(features, copied)
    assert (model.predict(features) == truth).mean() > 0.9
    assert model.skill_[:3].max() < 0.7 < model.skill_[3:].min()
    with pytest.warns(CopiesWarning, match="outvote"):
        voted = Classifier("majority", network="linear", max_epochs=5, seed=seed, progress=False).fit(features, copied)
    assert voted.warnings_
