"""The prisms: shapes, and what depends on what."""

from __future__ import annotations

import pytest
import torch

from annotruth.errors import InputError
from annotruth.nn import NetworkPlan, UNetDecoder, UNetEncoder, plan_network, row_probabilities
from annotruth.nn.prism import attention as prism_attention
from annotruth.nn.prism import networks
from annotruth.nn.prism.attention import attend
from annotruth.nn.prism.networks import (
    INTEGRATIONS,
    NORM,
    ConP,
    DivP,
    SeparableStep,
    patched,
    unpatched,
    whole_patches,
)

TWO_STAGES = NetworkPlan("small", widths=(8, 12), strides=((1, 1), (2, 2)), kernels=((3, 3), (3, 3)))
OF_DECODER = ("steps", "heads")
THICK_SLICES = plan_network((16, 16, 8), spacing=(1, 1, 5))


def test_patches_are_neighbouring_pixels():
    picture = torch.arange(64.0).view(1, 1, 8, 8)
    patches = patched(picture)
    torch.testing.assert_close(patches[1, 0], picture[0, 0, :4, 4:].flatten())
    torch.testing.assert_close(unpatched(patches, (8, 8)), picture)


def predicted(encoder, conp, images, confidences):
    return conp(conp.coarse(encoder(images)), confidences)


@pytest.mark.parametrize("integration", INTEGRATIONS)
@pytest.mark.parametrize(
    "plan",
    [
        plan_network((32, 32)).begun_with(4),
        TWO_STAGES,
        plan_network((64, 16), deep_supervision=True),
        plan_network((8, 8, 8), name="residual"),
        THICK_SLICES,
    ],
    ids=["deep, narrow", "two stages", "deep supervision", "residual", "thick slices"],
)
def test_the_mask_depends_on_image_and_confidences(integration, plan):
    torch.manual_seed(0)
    size = [2 * stride for stride in plan.stride]
    encoder, conp = UNetEncoder(2, plan).eval(), ConP(3, classes=4, plan=plan, integration=integration).eval()
    images, confidences = torch.randn(2, 2, *size), torch.rand(2, 3, *size)
    with torch.no_grad():
        scores = predicted(encoder, conp, images, confidences)
        assert scores.shape == (2, 4, *size)
        for other in (-images, confidences), (images, 1 - confidences):
            assert not torch.allclose(predicted(encoder, conp, *other), scores, atol=1e-3)


@pytest.mark.parametrize("integration", INTEGRATIONS)
def test_confidences_that_are_the_same_at_every_pixel_are_not_normalised_away(integration, monkeypatch):
    """Beside a norm of each channel by itself; far from the borders, whose padding tells even this of confidences."""
    plan, images, even = plan_network((16, 16)), torch.randn(1, 1, 96, 96), torch.full((1, 2, 96, 96), 0.5)
    trusting = torch.cat([even[:, :1] * 1.9, even[:, 1:] * 0.1], dim=1)

    def shift(seed):
        """By how much logits differ on average, at most, for trust in one rater and for the same in both."""
        torch.manual_seed(seed)
        encoder, conp = UNetEncoder(1, plan), ConP(2, classes=2, plan=plan, integration=integration)
        middle = [predicted(encoder, conp, images, each)[..., 32:64, 32:64] for each in (even, trusting)]
        return (middle[0] - middle[1]).mean(dim=(2, 3)).abs().max()

    with torch.no_grad():
        ours = sum(shift(seed) for seed in range(4))
        monkeypatch.setattr(networks, "NORM", None)
        assert ours > 2 * sum(shift(seed) for seed in range(4))


def test_with_confidences_that_change_nothing_conp_is_the_decoder_of_a_unet():
    torch.manual_seed(0)
    plan = plan_network((32, 32), deep_supervision=True)
    encoder, conp, decoder = UNetEncoder(1, plan), ConP(3, 2, plan), UNetDecoder(2, plan, NORM)
    decoder.load_state_dict({name: weight for name, weight in conp.state_dict().items() if name.startswith(OF_DECODER)})
    conp.integrations = torch.nn.ModuleList([KeepFeatures(), KeepFeatures()])
    images = torch.randn(2, 1, 32, 64)
    torch.testing.assert_close(predicted(encoder, conp, images, torch.rand(2, 3, 32, 64)), decoder(encoder(images)))


def test_confidences_come_in_at_one_half_and_one_quarter():
    conp, seen = ConP(3, 2, plan_network((64, 64))), []
    conp.integrations = torch.nn.ModuleList([KeepFeatures(seen), KeepFeatures(seen)])
    encoder = UNetEncoder(1, plan_network((64, 64)))
    predicted(encoder, conp, torch.randn(1, 1, 64, 64), torch.rand(1, 3, 64, 64))
    assert [tuple(shape) for shape in seen] == [(1, 64, 16, 16), (1, 32, 32, 32)]
    assert len(ConP(3, 2, TWO_STAGES).integrations) == 1


def test_what_is_coarser_is_not_decoded_again_for_other_confidences():
    plan, calls = plan_network((64, 64)), []
    encoder, conp = UNetEncoder(1, plan), ConP(3, 2, plan)
    for stage, step in enumerate(conp.steps):
        step.register_forward_hook(lambda *_, stage=stage: calls.append(stage))
    features = conp.coarse(encoder(torch.randn(1, 1, 32, 32)))
    for _ in range(2):
        conp(features, torch.rand(1, 3, 32, 32))
    assert calls == [3, 2, 1, 0, 1, 0]


@pytest.mark.parametrize("stride", [(2, 2), (2, 1), (2, 2, 1)])
def test_a_separable_step_is_two_convolutions(stride):
    torch.manual_seed(0)
    step, maps = SeparableStep(3, 5, stride), torch.randn(2, 3, *(8, 6, 4)[: len(stride)])
    torch.testing.assert_close(step(maps), step.point_wise(step.depth_wise(maps)))


def test_an_unknown_integration_lists_the_known_ones():
    with pytest.raises(InputError, match=r"Unknown integration 'sum'. Known: attention, concat, convlstm"):
        ConP(2, 2, TWO_STAGES, integration="sum")


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
    plan = plan_network((64, 64))
    encoder, conp, divp = UNetEncoder(1, plan), ConP(2, 2, plan), DivP(raters=2, classes=2)
    for side in (64, 128):
        predicted(encoder, conp, torch.rand(1, 1, side, side), torch.rand(1, 2, side, side))
        divp(torch.rand(1, 2, side, side))
    half = len(seen) // 2
    assert [(4 * windows, places) for windows, places in seen[:half]] == seen[half:]


def test_sides_are_multiples_of_strides_and_of_patches():
    assert whole_patches(plan_network((64, 64))) == (16, 16)
    assert whole_patches(TWO_STAGES) == (4, 4)
    assert THICK_SLICES.stride == (4, 4, 2)
    assert whole_patches(THICK_SLICES) == (4, 4, 4)


class KeepFeatures(torch.nn.Module):
    """Lets confidences change nothing, and notes what comes in."""

    def __init__(self, seen=None):
        super().__init__()
        self.seen = [] if seen is None else seen

    def forward(self, features, confidences):
        assert features.shape == confidences.shape
        self.seen.append(features.shape)
        return features
