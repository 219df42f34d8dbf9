"""Networks compute in bfloat16 only while they are trained, and only where that was asked for."""

from __future__ import annotations

import pytest
import torch

from annotruth.errors import InputError
from annotruth.nn import plan_network, unet
from annotruth.nn.backbones import AnySize, UNetEncoder
from annotruth.nn.classifiers import planned_resnet
from annotruth.nn.precision import PRECISIONS, is_quick, training_precision


def _seen(network, images):
    """In which types convolutions computed."""
    types = set()
    hooks = [
        layer.register_forward_hook(lambda module, given, output: types.add(output.dtype))
        for layer in network.modules()
        if isinstance(layer, (torch.nn.Conv2d, torch.nn.Conv3d))
    ]
    output = network(images)
    for hook in hooks:
        hook.remove()
    return types, output


NETWORKS = {
    "2D": (unet(1, 3, 2, plan_network((16, 16))), torch.randn(2, 1, 16, 16)),
    "padded": (unet(1, 3, 2, plan_network((16, 16))), torch.randn(2, 1, 13, 15)),
    "3D": (unet(1, 2, 3, plan_network((8, 8, 8))), torch.randn(2, 1, 8, 8, 8)),
    "pictures": (planned_resnet(3, 4, size=(16, 16)), torch.randn(4, 3, 16, 16)),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_convolutions_have_16_bits_and_all_else_32(name):
    network, images = NETWORKS[name]
    network.train()
    with training_precision("mixed"):
        types, output = _seen(network, images)
        output.square().mean().backward()
    assert types == {torch.bfloat16}
    assert output.dtype == torch.float32
    assert {weight.grad.dtype for weight in network.parameters()} == {torch.float32}
    full = network(images)
    assert (output - full).abs().max() < 0.1 * full.abs().max()


def test_a_network_of_ones_own_has_32_bits():
    network, images = AnySize(torch.nn.Conv2d(1, 2, 3, padding=1), stride=2), torch.randn(1, 1, 5, 5)
    with training_precision("mixed"):
        assert _seen(network, images)[0] == {torch.float32}


def test_features_of_an_encoder_have_32_bits():
    with training_precision("mixed"):
        features = UNetEncoder(1, plan_network((16, 16)))(torch.randn(1, 1, 16, 16))
    assert {each.dtype for each in features} == {torch.float32}


@pytest.mark.parametrize("what", ["full", "outside", "evaluated", "without gradient"])
def test_otherwise_everything_has_32_bits(what):
    network, images = NETWORKS["2D"]
    network.train(what != "evaluated")
    with training_precision("full" if what == "full" else "mixed"):
        if what == "without gradient":
            with torch.no_grad():
                types, _ = _seen(network, images)
        elif what != "outside":
            types, _ = _seen(network, images)
    if what == "outside":
        types, _ = _seen(network, images)
    assert types == {torch.float32}


def test_auto_asks_the_device(monkeypatch):
    network, images = NETWORKS["2D"]
    network.train()
    for quick, expected in ((False, torch.float32), (True, torch.bfloat16)):
        monkeypatch.setattr("annotruth.nn.precision.is_quick", lambda device, quick=quick: quick)
        with training_precision("auto"):
            assert _seen(network, images)[0] == {expected}
    assert isinstance(is_quick("cpu"), bool)
    assert not is_quick("mps")


def test_words_that_are_none_are_refused():
    with pytest.raises(InputError, match="precision"), training_precision("half"):
        pass
    assert PRECISIONS[0] == "auto"
