"""Methods that fuse first, and the one with a network per rater."""

import warnings

import numpy as np
import torch

from annotruth import STAPLE, Annotations, Segmenter, SpatialSTAPLE
from annotruth.errors import IdentifiabilityWarning
from annotruth.methods import Batch, DataSpec, make_method
from annotruth.simulate import noisy_digits, simulate_masks


def annotations():
    images, truth, _ = noisy_digits(3)
    return simulate_masks(truth).annotations(images=images)


def test_staple_fuses_each_item_by_itself():
    ann = annotations()
    for name, estimator in (("staple", STAPLE), ("spatial-staple", SpatialSTAPLE)):
        method = make_method(name, "masks")
        expected = estimator().fit(ann.take([1])).predict()[0]
        given = method.mask_targets(ann, 1)
        assert given.shape == (1, 28, 28)
        np.testing.assert_array_equal(given[0].numpy(), expected)


def test_pixels_nobody_labelled_teach_nothing():
    ann = annotations()
    masks = ann.masks.copy()
    masks[0] = 255
    masks[1, :, :9] = 255
    some = Annotations.from_masks(masks, ann.images)
    for name in ("staple", "spatial-staple"):
        bare, part = (make_method(name, "masks").mask_targets(some, index)[0] for index in (0, 1))
        assert (bare == 255).all()
        assert (part[:9] == 255).all()
        assert (part[9:] < 2).all()


def test_separate_networks_learn_from_their_own_rater_and_are_averaged():
    shape = DataSpec(channels=1, raters=2, classes=2, dims=2)
    method = make_method("separate", "masks")
    parts = method.build(shape).eval()
    images = torch.rand(2, 1, 8, 8)
    by_hand = torch.stack([network(images).softmax(dim=1) for network in parts.truth]).mean(dim=0)
    torch.testing.assert_close(parts.log_truth(images).exp(), by_hand)

    labels = torch.ones(2, 2, 8, 8, dtype=torch.uint8)
    labels[:, 1] = 255  # the second rater labelled nothing, so the second network has nothing to learn
    loss, _ = method.loss(parts, Batch(images, labels), progress=0.0)
    loss.backward()
    first, second = ([p.grad for p in network.parameters()] for network in parts.truth)
    assert any(grad is not None and grad.abs().sum() > 0 for grad in first)
    assert all(grad is None or grad.abs().sum() == 0 for grad in second)


def test_separate_copies_a_given_network():
    network = torch.nn.Conv2d(1, 2, 1)
    parts = make_method("separate", "masks").build(DataSpec(1, 3, 2, 2), network)
    assert len({id(each) for each in parts.truth}) == 3


def test_separate_trains_copies_of_a_given_network():
    network = torch.nn.Conv2d(1, 2, 3, padding=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)  # after one epoch the estimate is as poor as can be
        model = Segmenter(method="separate", network=network, max_epochs=1, progress=False).fit(annotations())
    assert model.predict(annotations().images).shape == (3, 28, 28)
