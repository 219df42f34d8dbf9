"""phiseg: its bound against PyTorch's and plain loops, and drawings that differ and hang together."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal, kl_divergence

from annotruth import Annotations
from annotruth.errors import InputError
from annotruth.methods import Batch, DataSpec, make_method
from annotruth.metrics import ged
from annotruth.nn import plan_network

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")


def test_the_bound_is_likelihood_and_divergence_of_every_level_by_loops():
    torch.manual_seed(0)
    spec = DataSpec(channels=1, raters=3, classes=2, dims=2, network=plan_network((8, 8)))
    method = make_method("phiseg", "masks", {"latent": 2, "levels": 2, "beta": 0.5})
    model = method.build(spec, torch.nn.Conv2d(1, 2, 1))
    images, labels = torch.randn(2, 1, 8, 8), torch.randint(0, 2, (2, 3, 8, 8), dtype=torch.uint8)
    labels[0, 1], labels[1, 0, 0] = 255, 255
    truth, negative, coarse, divergence, given = model.truth, 0.0, 0.0, 0.0, 0
    with torch.no_grad():
        for path in (truth.prior, truth.posterior):
            for head in path.heads:
                head.weight.normal_()  # far from the standard normal
        for head in truth.posterior.heads:
            head.weight[2:], head.bias[2:] = 0, -30.0  # as good as a point, so nothing is random
        loss, bound = method.loss(model, Batch(images, labels), 1.0)
        for item, rater in ((0, 0), (0, 2), (1, 0), (1, 1), (1, 2)):
            picture, drawn = images[[item]], labels[[item], rater]
            shown = truth.posterior(torch.cat([picture, (drawn == 0)[:, None], (drawn == 1)[:, None]], dim=1))
            asked, points = truth.prior(picture), []
            for level, positions in enumerate((1, 16)):  # the whole picture, then the coarsest stage
                above = points[-1] if points else None
                posterior = truth.posterior.gaussian(level, shown, above)
                prior = truth.prior.gaussian(level, asked, above)
                each = [
                    MultivariateNormal(one.mean.flatten(), one.stddev.flatten().square().diag())
                    for one in (posterior, prior)
                ]
                assert each[0].mean.shape == (2 * positions,)
                divergence += kl_divergence(*each).item()
                points.append(posterior.mean)
            logits = truth.logits(truth.from_features(truth.features(picture)), points)
            first, last = (one.log_softmax(dim=1)[0].flatten(1) for one in logits)
            for pixel, label in enumerate(drawn.flatten().tolist()):
                if label != 255:
                    coarse, negative = coarse - first[label, pixel].item(), negative - last[label, pixel].item()
                    given += 1
    assert given == 5 * 64 - 8
    assert bound.item() == pytest.approx((negative + divergence) / given, rel=0.01)
    assert loss.item() == pytest.approx((negative + coarse + 0.5 * divergence) / given, rel=0.01)


def test_drawings_differ_hang_together_and_are_closer_to_the_raters_than_the_mean(fit_moods, moods, borders):
    """One rater draws squares as they are and one draws them larger."""

    def two(items: int, seed: int) -> Annotations:
        drawn = moods(2 * items, seed)  # every other one is drawn larger
        return Annotations.from_masks(drawn.masks[::2], drawn.images[::2], raters=drawn.raters)

    model, new = fit_moods("phiseg", 12, annotations=two(24, seed=0)), two(12, seed=2)
    drawings = model.sample(new.images, 16).swapaxes(0, 1)
    chance = model.predict_proba(new.images)[:, None, 1]
    alone = (np.random.default_rng(0).random((12, 16, 16, 16)) < chance).astype(np.uint8)
    assert borders(drawings) < 0.8 * borders(alone)
    one_mask = ged(model.predict(new.images)[:, None], new.masks)
    assert ged(drawings, new.masks) < one_mask / 2


@pytest.mark.parametrize(("dims", "network"), [(2, torch.nn.Conv2d(1, 3, 1)), (3, None)])
def test_pictures_and_volumes_of_any_size_are_drawn_also_with_a_network_of_ones_own(dims, network):
    spec = DataSpec(channels=1, raters=2, classes=3, dims=dims, network=plan_network((8,) * dims))
    method = make_method("phiseg", "masks")
    model, images = method.build(spec, network).eval(), torch.randn(2, 1, *(7, 9, 5)[:dims])
    with torch.no_grad():
        drawn = method.sample(model, images, 4, torch.Generator().manual_seed(0), spec)
        torch.testing.assert_close(model.log_truth(images), model.log_truth(images))
    assert drawn.shape == (4, 2, 3, *images.shape[2:])
    torch.testing.assert_close(drawn.sum(dim=2), torch.ones(4, 2, *images.shape[2:]))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"levels": 1}, "levels must be at least 2, not 1"),
        ({"latent": 0}, "latent must be at least 1, not 0"),
        ({"samples": 0}, "samples must be at least 1, not 0"),
        ({"beta": -1.0}, "beta must not be negative"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        make_method("phiseg", "masks", options)
