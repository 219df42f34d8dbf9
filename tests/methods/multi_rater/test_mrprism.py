"""mrprism: recurrences, confidences found and given, fusion of masks, bad input; and the better raters are found."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from annotruth import Annotations, Segmenter, load_model
from annotruth.errors import InputError
from annotruth.methods import Batch, DataSpec, make_method
from annotruth.metrics import dice
from annotruth.nn import plan_network
from annotruth.nn.prism.fusion import decided
from annotruth.nn.prism.networks import unpatched
from annotruth.simulate import MaskRater, noisy_digits, simulate_masks

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.AnnotruthWarning")

BETTER = ("fine", "near")

PEOPLE = (
    MaskRater("over", 0.2, name="fine"), MaskRater("under", 0.2, name="near"), MaskRater("over", name="over"),
    MaskRater("under", name="under"), MaskRater("wrong", name="wrong"), MaskRater("blank", 0.8, name="blank"),
)  # fmt: skip


@pytest.fixture(scope="module")
def digits() -> Annotations:
    images, truth, _ = noisy_digits(96)
    return simulate_masks(truth, PEOPLE).annotations(images=images)


@pytest.fixture(scope="module")
def model(digits) -> Segmenter:
    return Segmenter("mrprism", max_epochs=16, batch_size=12, validation=0, progress=False).fit(digits)


def test_the_better_raters_get_more_confidence(model, digits):
    found = np.mean([model.rater_confidences_(image).mean(axis=(1, 2)) for image in digits.images[:20]], axis=0)
    assert set(np.array(model.raters_)[np.argsort(found)[-2:]]) == set(BETTER)
    skills = {name: annotator.skill for name, annotator in model.annotators_.items()}
    assert min(skills[name] for name in BETTER) > max(skills[name] for name in ("under", "wrong", "blank"))


def test_masks_are_fused_better_than_by_vote(model, digits):
    fused = model.fuse(digits)
    assert fused.shape == (96, 2, 28, 28)
    np.testing.assert_allclose(fused.sum(axis=1), 1, atol=1e-5)
    vote = (digits.masks.mean(axis=1) > 0.5).astype(np.uint8)
    assert dice(fused.argmax(axis=1), digits.truth) > dice(vote, digits.truth)


def test_every_recurrence_can_be_asked_for(model, digits):
    images = digits.images[:3]
    by_recurrence = [model.predict_proba(images, recurrence=i) for i in range(4)]
    assert all(p.shape == (3, 2, 28, 28) for p in by_recurrence)
    np.testing.assert_array_equal(model.predict_proba(images), by_recurrence[2])
    assert not np.allclose(by_recurrence[0], by_recurrence[1])
    first, last = (model.rater_confidences_(images[0], recurrence=i) for i in (0, 2))
    assert first.shape == last.shape == (6, 28, 28)
    assert not np.allclose(first, last)


def test_given_confidences_change_prediction_and_fusion(model, digits):
    some = digits.take([0, 1, 2, 3])
    plain = model.predict_proba(some.images)
    over, under = (model.predict_proba(some.images, confidences={name: 4.0})[:, 1].mean() for name in ("over", "under"))
    assert over > under
    assert over != plain[:, 1].mean() != under
    even = model.predict_proba(some.images, confidences=[2.0] * 6)
    np.testing.assert_allclose(even, plain, atol=1e-6)
    alone = model.fuse(some, confidences=[0, 0, 1, 0, 0, 0])
    assert dice(alone.argmax(axis=1), some.masks[:, 2]) > dice(model.fuse(some).argmax(axis=1), some.masks[:, 2])


def test_masks_of_some_raters_in_another_order(model, digits):
    some = digits.take([5])
    swapped = Annotations.from_masks(
        some.masks[:, [3, 0]], images=some.images, raters=("under", "fine"), classes=some.classes
    )
    rest = some.masks.copy()
    rest[:, [1, 2, 4, 5]] = 255
    same = Annotations.from_masks(rest, images=some.images, raters=some.raters, classes=some.classes)
    np.testing.assert_allclose(model.fuse(swapped), model.fuse(same), atol=1e-6)


def test_saved_with_its_recurrences(model, digits, tmp_path):
    again = load_model(model.save(tmp_path / "m.annotruth"))
    np.testing.assert_array_equal(
        again.predict_proba(digits.images[:2], recurrence=0), model.predict_proba(digits.images[:2], recurrence=0)
    )
    np.testing.assert_array_equal(again.fuse(digits.take([0])), model.fuse(digits.take([0])))


def test_bayes_goes_by_mean_matrices_and_weights_by_those_of_the_patch():
    spec = DataSpec(raters=2, classes=2, channels=1, dims=2)
    labels = torch.randint(0, 2, (1, 2, 8, 8), dtype=torch.uint8)
    images = torch.rand(1, 1, 8, 8)
    for rule, changes in (("bayes", True), ("weights", False)):
        torch.manual_seed(0)
        method = make_method("mrprism", "masks", {"fusion": rule})
        model = method.build(spec).eval()
        before = method.fuse_labels(model, images, labels)
        model.sums.copy_(torch.tensor([[0.9, 0.1], [0.1, 0.9]]))
        model.mass.fill_(1)
        assert torch.allclose(method.fuse_labels(model, images, labels), before) != changes


def test_at_first_the_mask_learns_what_most_said(monkeypatch):
    targets = []
    monkeypatch.setattr(
        "annotruth.methods.multi_rater.mrprism.decided", lambda target: targets.append(target) or decided(target)
    )
    method = make_method("mrprism", "masks")
    model = method.build(DataSpec(raters=3, classes=2, channels=1, dims=2, network=plan_network((8, 8)))).eval()
    labels = torch.randint(0, 2, (2, 3, 8, 8), dtype=torch.uint8)
    batch = Batch(torch.rand(2, 1, 8, 8), labels)
    for progress in (0.1, 0.5):
        method.loss(model, batch, progress)
    vote = labels.float().mean(dim=1)
    torch.testing.assert_close(unpatched(targets[0], (8, 8))[:, 1], vote)
    assert not torch.allclose(unpatched(targets[1], (8, 8))[:, 1], vote)
    assert [method.stages.objective_is_final(model, progress) for progress in (0.5, 0.9)] == [False, True]


def test_each_item_takes_part_in_one_recurrence_and_all_are_taken_alike():
    method = make_method("mrprism", "masks", {"recurrences": 3})
    model = method.build(DataSpec(channels=1, raters=2, classes=2, dims=2))
    labels = torch.zeros(7, 2, 8, 8, dtype=torch.uint8)
    trust, confidence, due = method._begin(model.train(), labels, 4)
    assert sorted(due.count(recurrence) for recurrence in range(3)) == [2, 2, 3]
    assert due == sorted(due)
    shifts = [method._due(2, shift) for shift in (0.1, 0.5, 0.9)]
    assert shifts == [[0, 1], [0, 2], [1, 2]]  # each recurrence as often as the others
    torch.testing.assert_close(trust.mean(dim=1), torch.ones(7))
    assert 0 <= confidence.min() <= confidence.max() <= 1
    trust, confidence, due = method._begin(model.eval(), labels, 4)
    assert (trust == 1).all()
    assert (confidence == 0.5).all()
    assert due == [2] * 7


@pytest.mark.parametrize("options", [
    {"fusion": "weights"}, {"fusion": "literal"}, {"integration": "concat"}, {"integration": "convlstm"},
    {"recurrences": 1}, {"head_loss": "shuffle"}, {"head_loss": "both", "shuffles": 1, "shuffle_weight": 0.1},
    {"slips": 0.5},
])  # fmt: skip
def test_options_train(options):
    torch.manual_seed(0)
    method = make_method("mrprism", "masks", options)
    model = method.build(DataSpec(channels=1, raters=3, classes=3, dims=2))
    labels = torch.randint(0, 3, (3, 3, 9, 10), dtype=torch.uint8)
    labels[0, 1] = 255
    loss, likelihood = method.loss(model, Batch(torch.randn(3, 1, 9, 10), labels), 0.5)
    loss.backward()
    assert torch.isfinite(loss)
    assert likelihood > 0
    assert all(torch.isfinite(w.grad).all() for w in model.parameters() if w.grad is not None)
    assert model.log_truth(torch.randn(1, 1, 9, 10)).shape == (1, 3, 9, 10)


@pytest.mark.parametrize(("options", "words"), [
    ({"recurrences": 0}, "recurrences must be at least 1"), ({"shuffles": 0}, "shuffles must be at least 1"),
    ({"shuffle_weight": -1.0}, "must not be negative"), ({"fusion": "sum"}, "Unknown fusion 'sum'"),
    ({"slips": 0.0}, "slips must lie between 0 and 1"), ({"slips": 1.0}, "slips must lie between 0 and 1"),
    ({"head_loss": "none"}, "Unknown head_loss 'none'"), ({"integration": "none"}, "Unknown integration 'none'"),
])  # fmt: skip
def test_wrong_options_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        make_method("mrprism", "masks", options)


@pytest.mark.parametrize(("call", "words"), [
    (lambda m, a: m.predict_proba(a.images[:1], recurrence=-1), "counted from 0, and the last is 2; not -1"),
    (lambda m, a: m.predict_proba(a.images[:1], confidences=[1] * 7), "7 confidences are given, but .* 6 raters"),
    (lambda m, a: m.predict_proba(a.images[:1], confidences={"eve": 2}), "given for eve, but the model was trained on"),
    (lambda m, a: m.predict_proba(a.images[:1], confidences={"fine": -1}), "0 or more, and not all 0"),
    (lambda m, a: m.predict_proba(a.images[:1], confidences=[0] * 6), "0 or more, and not all 0"),
    (lambda m, a: m.predict_proba(a.images[:1], confidences={"fine": np.nan}), "0 or more, and not all 0"),
    (lambda m, a: m.fuse(_seven(a)), "trained on 6 raters and knows nothing of eve"),
    (lambda m, a: m.fuse(Annotations.from_masks(a.masks[:1], raters=a.raters, classes=a.classes)), "with images="),
])  # fmt: skip
def test_bad_questions_are_refused(model, digits, call, words):
    with pytest.raises(InputError, match=words):
        call(model, digits)


def _seven(annotations: Annotations) -> Annotations:
    masks = np.concatenate([annotations.masks[:1], annotations.masks[:1, :1]], axis=1)
    return Annotations.from_masks(
        masks, images=annotations.images[:1], raters=(*annotations.raters, "eve"), classes=annotations.classes
    )


def test_one_rater_alone_is_refused():
    images, truth, _ = noisy_digits(4)
    alone = Annotations.from_masks(truth[:, None], images=images, raters=["ann"])
    with pytest.raises(InputError, match="there is only ann"):
        Segmenter("mrprism", progress=False).fit(alone)
