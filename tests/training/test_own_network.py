"""A network of the user's own: any module from images to class scores."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch import nn

from annotruth import Segmenter, load_model
from annotruth.errors import InputError, SmallImageWarning
from annotruth.training.module import MethodModule

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")


def pointwise(channels: int = 1, classes: int = 2) -> nn.Module:
    """A network that sees one pixel at a time."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(channels, 4, 1), nn.ReLU(), nn.Conv2d(4, classes, 1))


class FixedSize(nn.Module):
    """A network for images of one size only."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side
        self.scores = nn.Linear(side**2, 2 * side**2)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.scores(images.flatten(1)).view(-1, 2, self.side, self.side)


class Tied(nn.Module):
    """A network with one set of weights under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(2, 2, 1)
        self.second = nn.Conv2d(2, 2, 1)
        self.second.weight = self.first.weight

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(images.expand(-1, 2, *images.shape[2:])))


@pytest.mark.parametrize("make", [pointwise, lambda: FixedSize(12), Tied])
@pytest.mark.parametrize("method", ["mean", "pixel-cm"])
def test_trained_saved_and_loaded(cases, tiny, tmp_path, make, method):
    network = make()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    model = tiny(method, network=network, max_epochs=1).fit(cases)
    learnt = model.module_.truth.state_dict()
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    assert not all(torch.equal(before[name], value) for name, value in learnt.items())
    assert model.settings_["network"] == "own"
    path = model.save(tmp_path / "model.annotruth")
    with pytest.raises(InputError, match="your own network; pass it again"):
        load_model(path)
    again = load_model(path, network=make())
    np.testing.assert_array_equal(again.predict_proba(cases.images), model.predict_proba(cases.images))


def test_fitting_again_starts_from_the_network_given(cases, tiny, weights, same):
    model = tiny(network=pointwise())
    assert same(weights(model.fit(cases)), weights(model.fit(cases)))


def test_dropout_repeats_and_resumes_bit_for_bit(cases, tiny, weights, same, tmp_path):
    """What a network draws at random depends on the seed and the epoch, not on what the user drew before."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(1, 8, 1), nn.Dropout(0.5), nn.Conv2d(8, 2, 1))
    whole = weights(tiny(network=network, max_epochs=3).fit(cases))
    torch.manual_seed(5)
    assert same(weights(tiny(network=network, max_epochs=3).fit(cases)), whole)
    with pytest.MonkeyPatch.context() as patch:
        start = MethodModule.on_train_epoch_start
        patch.setattr(MethodModule, "on_train_epoch_start", lambda self: 1 / (self.current_epoch != 2) and start(self))
        with pytest.raises(ZeroDivisionError):
            tiny(network=network, max_epochs=3).fit(cases, run_folder=tmp_path)
    torch.manual_seed(6)
    assert same(weights(tiny(network=network, max_epochs=3).fit(cases, run_folder=tmp_path, resume=True)), whole)


def test_another_network_does_not_fit_the_file(cases, tiny, tmp_path):
    path = tiny(network=pointwise(), max_epochs=1).fit(cases).save(tmp_path / "model.annotruth")
    with pytest.raises(InputError, match="does not fit this network"):
        load_model(path, network=FixedSize(12))


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (pointwise(classes=3), r"\(2, 1, 12, 12\) into \(2, 3, 12, 12\).*\(2, 2, 12, 12\) are needed"),
        (nn.Conv2d(1, 2, 3), r"into \(2, 2, 10, 10\)"),
        (pointwise(channels=3), r"network fails on images of shape \(2, 1, 12, 12\): .*3 channels"),
        (nn.Flatten(), r"into \(2, 144\)"),
    ],
)
def test_wrong_outputs_are_refused_before_training(cases, tiny, tmp_path, network, words):
    with pytest.raises(InputError, match=words):
        tiny(network=network).fit(cases, run_folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_sliding_window_covers_the_whole_image(make_cases, tiny):
    """What a pixel-wise network says of a pixel does not depend on the window it lies in."""
    annotations = make_cases(8, (20, 21))
    model = tiny(network=pointwise(), patch_size=(8, 6)).fit(annotations)
    images = annotations.images
    windows = model.predict_proba(images)
    assert windows.shape == (8, 2, 20, 21)
    model._patch = None
    np.testing.assert_allclose(windows, model.predict_proba(images), atol=1e-5)


@pytest.mark.parametrize(("shape", "patch"), [((20, 21), (8, 8)), ((9, 20), (9, 8)), ((9, 10, 11), (8, 8, 8))])
@pytest.mark.parametrize("method", ["mean", "pixel-cm"])
def test_patches_train_and_windows_predict(make_cases, method, shape, patch):
    annotations = make_cases(6, shape)
    model = Segmenter(method, patch_size=patch, max_epochs=1, batch_size=4, augment=True, progress=False)
    probabilities = model.fit(annotations).predict_proba(annotations.images[:2])
    assert probabilities.shape == (2, 2, *shape)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    assert model.settings_["patch_size"] == list(patch)


def test_large_images_are_cut_into_patches_by_themselves(make_cases, tiny):
    model = tiny(max_epochs=1, batch_size=None).fit(make_cases(2, (520, 20)))
    assert model.settings_["patch_size"] == [256, 20]
    assert model.settings_["batch_size"] == 1


def test_networks_of_the_user_are_not_spoken_for(make_cases, tiny):
    with warnings.catch_warnings():
        warnings.simplefilter("error", SmallImageWarning)
        tiny(network=nn.Conv2d(1, 2, 1), max_epochs=1).fit(make_cases(4, (5, 5)))


def test_a_model_loaded_around_another_network(cases, tiny, tmp_path):
    model = tiny(network=nn.Conv2d(1, 2, 3, padding=1), max_epochs=1).fit(cases)
    path = model.save(tmp_path / "m.annotruth")
    with pytest.raises(InputError, match=r"m\.annotruth does not fit .*of another shape: truth\.bias, truth\.weight"):
        load_model(path, nn.Conv2d(1, 3, 3, padding=1))
    with pytest.raises(InputError, match=r"missing: truth\.0\.bias, truth\.0\.weight; unknown: truth\.bias"):
        Segmenter.load(path, nn.Sequential(nn.Conv2d(1, 2, 3, padding=1)))
