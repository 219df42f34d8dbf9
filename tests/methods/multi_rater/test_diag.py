"""diag: raters weighed by a diagnosis that is known of each item."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from annotruth import Annotations
from annotruth.errors import InputError
from annotruth.methods import Batch, DataSpec, make_method


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
        model = method.build(DataSpec(channels=1, raters=2, classes=2, dims=2))
        method.prepare(model, ann)
        assert model.weights[0] > 3 * model.weights[1]
        assert model.weights.mean() == pytest.approx(1)
    batch = Batch(torch.randn(1, 1, 12, 12), torch.from_numpy(ann.masks[:1]))
    target = (model.weights[:, None, None] * torch.from_numpy(ann.masks[0])).sum(dim=0) / 2
    log_truth = model.log_truth(batch.images)[0]
    expected = -(target * log_truth[1] + (1 - target) * log_truth[0]).mean()
    torch.testing.assert_close(method.loss(model, batch, 0.5)[0], expected)


def test_labels_at_hand_are_fused_by_the_same_weights(diagnosed):
    ann, diagnosis = diagnosed
    method = make_method("diag", "masks", {"diagnosis": diagnosis})
    model = method.build(DataSpec(channels=1, raters=2, classes=2, dims=2)).eval()
    method.prepare(model, ann)
    labels = torch.from_numpy(ann.masks[1:3].copy())
    labels[0, :, :2] = 255
    images = torch.from_numpy(ann.images[1:3])
    share = model.weights / model.weights.sum()
    fused = method.fuse_labels(model, images, labels)
    torch.testing.assert_close(fused[1, 1], share[0] * labels[1, 0] + share[1] * labels[1, 1])
    torch.testing.assert_close(fused[0, :, :2], model.log_truth(images)[0, :, :2].exp())  # where nobody labelled
    trusted = method.rater_confidences(model, images, 2)
    assert trusted.shape == (2, 2, 12, 12)
    assert trusted[0, 0, 0, 0] == 1
    assert trusted[0, 1, 0, 0] == pytest.approx((share[1] / share[0]).item())


def test_diag_needs_a_diagnosis_of_every_item(diagnosed):
    ann, diagnosis = diagnosed
    for given, words in (
        (None, "needs diagnosis="), ({"item_0": 1}, "No diagnosis is given for item_1"),
        (dict.fromkeys(diagnosis, "ill"), "the same diagnosis"), ("nowhere.json", "holds no diagnoses"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=words) as refused:
            make_method("diag", "masks", {"diagnosis": given}).check(ann)
        assert "mrprism" in str(refused.value) or given == "nowhere.json"  # names one that needs none
