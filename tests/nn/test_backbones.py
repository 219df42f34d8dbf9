"""Networks that take images of any size."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotruth.nn import AnySize, pad_end, unet


class Strict(nn.Module):
    """A network that refuses sizes it cannot halve twice, and otherwise gives its input back."""

    def forward(self, images: Tensor) -> Tensor:
        assert all(length % 4 == 0 for length in images.shape[2:])
        self.seen = tuple(images.shape[2:])
        return images


@pytest.mark.parametrize("size", [(8, 8), (1, 1), (5, 8), (7, 11), (4, 4, 4), (1, 2, 3), (5, 4, 9)])
def test_images_of_any_size_come_back_where_they_were(size):
    images, network = torch.randn(2, 3, *size), Strict()
    torch.testing.assert_close(AnySize(network, stride=4)(images), images)
    assert network.seen == tuple(max(8, 4 * math.ceil(length / 4)) for length in size)


@pytest.mark.parametrize(("size", "padding"), [((10, 13), (0, 3, 0, 2)), ((6, 9, 12), (0, 0, 0, 3, 0, 2))])
def test_the_unet_sees_padded_images_and_its_output_is_cropped(size, padding):
    network = unet(2, 3, dims=len(size), width=4).eval()
    images = torch.randn(1, 2, *size)
    with torch.no_grad():
        whole = network(F.pad(images, padding))
        torch.testing.assert_close(network(images), whole[(..., *[slice(length) for length in size])])


def test_one_tiny_image_can_be_trained_on():
    """Batch normalisation needs more than one value at the coarsest resolution."""
    assert unet(1, 2).train()(torch.randn(1, 1, 3, 2)).shape == (1, 2, 3, 2)


def test_depth_and_width():
    shallow, deep = unet(1, 2, width=4, depth=2), unet(1, 2, width=4, depth=4)
    assert (shallow.stride, deep.stride) == (2, 8)
    for network in (shallow, deep):
        assert network(torch.randn(2, 1, 17, 18)).shape == (2, 2, 17, 18)


def test_a_network_that_enlarges_an_image_is_not_cropped_by_mistake():
    """Where nothing is padded nothing is cut, so that an output of the wrong size is seen by whoever checks it."""
    doubled = nn.Upsample(scale_factor=2)
    assert AnySize(doubled, stride=4)(torch.zeros(1, 1, 8, 8)).shape == (1, 1, 16, 16)


@pytest.mark.parametrize("size", [(5,), (3, 4), (2, 5, 3)])
def test_far_ends_are_filled_up(size):
    values = torch.randint(0, 5, (2, *size), dtype=torch.uint8)
    wanted = [length + more for more, length in enumerate(size)]
    padded = pad_end(values, wanted, fill=255)
    assert padded.shape == (2, *wanted)
    assert padded.dtype == torch.uint8
    inside = (slice(None), *[slice(length) for length in size])
    torch.testing.assert_close(padded[inside], values)
    padded[inside] = 255
    assert (padded == 255).all()


def test_what_has_the_size_is_given_back_itself():
    values = torch.zeros(2, 3, 4)
    assert pad_end(values, (3, 4), fill=1.0) is values
