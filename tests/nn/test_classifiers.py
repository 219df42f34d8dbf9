"""Networks from items to scores of classes: any size of images, and found by their names."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from annotruth.errors import InputError
from annotruth.nn.classifiers import FEATURE_NETWORKS, IMAGE_NETWORKS, classifier_network, mlp, small_cnn


@pytest.mark.parametrize("name", IMAGE_NETWORKS)
@pytest.mark.parametrize("size", [(1, 1), (5, 8), (32, 32), (3, 4, 7)])
def test_images_of_any_size_have_scores_and_every_weight_a_gradient(name, size):
    torch.manual_seed(0)
    network = classifier_network(name, channels=2, classes=3, dims=len(size))
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


@pytest.mark.parametrize(("dims", "name"), [(0, "mlp"), (2, "cnn"), (3, "cnn")])
def test_without_a_name_the_first_of_its_kind_is_taken(dims, name):
    unnamed, named = (classifier_network(each, channels=3, classes=2, dims=dims) for each in (None, name))
    assert str(unnamed) == str(named)


@pytest.mark.parametrize(
    ("name", "dims", "words"),
    [
        ("mlp", 2, r"mlp does not take images of 2 axes\. Those that do: cnn, resnet"),
        ("cnn", 0, r"cnn does not take feature vectors\. Those that do: mlp, linear"),
        ("transformer", 2, r"Unknown network 'transformer'\. Known: cnn, linear, mlp, resnet"),
    ],
)
def test_networks_that_do_not_fit_are_refused(name, dims, words):
    with pytest.raises(InputError, match=words):
        classifier_network(name, channels=3, classes=2, dims=dims)
