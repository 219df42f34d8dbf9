"""MONAI's networks by name: fitted to the data, of any size where they segment, or refused in words."""

from __future__ import annotations

import pytest
import torch
from monai.networks import nets

from annotruth.errors import InputError
from annotruth.nn import AnySize
from annotruth.nn.monai_networks import monai_network


@pytest.mark.parametrize(
    ("name", "dims", "stride"),
    [
        ("SegResNet", 2, 8), ("SegResNet", 3, 8), ("UNet", 2, 8), ("UNet", 3, 8), ("BasicUNet", 2, 16),
        ("AttentionUnet", 2, 8), ("FlexibleUNet", 2, 32), ("SwinUNETR", 2, 32),
    ],
)  # fmt: skip
def test_segmentation_networks_take_images_of_any_size(name, dims, stride):
    network = monai_network(f"monai:{name}", dims=dims, in_channels=2, out_channels=3)
    assert isinstance(network, AnySize)
    assert isinstance(network.network, getattr(nets, name))
    assert network.stride == stride
    for size in [(5, 7, 3), (19, 34, 17)]:
        images = torch.randn(1, 2, *size[:dims])
        assert network.train()(images).shape == (1, 3, *size[:dims])
        assert network.eval()(images).shape == (1, 3, *size[:dims])


def test_a_network_that_keeps_every_resolution_is_not_wrapped():
    assert isinstance(monai_network("monai:HighResNet", dims=2, in_channels=1, out_channels=2), nets.HighResNet)


@pytest.mark.parametrize(
    ("name", "made", "dims"),
    [
        ("DenseNet121", nets.DenseNet121, 2), ("EfficientNetBN", nets.EfficientNetBN, 2), ("resnet10", nets.ResNet, 2),
        ("resnet10", nets.ResNet, 3), ("SEResNet50", nets.SEResNet50, 2), ("Classifier", nets.Classifier, 2),
    ],
)  # fmt: skip
def test_classification_networks_give_a_score_per_class(name, made, dims):
    size = (32,) * dims
    network = monai_network(f"monai:{name}", dims=dims, in_channels=2, out_channels=3, size=size, task="labels")
    assert isinstance(network, made)
    assert network.eval()(torch.zeros(4, 2, *size)).shape == (4, 3)


def test_weights_depend_on_the_seed_alone_and_trying_leaves_no_trace():
    made = []
    for _ in range(2):
        torch.manual_seed(3)
        made.append(monai_network("monai:UNet", dims=2, in_channels=1, out_channels=2))
        drawn = torch.rand(1)
    torch.manual_seed(3)
    alone = nets.UNet(2, 1, 2, channels=(16, 32, 64, 128), strides=(2, 2, 2))
    assert torch.equal(torch.rand(1), drawn)
    for network in (made[1], AnySize(alone, 8)):
        for name, weight in network.state_dict().items():
            assert torch.equal(weight, made[0].state_dict()[name])
    norms = monai_network("monai:resnet10", dims=2, in_channels=1, out_channels=2, size=(16, 16), task="labels")
    assert norms.state_dict()["bn1.num_batches_tracked"] == 0


def test_nothing_is_downloaded(monkeypatch):
    def refuse(*arguments, **others):
        raise AssertionError("a download")

    monkeypatch.setattr(torch.hub, "load_state_dict_from_url", refuse)
    monkeypatch.setattr("monai.networks.nets.efficientnet.model_zoo.load_url", refuse)
    monai_network("monai:EfficientNetBN", dims=2, in_channels=3, out_channels=2, size=(32, 32), task="labels")


@pytest.mark.parametrize(
    ("name", "task", "words"),
    [
        ("monai:SegResnett", "masks", "MONAI has no network 'SegResnett'.* monai:SegResNet"),
        ("monai:unet", "masks", "MONAI has no network 'unet'.* monai:UNet"),
        ("monai:drop_connect", "masks", "MONAI has no network"),
        ("monai:zzzz", "labels", r"MONAI has no network 'zzzz'\. See monai\.networks\.nets"),
        ("monai:DynUNet", "masks", "DynUNet needs the argument.* kernel_size, upsample_kernel_size.*network=module"),
        ("monai:ViT", "labels", "ViT needs the argument.* patch_size"),
        ("monai:UNet", "labels", r"UNet does not classify images of 32×32 pixels.*gives 3×32×32 numbers"),
        ("monai:DenseNet121", "masks", "DenseNet121 does not segment images"),
        ("monai:SegResNetVAE", "masks", "SegResNetVAE gives a tuple, not class scores alone"),
        ("monai:ResNetFeatures", "labels", r"MONAI cannot build ResNetFeatures\(.*network=module"),
    ],
)
def test_networks_that_cannot_do_it_are_refused_in_words(name, task, words):
    with pytest.raises(InputError, match=words):
        monai_network(name, dims=2, in_channels=1, out_channels=3, size=(32, 32), task=task)


def test_pictures_too_small_for_a_network_are_named():
    with pytest.raises(InputError, match=r"DenseNet121 does not classify images of 8×8 pixels.* larger images"):
        monai_network("monai:DenseNet121", dims=2, in_channels=1, out_channels=3, size=(8, 8), task="labels")


def test_a_network_for_one_size_needs_to_know_it():
    with pytest.raises(InputError, match="UNETR is built for images of one size; these differ"):
        monai_network("monai:UNETR", dims=2, in_channels=1, out_channels=3)


def test_a_network_of_one_size_is_built_for_whole_strides(monkeypatch):
    class Fixed(torch.nn.Module):
        def __init__(self, in_channels: int, out_channels: int, img_size: tuple[int, ...]) -> None:
            super().__init__()
            self.size = img_size
            self.layer = torch.nn.Conv2d(in_channels, out_channels, 1)

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            assert images.shape[2:] == self.size
            assert all(length % 8 == 0 for length in self.size)
            return self.layer(images)

    monkeypatch.setattr(nets, "Fixed", Fixed, raising=False)
    network = monai_network("monai:Fixed", dims=2, in_channels=1, out_channels=3, size=(30, 21))
    assert network(torch.zeros(2, 1, 30, 21)).shape == (2, 3, 30, 21)
