"""pixel-cm: truth and errors may share features."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from annotruth import Segmenter, load_model
from annotruth.errors import InputError
from annotruth.methods import Batch, DataSpec, make_method
from annotruth.metrics import dice
from annotruth.nn import NetworkPlan
from annotruth.simulate import noisy_digits, simulate_masks

SHALLOW = NetworkPlan("small", widths=(8, 16), strides=((1, 1), (2, 2)), kernels=((3, 3), (3, 3)))


@pytest.mark.parametrize("features", ["encoder", "shared"])
@pytest.mark.parametrize("dims", [2, 3])
def test_truth_and_errors_may_share_features(dims, features):
    method = make_method("pixel-cm", "masks", {"features": features})
    model = method.build(DataSpec(1, 3, 2, dims))
    model.joint_from.fill_(0.3)
    images, labels = torch.rand(2, 1, *[8] * dims), torch.randint(0, 2, (2, 3, *[8] * dims), dtype=torch.uint8)
    loss, _ = method.loss(model, Batch(images, labels), progress=0.9)
    loss.backward()
    assert all(weight.grad is not None for weight in model.parameters())
    assert method.confusion(model, images).dense().shape == (2, 3, 2, 2, *[8] * dims)
    with pytest.raises(InputError, match=f"features='{features}' works only with annotruth's own network"):
        method.build(DataSpec(1, 3, 2, dims), torch.nn.Identity())


def built(features):
    torch.manual_seed(0)
    method = make_method("pixel-cm", "masks", {"features": features, "warmup": 0.4})
    model = method.build(DataSpec(1, 3, 2, dims=2, network=SHALLOW))
    return method, model, Batch(torch.rand(2, 1, 7, 10), torch.randint(0, 2, (2, 3, 7, 10), dtype=torch.uint8))


def test_errors_teach_the_encoder_but_not_the_truths_decoder():
    _, model, batch = built("encoder")
    model.annotators.heads.linear.weight.data.normal_()
    model.confusion(batch.images).dense()[:, 0, 0, 0].sum().backward()
    assert all(weight.grad.abs().sum() > 0 for weight in model.truth.network.encoder.parameters() if weight.ndim > 1)
    assert all(weight.grad is None for weight in model.truth.network.decoder.parameters())
    assert all(weight.grad is not None for weight in model.annotators.parameters())


@pytest.mark.parametrize("features", ["own", "encoder", "shared"])
def test_truth_and_errors_together_are_those_asked_for_one_by_one(features):
    _, model, batch = built(features)
    some = batch._replace(raters=torch.tensor([2, 0]))
    log_truth, confusion = model.truth_and_confusion(some)
    torch.testing.assert_close(log_truth, model.log_truth(batch.images))
    torch.testing.assert_close(confusion().dense(), model.confusion(batch.images).dense()[:, [2, 0]])


@pytest.mark.parametrize("features", ["encoder", "shared"])
def test_what_is_shared_is_computed_once_in_a_step(features):
    method, model, batch = built(features)
    model.joint_from.fill_(0.3)
    shared, calls = model.truth.network.encoder if features == "encoder" else model.truth[0], []
    shared.register_forward_hook(lambda *_: calls.append(1))
    method.loss(model, batch, progress=0.9)
    assert len(calls) == 1


@pytest.mark.filterwarnings("ignore::annotruth.errors.AnnotruthWarning")
def test_a_shared_encoder_finds_truth_and_raters_and_is_saved(tmp_path):
    images, truth, _ = noisy_digits(64)
    ann = simulate_masks(truth, ["good", "over", "blank"]).annotations(images=images)
    model = Segmenter("pixel-cm", features="encoder", max_epochs=12, batch_size=8, validation=0, progress=False).fit(
        ann
    )
    assert dice(model.predict(images), truth) > 0.8
    skills = {name: annotator.skill for name, annotator in model.annotators_.items()}
    assert skills["good"] > max(skills["over"], skills["blank"])
    again = load_model(model.save(tmp_path / "m.annotruth"))
    np.testing.assert_array_equal(again.predict_proba(images[:2]), model.predict_proba(images[:2]))
    np.testing.assert_array_equal(again.confusion_maps(images[0]), model.confusion_maps(images[0]))
