"""pionono: its bound against PyTorch's and plain loops, and what each rater would draw on a new image."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal, kl_divergence

from annotruth import Annotations
from annotruth.errors import InputError
from annotruth.methods import Batch, DataSpec, make_method
from annotruth.metrics import dice, ged

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")


def test_the_loss_is_likelihood_dice_and_divergence_by_loops():
    torch.manual_seed(0)
    method = make_method("pionono", "masks", {"latent": 2, "beta": 0.5})
    model = method.build(DataSpec(channels=1, raters=3, classes=2, dims=2), torch.nn.Conv2d(1, 2, 1))
    images, labels = torch.randn(2, 1, 3, 3), torch.randint(0, 2, (2, 3, 3, 3), dtype=torch.uint8)
    labels[0, 1], labels[1, 0, 0] = 255, 255
    with torch.no_grad():
        model.truth.spreads.fill_(-30.0)  # as good as a point, so nothing is random
        loss, likelihood = method.loss(model, Batch(images, labels), 1.0)
        raters, negative, divergence, given, overlap, area = model.truth.gaussians(), 0.0, 0.0, 0, 0.0, 0.0
        prior = MultivariateNormal(torch.zeros(2), 4 * torch.eye(2))
        for item, rater in ((0, 0), (0, 2), (1, 0), (1, 1), (1, 2)):
            own = MultivariateNormal(raters.mean[rater], raters.stddev[rater].square().diag())
            divergence += kl_divergence(own, prior).item()
            logs = model.truth.log_drawing(model.truth.joint(images[[item]]), own.mean[None])[0]
            for pixel, label in enumerate(labels[item, rater].flatten().tolist()):
                if label != 255:
                    negative, given = negative - logs[label, pixel].item(), given + 1
                    said = logs[1, pixel].exp().item()
                    overlap, area = overlap + said * label, area + said + label
    assert given == 42
    assert likelihood.item() == pytest.approx(negative / given, rel=0.01)
    of_dice = 1 - (2 * overlap + 1) / (area + 1)
    assert loss.item() == pytest.approx((negative + 0.5 * divergence) / given + of_dice, rel=0.01)


def test_what_a_rater_draws_on_a_new_image_is_told_better_than_by_the_mean(fit_moods, moods):
    """One rater draws squares as they are and one draws them larger; each learns from half of the images."""

    def two(items: int, seed: int) -> Annotations:
        drawn = moods(items, seed)
        large = drawn.masks[(np.arange(items) + seed) % 2 == 0]
        return Annotations.from_masks(
            large, drawn.images[(np.arange(items) + seed) % 2 == 0], raters=["as is", "large"]
        )

    train, new = two(64, 0), two(20, 2)
    masks = train.masks.copy()
    masks[::2, 0], masks[1::2, 1] = 255, 255
    model = fit_moods("pionono", 8, annotations=Annotations.from_masks(masks, train.images, raters=train.raters))
    mean = model.predict(new.images)
    for number, rater in enumerate(model.raters_):
        own = np.stack([model.annotators_[rater].predict(image) for image in new.images])
        assert dice(own, new.masks[:, number]) > 0.85
        assert dice(own, new.masks[:, number]) >= dice(mean, new.masks[:, number])
    drawings = model.sample(new.images, 8).swapaxes(0, 1)
    assert ged(drawings, new.masks) < ged(mean[:, None], new.masks) / 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"latent": 0}, "latent must be at least 1, not 0"),
        ({"samples": 0}, "samples must be at least 1, not 0"),
        ({"beta": -1.0}, "beta must not be negative"),
        ({"prior_deviation": 0.0}, "prior_deviation must be above 0"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        make_method("pionono", "masks", options)
