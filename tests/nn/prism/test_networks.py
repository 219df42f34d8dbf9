"""The prisms: shapes, and what depends on what."""

from __future__ import annotations

import pytest
import torch

from annotruth.errors import InputError
from annotruth.nn import row_probabilities
from annotruth.nn.prism import attention as prism_attention
from annotruth.nn.prism.attention import attend
from annotruth.nn.prism.networks import INTEGRATIONS, ConP, DivP, PrismEncoder, padded, patched, unpatched


def test_patches_are_neighbouring_pixels():
    picture = torch.arange(64.0).view(1, 1, 8, 8)
    patches = patched(picture)
    torch.testing.assert_close(patches[1, 0], picture[0, 0, :4, 4:].flatten())
    torch.testing.assert_close(unpatched(patches, (8, 8)), picture)


@pytest.mark.parametrize("integration", INTEGRATIONS)
@pytest.mark.parametrize("dims", [2, 3])
def test_the_mask_depends_on_image_and_confidences(integration, dims):
    torch.manual_seed(0)
    size = (8, 12, 8)[:dims]
    encoder, conp = PrismEncoder(2, dims).eval(), ConP(3, classes=4, dims=dims, integration=integration).eval()
    images, confidences = torch.randn(2, 2, *size), torch.rand(2, 3, *size)
    scores = conp(encoder(images), confidences)
    assert scores.shape == (2, 4, *size)
    for other in (conp(encoder(-images), confidences), conp(encoder(images), 1 - confidences)):
        assert not torch.allclose(other, scores)


def test_no_slope_that_is_learnt_can_close_the_last_stage():
    """Where channels are as few as classes, a slope of 0 would bound the probability of a class."""
    conp = ConP(3, classes=2)
    assert not [module for module in conp.out.modules() if isinstance(module, torch.nn.PReLU)]
    assert [module.negative_slope for module in conp.out.modules() if isinstance(module, torch.nn.LeakyReLU)] == [0.25]


def test_an_unknown_integration_lists_the_known_ones():
    with pytest.raises(InputError, match=r"Unknown integration 'sum'. Known: attention, concat, convlstm"):
        ConP(2, 2, integration="sum")


@pytest.mark.parametrize("dims", [2, 3])
def test_divp_begins_with_raters_who_are_right_and_gives_each_a_head(dims, monkeypatch):
    heads = []
    monkeypatch.setattr(prism_attention, "attend", lambda *parts: (heads.append(parts[3]), attend(*parts))[1])
    torch.manual_seed(0)
    divp = DivP(raters=5, classes=3, dims=dims)
    mask = torch.randn(2, 3, *(8, 12, 8)[:dims]).softmax(dim=1)
    scores = divp(mask)
    assert scores.shape == (2, 5, 3, 3, *(2, 3, 2)[:dims])
    matrices = row_probabilities(scores, dim=3)
    assert matrices.diagonal(dim1=2, dim2=3).min() > 0.9
    assert heads[-1] == 5
    scores[:, 2].sum().backward()
    assert divp.weights.grad[2].abs().sum() > 0
    assert divp.weights.grad[[0, 1, 3, 4]].abs().sum() == 0


def test_memory_is_linear_in_pixels(monkeypatch):
    """Places attend within their window: a larger picture has more windows, not larger ones."""
    seen = []

    def watched(query, *others):
        seen.append(tuple(query.shape[:2]))
        return attend(query, *others)

    monkeypatch.setattr(prism_attention, "attend", watched)
    encoder, conp, divp = PrismEncoder(1), ConP(raters=2, classes=2), DivP(raters=2, classes=2)
    for side in (64, 128):
        conp(encoder(torch.rand(1, 1, side, side)), torch.rand(1, 2, side, side))
        divp(torch.rand(1, 2, side, side))
    half = len(seen) // 2
    assert [(4 * windows, places) for windows, places in seen[:half]] == seen[half:]


def test_sides_are_padded_to_the_stride():
    assert padded(torch.zeros(1, 1, 28, 30), 0.0).shape == (1, 1, 28, 32)
    assert padded(torch.zeros(1, 1, 3, 5, 8), 0.0).shape == (1, 1, 8, 8, 8)
    full = torch.zeros(1, 1, 8, 8)
    assert padded(full, 1.0) is full
