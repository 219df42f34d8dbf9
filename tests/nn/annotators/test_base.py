"""What all annotator models have in common: the start, what they learn, and matrices of all raters or of some."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from annotruth.errors import InputError
from annotruth.nn import (
    AnnotatorModel,
    Confusion,
    FeatureAnnotators,
    FeaturePixelAnnotators,
    GlobalAnnotators,
    GlobalConfusion,
    GlobalLowRankAnnotators,
    IdentityAnnotators,
    KnownAnnotators,
    LowRankAnnotators,
    PixelAnnotators,
    PixelHeads,
    check_annotator_model,
    noisy_label_loss,
)

RATERS, CHANNELS = 5, 2
OF_PIXELS = {
    "pixel": lambda classes, dims: PixelAnnotators(CHANNELS, RATERS, classes, dims=dims),
    "heads": lambda classes, dims: PixelHeads(CHANNELS, RATERS, classes),
    "low rank": lambda classes, dims: LowRankAnnotators(CHANNELS, RATERS, classes, dims=dims, rank=2),
    "pixel, by features": lambda classes, dims: FeaturePixelAnnotators(CHANNELS, RATERS, classes, 3, dims=dims),
}
OF_RATERS = {
    "identity": lambda classes, dims: IdentityAnnotators(RATERS, classes),
    "global": lambda classes, dims: GlobalAnnotators(RATERS, classes),
    "known": lambda classes, dims: KnownAnnotators(RATERS, classes),
    "global low rank": lambda classes, dims: GlobalLowRankAnnotators(RATERS, classes, rank=2),
    "by features": lambda classes, dims: FeatureAnnotators(RATERS, classes, 3),
}
MODELS = OF_PIXELS | OF_RATERS


def different_raters(name: str, classes: int, dims: int) -> AnnotatorModel:
    """A model in which no two raters are alike."""
    torch.manual_seed(0)
    model = MODELS[name](classes, dims).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        if name == "known":
            model.matrices.copy_(torch.rand(RATERS, classes, classes).softmax(dim=2))
        if "features" in name:
            model.table.know(torch.randn(RATERS, 3), torch.ones(RATERS))
    return model


def gradients(model: nn.Module, confusion: Confusion, log_truth: Tensor, labels: Tensor) -> list[Tensor]:
    model.zero_grad()
    loss, _ = noisy_label_loss(log_truth, confusion, labels, trace_weight=0.1)
    if loss.requires_grad:
        loss.backward()
    found = [part.grad for part in model.parameters() if part.grad is not None]
    return [gradient.to_dense() if gradient.is_sparse else gradient.clone() for gradient in found]


@pytest.mark.parametrize("size", [(16, 12), (9, 14), (4, 6, 5)])
@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("name", MODELS)
def test_all_raters_start_faithful_everywhere(name, size, classes):
    torch.manual_seed(0)
    matrices = MODELS[name](classes, len(size))(torch.randn(2, CHANNELS, *size)).dense().detach()
    assert matrices.shape[1:4] == (RATERS, classes, classes)
    if name in OF_PIXELS:
        assert matrices.shape == (2, RATERS, classes, classes, *size)
    diagonal = matrices.diagonal(dim1=2, dim2=3)
    assert diagonal.min() > (0.95 if classes == 2 else 0.9)
    torch.testing.assert_close(matrices.sum(dim=3), torch.ones_like(matrices.sum(dim=3)))


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("identity", "known")])
def test_a_rater_who_always_says_background_is_found_out(name):
    torch.manual_seed(1)
    truth = (torch.rand(4, 8, 8) > 0.5).to(torch.uint8)
    images = truth.unsqueeze(1) + 0.1 * torch.randn(4, CHANNELS, 8, 8)
    labels = torch.stack([truth] * (RATERS - 1) + [torch.zeros_like(truth)], dim=1)
    log_truth = torch.where(torch.stack([truth == 0, truth == 1], dim=1), 0.99, 0.01).log()
    torch.manual_seed(0)
    model = MODELS[name](2, 2)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.2)
    for _ in range(40):
        optimiser.zero_grad()
        noisy_label_loss(log_truth, model(images), labels)[0].backward()
        optimiser.step()
    rows, weight = model(images).mean_rows(log_truth.exp())
    mean = (rows.sum(dim=0) / weight.sum(dim=0)).detach()
    assert mean[0].diagonal().min() > 0.9
    assert mean[-1, 1, 0] > 0.9


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("size", [(9, 10), (5, 4, 6)])
@pytest.mark.parametrize("some", [[3, 0], [1], [4, 3, 2, 1, 0]])
@pytest.mark.parametrize("name", MODELS)
def test_matrices_of_some_raters_are_theirs_among_all(name, some, size, classes):
    model, images = different_raters(name, classes, len(size)), torch.randn(2, CHANNELS, *size)
    everybody = model(images).dense()
    assert everybody.shape[1] == RATERS
    torch.testing.assert_close(model(images, torch.tensor(some)).dense(), everybody[:, some])


@pytest.mark.parametrize("name", MODELS)
def test_learning_from_some_raters_is_learning_from_all_of_whom_the_others_said_nothing(name):
    model, some = different_raters(name, 3, 2), [3, 0]
    images, log_truth = torch.randn(2, CHANNELS, 9, 10), torch.randn(2, 3, 9, 10).log_softmax(dim=1)
    labels = torch.full((2, RATERS, 9, 10), 255, dtype=torch.uint8)
    labels[:, some] = torch.randint(0, 3, (2, 2, 9, 10), dtype=torch.uint8)
    labels[0, 3, :4] = 255
    of_all = gradients(model, model(images), log_truth, labels)
    of_some = gradients(model, model(images, torch.tensor(some)), log_truth, labels[:, some])
    assert len(of_all) == len(list(model.parameters()))
    torch.testing.assert_close(of_some, of_all, atol=1e-6, rtol=1e-4)


def test_a_low_rank_model_learns_from_some_raters_in_blocks_of_pixels(monkeypatch):
    """What a block computes is computed once more for its gradients, which must reach the raters' own rows."""
    model, images = different_raters("low rank", 3, 2), torch.randn(2, CHANNELS, 9, 10)
    log_truth, labels = torch.randn(2, 3, 9, 10).log_softmax(dim=1), torch.zeros(2, 2, 9, 10, dtype=torch.uint8)
    raters = torch.tensor([4, 1])
    at_once = gradients(model, model(images, raters), log_truth, labels)
    monkeypatch.setattr("annotruth.nn.confusion.base._BLOCK_SIZE_ON_CPU", 60)
    torch.testing.assert_close(gradients(model, model(images, raters), log_truth, labels), at_once)


@pytest.mark.parametrize("name", MODELS)
def test_our_own_models_pass(name):
    model = MODELS[name](2, 2)
    assert isinstance(model, AnnotatorModel)
    check_annotator_model(model)


class Fixed(nn.Module):
    """No annotator model by descent, but by what it takes."""

    def forward(self, images, raters=None):
        matrices = torch.eye(2).expand(3, 2, 2)
        return GlobalConfusion(matrices if raters is None else matrices[raters])


class PassedOn(nn.Module):
    def forward(self, *args, **kwargs):
        return Fixed()(*args, **kwargs)


@pytest.mark.parametrize("model", [Fixed(), PassedOn()])
def test_any_module_that_takes_raters_passes(model):
    check_annotator_model(model)


class ImagesOnly(nn.Module):
    def forward(self, images: Tensor) -> Confusion:
        return Fixed()(images)


class Required(nn.Module):
    def forward(self, images, raters):
        return Fixed()(images, raters)


class OtherName(nn.Module):
    def forward(self, images, who=None):
        return Fixed()(images, who)


class InThirdPlace(nn.Module):
    def forward(self, images, mask=None, raters=None):
        return Fixed()(images, raters)


class ByNameOnly(nn.Module):
    def forward(self, images, *, raters=None):
        return Fixed()(images, raters)


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        (ImagesOnly(), r"\(images: 'Tensor'\)"),
        (Required(), r"\(images, raters\)"),
        (OtherName(), r"\(images, who=None\)"),
        (InThirdPlace(), r"\(images, mask=None, raters=None\)"),
        (ByNameOnly(), r"\(images, \*, raters=None\)"),
        (nn.Module(), r"\(\*input.*\)"),
    ],
)
def test_a_module_that_cannot_be_asked_for_some_raters_is_told_what_to_add(model, takes):
    name = type(model).__name__
    with pytest.raises(
        InputError, match=rf"^{name} is no annotator model: its forward takes {takes}, but must"
    ) as info:
        check_annotator_model(model)
    for needed in ("raters: Tensor | None = None", "matrices if raters is None else matrices[raters]"):
        assert needed in str(info.value)
