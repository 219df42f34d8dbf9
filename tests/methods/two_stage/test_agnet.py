"""agnet: every stage of the decoder learns the vote, guided by the stage above it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from annotruth.methods import Batch, DataSpec, make_method
from annotruth.nn import plan_network, unet

PLAN = plan_network((16, 16))
SPEC = DataSpec(channels=1, raters=3, classes=2, dims=2, network=PLAN)


@pytest.fixture
def batch() -> Batch:
    torch.manual_seed(0)
    labels = torch.randint(0, 2, (2, 1, 13, 18), dtype=torch.uint8)
    labels[0, 0, :3] = 255
    return Batch(torch.rand(2, 1, 13, 18), labels)


def test_the_mean_of_all_stages_is_the_truth_and_all_of_them_learn_the_vote(batch):
    method = make_method("agnet", "masks")
    model = method.build(SPEC).eval()
    scores = model.truth(batch.images)
    assert scores.shape == (2, len(PLAN.widths) - 1, 2, 13, 18)
    truth = scores.mean(dim=1).softmax(dim=1)
    torch.testing.assert_close(model.log_truth(batch.images).exp(), truth)
    vote = batch.labels[:, 0]
    known = vote != 255
    target = vote[known].long()

    def entropy(logits):
        return nn.functional.cross_entropy(logits.movedim(1, -1)[known], target)

    inside = truth[:, 1][known]
    overlap = (2 * (inside * target).sum() + 1) / (inside.sum() + target.sum() + 1)
    sides = torch.stack([entropy(side) for side in scores.unbind(dim=1)]).mean()
    loss, likelihood = method.loss(model, batch, 0.5)
    torch.testing.assert_close(loss, entropy(scores.mean(dim=1)) + 1 - overlap + sides)
    torch.testing.assert_close(likelihood, entropy(scores.mean(dim=1)))


def test_its_encoder_is_the_one_that_other_methods_have():
    shapes = [
        {name: weight.shape for name, weight in encoder.state_dict().items()}
        for encoder in (make_method("agnet", "masks").build(SPEC).truth.unet.network.encoder,
                        unet(1, 2, 2, PLAN).network.encoder)
    ]  # fmt: skip
    assert shapes[0] == shapes[1]


def test_the_image_is_seen_at_every_scale(batch):
    """What a coarse stage is given of the image does not come through the stages before it alone."""
    network = make_method("agnet", "masks").build(SPEC).eval().truth.unet.network
    images = torch.rand(1, 1, 16, 16)
    with torch.no_grad():
        before = network(images)
        for scale in network.scales:
            scale.weight.zero_()
            scale.bias.zero_()
    assert len(network.scales) == len(PLAN.widths) - 1
    assert not torch.allclose(network(images), before)


def test_a_network_of_ones_own_adds_its_scores_to_the_image(batch):
    own = nn.Conv2d(1, 2, 3, padding=1)
    model = make_method("agnet", "masks").build(SPEC, own)
    assert model.truth.unet.network.encoder.stages[0].conv1.conv.in_channels == 3
    assert model.log_truth(batch.images).shape == (2, 2, 13, 18)
