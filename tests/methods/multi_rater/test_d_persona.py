"""d-persona: its losses against PyTorch's, what the second stage teaches, and what each rater would draw."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.distributions import MultivariateNormal, kl_divergence

from annotruth import Annotations
from annotruth.errors import InputError
from annotruth.methods import Batch, DataSpec, make_method
from annotruth.methods.multi_rater.d_persona import bound_loss
from annotruth.metrics import dice, ged
from annotruth.nn import plan_network

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")


@pytest.fixture
def batch() -> Batch:
    """Two images with masks of three raters, of which one and a half are missing."""
    torch.manual_seed(0)
    images, labels = torch.randn(2, 1, 8, 8), torch.randint(0, 2, (2, 3, 8, 8), dtype=torch.uint8)
    labels[0, 1], labels[1, 0, :4] = 255, 255
    return Batch(images, labels)


def test_the_first_stage_is_likelihood_divergence_and_bounds(batch):
    spec = DataSpec(channels=1, raters=3, classes=2, dims=2)
    method = make_method("d-persona", "masks", {"latent": 2, "beta": 0.5, "bound": 2.0})
    model = method.build(spec, torch.nn.Conv2d(1, 2, 1))
    truth, negative, divergence, given = model.truth, 0.0, 0.0, 0
    with torch.no_grad():
        for encoder in (truth.prior, truth.posterior):
            encoder.head.weight.normal_()  # far from the standard normal
            encoder.head.weight[2:], encoder.head.bias[2:] = 0, -30.0  # as good as a point, so nothing is random
        truth.prior.head.bias[2:] = -5.0
        loss, bound = method.loss(model, batch, 0.0)
        for item, rater in ((0, 0), (0, 2), (1, 0), (1, 1), (1, 2)):
            picture, drawn = batch.images[[item]], batch.labels[[item], rater]
            shown = torch.cat([picture, (drawn == 0)[:, None], (drawn == 1)[:, None]], dim=1)
            each = [
                MultivariateNormal(one.mean[0], one.stddev[0].square().diag())
                for one in (truth.posterior(shown), truth.prior(picture))
            ]
            divergence += kl_divergence(*each).item()
            logs = truth._log_drawing(truth._joint(picture), each[0].mean[None])[0]
            for pixel, label in enumerate(drawn.flatten().tolist()):
                if label != 255:
                    negative, given = negative - logs[label, pixel].item(), given + 1
        reach = truth.bound_loss(batch.images, batch.labels).item()
    assert bound.item() == pytest.approx((negative + divergence) / given, rel=0.01)
    assert loss.item() == pytest.approx((negative + 0.5 * divergence) / given + 2 * reach, rel=0.01)


def test_bounds_are_cross_entropies_with_union_and_intersection():
    torch.manual_seed(0)
    drawn, labels = torch.rand(4, 2, 3, 10).softmax(dim=2), torch.randint(0, 3, (2, 3, 10), dtype=torch.uint8)
    marked = F.one_hot(labels.long(), 3).movedim(3, 2)
    union, intersection = marked.amax(dim=1).float(), marked.amin(dim=1).float()
    expected = F.binary_cross_entropy(drawn.amax(dim=0), union) + F.binary_cross_entropy(
        drawn.amin(dim=0), intersection
    )
    torch.testing.assert_close(bound_loss(drawn, labels), expected / 2)


def test_drawings_may_go_beyond_what_is_known_where_a_rater_is_missing():
    surely = torch.tensor([0.0, 1.0]).view(1, 1, 2, 1)
    differing = torch.eye(2).view(2, 1, 2, 1)
    one, all_agree = torch.tensor([[[1], [255]]], dtype=torch.uint8), torch.tensor([[[1], [1]]], dtype=torch.uint8)
    assert bound_loss(surely, all_agree) == 0
    assert bound_loss(differing, all_agree) > 1
    assert bound_loss(surely, one) == bound_loss(differing, one) == 0
    assert bound_loss(1 - surely, one) > 1


@pytest.mark.parametrize("dims", [2, 3])
def test_the_second_stage_teaches_nothing_but_queries(dims, batch):
    spec = DataSpec(channels=1, raters=3, classes=2, dims=dims, network=plan_network((8,) * dims))
    method = make_method("d-persona", "masks")
    model = method.build(spec)
    if dims == 3:
        batch = Batch(batch.images[..., None].repeat(1, 1, 1, 1, 8), batch.labels[..., None].repeat(1, 1, 1, 1, 8))
    assert not method.objective_is_final(model, 0.5)
    assert method.objective_is_final(model, 0.7)
    method.loss(model, batch, 0.7)[0].backward()
    learning = {name.split(".")[0] for name, weight in model.truth.named_parameters() if weight.grad is not None}
    assert learning == {"queries"}
    with torch.no_grad():
        drawn = method.rater_probabilities(model, batch.images)
        torch.testing.assert_close(drawn.mean(dim=1), model.log_truth(batch.images).exp())
        nobody = model.truth.personal_points(batch.images, model.truth._joint(batch.images), model.truth.noise * 0)
        torch.testing.assert_close(nobody, model.truth.prior(batch.images).mean[:, None].expand(-1, 3, -1))


def test_what_a_rater_draws_on_a_new_image_is_told_better_than_by_the_mean(fit_moods, moods):
    """One rater draws squares as they are and one draws them larger; a quarter of the masks are missing."""

    def two(items: int, seed: int) -> Annotations:
        drawn = moods(2 * items, seed)  # every other one is drawn larger
        return Annotations.from_masks(drawn.masks[::2], drawn.images[::2], raters=["as is", "large"])

    train, new = two(32, 0), two(12, 2)
    masks = train.masks.copy()
    masks[::4, 0], masks[1::4, 1] = 255, 255
    model = fit_moods("d-persona", 12, annotations=Annotations.from_masks(masks, train.images, raters=train.raters))
    mean = model.predict(new.images)
    own = [np.stack([model.annotators_[rater].predict(image) for image in new.images]) for rater in model.raters_]
    scores = np.array([[dice(one, new.masks[:, rater]) for one in (own[rater], mean)] for rater in (0, 1)])
    assert (scores[:, 0] > 0.9).all()
    assert scores[:, 0].mean() > scores[:, 1].mean() + 0.1
    assert ged(model.sample(new.images, 16).swapaxes(0, 1), new.masks) < ged(mean[:, None], new.masks)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"latent": 0}, "latent must be at least 1, not 0"),
        ({"samples": 0}, "samples must be at least 1, not 0"),
        ({"beta": -1.0}, "beta must not be negative"),
        ({"bound": -1.0}, "bound must not be negative"),
        ({"stage_one": 1.0}, "stage_one is a share of the training"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        make_method("d-persona", "masks", options)
