"""Networks from items to scores of classes: any size of images, and found by their names."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from annotruth.errors import InputError
from annotruth.nn.classifiers import (
    FEATURE_NETWORKS,
    IMAGE_NETWORKS,
    classifier_network,
    mlp,
    plan_resnet,
    planned_resnet,
    small_cnn,
)


@pytest.mark.parametrize("name", IMAGE_NETWORKS)
@pytest.mark.parametrize("size", [(1, 1), (5, 8), (32, 32), (3, 4, 7)])
def test_images_of_any_size_have_scores_and_every_weight_a_gradient(name, size):
    torch.manual_seed(0)
    network = classifier_network(name, channels=2, classes=3, dims=len(size), size=size)
    scores = network(torch.randn(4, 2, *size))
    assert scores.shape == (4, 3)
    scores.square().sum().backward()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in network.parameters())


@pytest.mark.parametrize("name", FEATURE_NETWORKS)
def test_features_have_scores(name):
    assert classifier_network(name, channels=5, classes=3, dims=0)(torch.zeros(4, 5)).shape == (4, 3)


def test_the_last_row_of_an_odd_image_is_seen():
    torch.manual_seed(0)
    network = small_cnn(in_channels=1, classes=2, norm=False)
    images = torch.zeros(2, 1, 7, 7)
    images[1, 0, 6, 6] = 100
    blank, marked = network(images)
    assert not torch.allclose(blank, marked)


def test_of_few_features_none_is_dropped():
    assert isinstance(mlp(features=512, classes=2)[0], nn.Dropout)
    assert isinstance(mlp(features=4, classes=2)[0], nn.Linear)


@pytest.mark.parametrize(("dims", "name"), [(0, "mlp"), (2, "resnet"), (3, "resnet")])
def test_without_a_name_the_first_of_its_kind_is_taken(dims, name):
    unnamed, named = (classifier_network(each, channels=3, classes=2, dims=dims) for each in (None, name))
    assert str(unnamed) == str(named)


@pytest.mark.parametrize(
    ("name", "dims", "words"),
    [
        ("mlp", 2, r"mlp does not take images of 2 axes\. Those that do: resnet, cnn"),
        ("monai:DenseNet121", 0, r"monai:DenseNet121 does not take feature vectors\. Those that do: mlp, linear"),
        ("cnn", 0, r"cnn does not take feature vectors\. Those that do: mlp, linear"),
        ("transformer", 2, r"Unknown network 'transformer'\. Known: cnn, linear, mlp, resnet, monai:"),
    ],
)
def test_networks_that_do_not_fit_are_refused(name, dims, words):
    with pytest.raises(InputError, match=words):
        classifier_network(name, channels=3, classes=2, dims=dims)


def test_one_of_monais_networks_is_fitted_to_the_pictures():
    network = classifier_network("monai:resnet10", channels=2, classes=3, dims=2, size=(16, 16))
    assert network(torch.zeros(2, 2, 16, 16)).shape == (2, 3)


@pytest.mark.parametrize(
    ("size", "stride", "smallest"),
    [
        ((1, 1), 1, (1, 1)), ((6, 6), 1, (6, 6)), ((7, 7), 1, (4, 4)), ((8, 8), 1, (4, 4)), ((28, 28), 1, (4, 4)),
        ((32, 32), 1, (4, 4)), ((64, 40), 1, (4, 5)), ((65, 20), 2, (5, 5)), ((224, 224), 4, (4, 4)),
        ((32, 32, 9), 1, (4, 4, 5)), ((33, 8, 8), 2, (5, 4, 4)),
    ],
)  # fmt: skip
def test_pictures_are_halved_until_an_axis_would_fall_under_four_pixels(size, stride, smallest):
    plan = plan_resnet(size)
    assert plan.stem_stride == stride
    seen = []
    network = planned_resnet(1, 2, len(size), size).eval()
    network[-3].register_forward_pre_hook(lambda layer, inputs: seen.append(inputs[0].shape))
    network(torch.zeros(1, 1, *size))
    assert seen == [(1, plan.widths[-1], *smallest)]
    assert all(4 <= length <= 6 for length in smallest) or max(size) < 7


def test_channels_are_doubled_up_to_a_bound_and_two_resolutions_have_blocks():
    assert plan_resnet((64, 64)).widths == (16, 32, 64, 128, 128)
    assert [plan_resnet((side, side)).blocks for side in (4, 8, 16, 32, 64)] == [(0,), (1,), (1, 2), (1, 3), (1, 4)]


def test_a_residual_block_adds_to_what_it_sees():
    network = planned_resnet(1, 2, size=(4, 4)).eval()
    block = network[3]
    for weight in block.body.parameters():
        nn.init.zeros_(weight)
    images = torch.randn(2, 16, 4, 4)
    assert torch.equal(block(images), images)


def test_a_large_picture_is_seen_everywhere():
    network = planned_resnet(1, 2, size=(128, 128)).eval()
    images = torch.zeros(1, 1, 128, 128, requires_grad=True)
    network[0](images).square().sum().backward()
    network[0](images + 1).sum().backward()
    assert (images.grad != 0).all()
