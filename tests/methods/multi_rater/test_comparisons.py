"""The methods MrPrism is compared with on masks: label sampling, several hypotheses, MRNet."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from annotruth import Annotations, Segmenter
from annotruth.errors import InputError
from annotruth.methods import Batch, DataSpec, make_method, methods_for
from annotruth.methods.multi_rater.label_sampling import one_rater_each
from annotruth.methods.multi_rater.multi_hypothesis import mask_losses
from annotruth.simulate import noisy_digits, simulate_masks

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.AnnotruthWarning")
SHAPE = DataSpec(channels=1, raters=3, classes=2, dims=2)


def test_one_implementation_serves_masks_and_label_tables():
    both = {"doctor-net", "crowd-layer", "aggnet", "max-mig"}
    assert both <= set(methods_for("masks")) & set(methods_for("labels"))
    assert {"mrprism", "mrnet", "multi-hypothesis", "label-sampling"} <= set(methods_for("masks"))


def test_label_sampling_draws_evenly_among_those_who_labelled():
    labels = torch.full((400, 3, 2), 255, dtype=torch.uint8)
    labels[:, 0], labels[:, 2, 0] = 0, 1  # the second labelled nothing, the third one pixel
    torch.manual_seed(0)
    drawn = one_rater_each(labels, classes=2)
    assert drawn.shape == (400, 1, 2)
    assert 150 < (drawn[:, 0, 0] == 1).sum() < 250
    assert ((drawn[:, 0, 0] == 0) | (drawn[:, 0, 1] == 255)).all()


def test_label_sampling_is_judged_by_all_labels():
    torch.manual_seed(0)
    method = make_method("label-sampling", "masks")
    parts = method.build(SHAPE).eval()
    batch = Batch(torch.randn(2, 1, 8, 8), torch.randint(0, 2, (2, 3, 8, 8), dtype=torch.uint8))
    everybody = torch.nn.functional.nll_loss(
        parts.log_truth(batch.images).repeat_interleave(3, dim=0), batch.labels.flatten(0, 1).long()
    )
    torch.testing.assert_close(method.loss(parts, batch, 0.5)[1], everybody.detach())


def test_the_closest_hypothesis_learns_most():
    logs = torch.tensor([[[0.9, 0.6], [0.1, 0.4]], [[0.2, 0.3], [0.8, 0.7]]]).log()[None]
    losses, given = mask_losses(logs, torch.tensor([[[0, 0], [1, 255]]], dtype=torch.uint8))
    expected = -np.log([[[0.9 * 0.6, 0.2 * 0.3], [0.1, 0.8]]])
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert given == 3


def test_hypotheses_take_different_ways_where_raters_do():
    """One draws everything, one nothing: hypotheses part, and their mean is even."""
    images = np.random.default_rng(0).normal(size=(24, 1, 8, 8)).astype(np.float32)
    masks = np.zeros((24, 2, 8, 8), dtype=np.uint8)
    masks[:, 0] = 1
    model = Segmenter("multi-hypothesis", hypotheses=2, max_epochs=12, validation=0, progress=False, batch_size=4)
    model.fit(Annotations.from_masks(masks, images=images))
    drawn = model.sample(images[:4], n=2).mean(axis=(2, 3))
    assert (abs(drawn[0] - drawn[1]) > 0.9).all()
    np.testing.assert_allclose(model.predict_proba(images[:4]), 0.5, atol=0.2)


@pytest.mark.parametrize(
    ("options", "words"), [({"hypotheses": 1}, "at least 2"), ({"relaxation": 1.0}, "relaxation is a share")]
)
def test_wrong_options_of_hypotheses(options, words):
    with pytest.raises(InputError, match=words):
        make_method("multi-hypothesis", "masks", options)


def test_mrnet_is_told_whom_to_trust():
    images, truth, _ = noisy_digits(48)
    ann = simulate_masks(truth, ["good", "over", "blank"]).annotations(images=images)
    model = Segmenter("mrnet", max_epochs=5, batch_size=6, validation=0, progress=False).fit(ann)
    drawn = {name: model.predict_proba(images[:8], confidences={name: 3.0})[:, 1].mean() for name in ("over", "blank")}
    assert drawn["over"] > drawn["blank"]
    with pytest.raises(InputError, match="mrnet knows nothing of recurrence="):
        model.predict_proba(images[:1], recurrence=1)


def test_mrnet_learns_where_all_raters_are_thought_to_agree():
    torch.manual_seed(0)
    method = make_method("mrnet", "masks")
    parts = method.build(SHAPE)
    with torch.no_grad():
        parts.truth.each.weight.zero_()
        parts.truth.each.bias.zero_()
    method.loss(parts, Batch(torch.randn(1, 1, 8, 8), torch.ones(1, 3, 8, 8, dtype=torch.uint8)), 0.5)[0].backward()
    assert all(torch.isfinite(weight.grad).all() for weight in parts.truth.parameters())


def test_mrnet_learns_the_weighted_mean_and_every_rater():
    torch.manual_seed(0)
    method = make_method("mrnet", "masks")
    parts = method.build(SHAPE).eval()
    batch = Batch(torch.randn(2, 1, 9, 10), torch.randint(0, 2, (2, 3, 9, 10), dtype=torch.uint8))
    log_truth, log_each = parts.truth(batch.images, torch.ones(2, 3))
    mean = torch.stack([(batch.labels == k).float().mean(dim=1) for k in range(2)], dim=1)
    of_mask = -(mean * log_truth).sum(dim=1).mean()
    of_raters = torch.nn.functional.nll_loss(log_each.flatten(0, 1), batch.labels.flatten(0, 1).long())
    loss, likelihood = method.loss(parts, batch, 0.5)
    torch.testing.assert_close(loss, of_mask + of_raters)
    torch.testing.assert_close(likelihood, of_mask.detach())


@pytest.fixture
def diagnosed() -> tuple[Annotations, dict[str, str]]:
    """Large boxes are ill, small ones healthy; one rater draws what is there, one the same box everywhere."""
    rng = np.random.default_rng(0)
    masks, diagnosis = np.zeros((24, 2, 12, 12), dtype=np.uint8), {}
    for index, item in enumerate(masks):
        side = int(rng.integers(7, 10) if index % 2 else rng.integers(2, 5))
        item[0, 1 : 1 + side, 1 : 1 + side] = 1
        item[1, 3:8, 3:8] = 1
        diagnosis[f"item_{index}"] = "ill" if index % 2 else "healthy"
    images = (masks[:, :1] + rng.normal(0, 0.2, (24, 1, 12, 12))).astype(np.float32)
    items = list(diagnosis)
    return Annotations.from_masks(masks, images=images, raters=["ann", "bob"], items=items), diagnosis


def test_diag_trusts_whom_the_diagnosis_bears_out(diagnosed, tmp_path):
    ann, diagnosis = diagnosed
    file = tmp_path / "diagnosis.json"
    file.write_text(json.dumps(diagnosis))
    for given in (diagnosis, str(file)):
        method = make_method("diag", "masks", {"diagnosis": given})
        method.check(ann)
        parts = method.build(DataSpec(channels=1, raters=2, classes=2, dims=2))
        method.prepare(parts, ann)
        assert parts.weights[0] > 3 * parts.weights[1]
        assert parts.weights.mean() == pytest.approx(1)
    batch = Batch(torch.randn(1, 1, 12, 12), torch.from_numpy(ann.masks[:1]))
    target = (parts.weights[:, None, None] * torch.from_numpy(ann.masks[0])).sum(dim=0) / 2
    log_truth = parts.log_truth(batch.images)[0]
    expected = -(target * log_truth[1] + (1 - target) * log_truth[0]).mean()
    torch.testing.assert_close(method.loss(parts, batch, 0.5)[0], expected)


def test_diag_needs_a_diagnosis_of_every_item(diagnosed):
    ann, diagnosis = diagnosed
    for given, words in (
        (None, "needs diagnosis="), ({"item_0": 1}, "No diagnosis is given for item_1"),
        (dict.fromkeys(diagnosis, "ill"), "the same diagnosis"), ("nowhere.json", "holds no diagnoses"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=words):
            make_method("diag", "masks", {"diagnosis": given}).check(ann)
