"""Networks that take images of any size."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from monai.networks.nets import DynUNet
from torch import Tensor, nn

from annotruth.nn import AnySize, pad_end, plan_network, unet
from annotruth.nn.backbones import UNet


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
    network = unet(2, 3, plan=plan_network([16] * len(size)), width=4).eval()
    images = torch.randn(1, 2, *size)
    with torch.no_grad():
        whole = network(F.pad(images, padding))
        torch.testing.assert_close(network(images), whole[(..., *[slice(length) for length in size])])


def test_one_tiny_image_can_be_trained_on():
    """Norms need more than one value at the coarsest resolution."""
    assert unet(1, 2).train()(torch.randn(1, 1, 3, 2)).shape == (1, 2, 3, 2)


@pytest.mark.parametrize(("size", "stride"), [((8, 8), (2, 2)), ((64, 16), (16, 4)), ((16, 8, 4), (4, 2, 1))])
def test_the_plan_says_how_coarse_the_network_becomes(size, stride):
    network = unet(1, 2, plan=plan_network(size), width=4)
    assert network.stride == stride
    odd = [length + 1 for length in size]
    assert network(torch.randn(2, 1, *odd)).shape == (2, 2, *odd)


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("size", [(32, 32), (16, 16, 8)])
def test_the_unet_computes_what_monais_dynunet_does(size, residual):
    """With the same weights, block by block. (Along thick axes, MONAI's decoder has the kernels of the stage below.)"""
    plan = replace(plan_network(size).begun_with(4), residual=residual)
    ours = UNet(2, 3, plan).eval()
    theirs = DynUNet(
        plan.dims, 2, 3, plan.kernels, plan.strides, plan.strides[1:], plan.widths,
        norm_name=("instance", {"affine": True}), res_block=residual, trans_bias=False,
    ).eval()  # fmt: skip
    if residual:  # MONAI's decoder has plain blocks in either case
        assert any("conv3" in name for name in ours.encoder.state_dict())
    own = list(ours.encoder.stages) + list(reversed(ours.decoder.steps)) + [ours.decoder.heads[0]]
    other = [theirs.input_block, *theirs.downsamples, theirs.bottleneck, *theirs.upsamples, theirs.output_block]
    for mine, its in zip(own, other, strict=True):
        its.load_state_dict(mine.state_dict())
    images = torch.randn(2, 2, *size)
    with torch.no_grad():
        torch.testing.assert_close(ours(images), theirs(images))


def test_deep_supervision_adds_up_the_scores_of_coarser_stages():
    plan = replace(plan_network((32, 32)).begun_with(4), deep_supervision=True)
    network = UNet(1, 2, plan).eval()
    assert len(network.decoder.heads) == len(plan.widths) - 2  # but the coarsest of the decoder, and the encoder's
    images = torch.randn(1, 1, 32, 32)
    with torch.no_grad():
        together = network(images)
        coarse = network.decoder.heads[1:]
        for head in coarse:
            nn.init.zeros_(head.conv.conv.weight)
            nn.init.ones_(head.conv.conv.bias)
        finest = network(images)
        assert not torch.allclose(together, finest)
        for head in coarse:
            nn.init.zeros_(head.conv.conv.bias)
        torch.testing.assert_close(network(images) + len(coarse), finest)


def test_every_stage_learns():
    network = unet(1, 2, plan=plan_network((16, 16)), width=4)
    network(torch.randn(2, 1, 16, 16)).square().mean().backward()
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in network.parameters())


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
