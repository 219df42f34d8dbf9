"""tgce: the loss against loops in NumPy, whom it comes to trust, and options."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from annotruth import Annotations, Segmenter
from annotruth.errors import InputError
from annotruth.methods import DataSpec, make_method
from annotruth.methods.inference import fuse_labels, rater_confidences
from annotruth.methods.multi_rater.tgce import truncated_loss
from annotruth.metrics import dice


@pytest.mark.parametrize("q", [0.1, 0.7, 1.0])
def test_the_loss_is_the_papers_by_loops(q):
    rng = np.random.default_rng(0)
    chances = rng.dirichlet(np.ones(3), (2, 4, 5)).transpose(0, 3, 1, 2)
    labels, trust = rng.integers(0, 3, (2, 2, 4, 5)).astype(np.uint8), rng.random((2, 2, 4, 5))
    labels[0, 1], labels[1, 0, :2] = 255, 255
    total, given = 0.0, 0
    for item, rater, row, column in np.argwhere(labels != 255):
        certain, here = trust[item, rater, row, column], labels[item, rater, row, column]
        total += certain * (1 - chances[item, here, row, column] ** q) / q
        total += (1 - certain) * (1 - (1 / 3) ** q) / q
        given += 1
    found = truncated_loss(torch.tensor(chances).log(), torch.tensor(labels), torch.tensor(trust), q)
    assert found.item() == pytest.approx(total / given)


@pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")
def test_whoever_errs_is_not_trusted_where_it_matters(moods):
    """One of three raters sees nothing at all: of the background that is right, and of squares it is cut off."""
    squares, new = moods(24), moods(8, seed=1)
    good = squares.masks[:, 0]
    annotations = Annotations.from_masks(
        np.stack([good, good, np.zeros_like(good)], axis=1), squares.images, raters=["good", "fair", "lost"]
    )
    model = Segmenter("tgce", max_epochs=6, batch_size=4, validation=0, learning_rate=0.01, progress=False)
    model.fit(annotations)
    assert dice(model.predict(new.images), new.masks[:, 0]) > 0.9
    images = torch.stack([model._standardised(image, "") for image in new.images])
    with torch.no_grad():
        trust = rater_confidences(model.method_, model.module_, images, raters=3).numpy().swapaxes(0, 1)
    inside, outside = (trust[:, new.masks[:, 0] == number].mean(axis=1) for number in (1, 0))
    assert inside[2] < 0.5 < min(inside[0], inside[1], outside[2])


@pytest.mark.parametrize(("reliability", "different"), [("global", 1), ("features", 4), ("pixel", 256)])
def test_reliabilities_are_of_raters_regions_or_pixels(reliability, different):
    method = make_method("tgce", "masks", {"reliability": reliability})
    torch.manual_seed(0)
    model = method.build(DataSpec(channels=1, raters=2, classes=2, dims=2))
    trust = model.annotators.trust(torch.randn(1, 1, 16, 16))
    assert trust.shape == (1, 2, 16, 16)
    assert len(trust[0, 0].unique()) > different * 0.9
    assert len(trust[0, 0].unique()) <= different


def test_labels_at_hand_are_weighed_by_trust():
    method = make_method("tgce", "masks")
    model = method.build(DataSpec(channels=1, raters=2, classes=2, dims=2))
    images, labels = (
        torch.randn(1, 1, 8, 8),
        torch.tensor([0, 1], dtype=torch.uint8).view(1, 2, 1, 1).repeat(1, 1, 8, 8),
    )
    labels[:, :, 0] = 255
    fused, trust = fuse_labels(method, model, images, labels), model.annotators.trust(images)
    torch.testing.assert_close(fused[:, 1, 1:], (trust[:, 1] / trust.sum(dim=1))[:, 1:])
    torch.testing.assert_close(fused[:, :, 0], model.log_truth(images).exp()[:, :, 0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reliability": "rater"}, "Unknown reliability 'rater'"),
        ({"q": 0.0}, "q must lie above 0"),
        ({"q": 1.5}, "q must"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        make_method("tgce", "masks", options)
