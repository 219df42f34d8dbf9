"""The comparisons that learn from strokes, coarse masks and boxes: what is special about each."""

from __future__ import annotations

import builtins
import math

import numpy as np
import pytest
import torch

from annotruth import Annotations, Segmenter
from annotruth.errors import InputError
from annotruth.methods import Batch, DataSpec, make_method
from annotruth.methods.strokes.box_sup import estimates_in_boxes
from annotruth.methods.strokes.cuts import EDGES, grab_cut, graph_cut
from annotruth.methods.strokes.cycle_mix import random_box
from annotruth.methods.strokes.drawings import seeds
from annotruth.methods.strokes.lc_mil import bag_loss, cleaned
from annotruth.methods.strokes.partial_ce import stroke_loss
from annotruth.simulate import simulate_boxes, simulate_drawings


@pytest.fixture
def scene():
    """A bright box on a noisy ground: image (1, 24, 24) and where the box is."""
    inside = np.zeros((24, 24), dtype=bool)
    inside[6:16, 8:19] = True
    return (inside * 2.0 + 0.2 * np.random.default_rng(0).standard_normal((24, 24)))[None], inside


def test_partial_cross_entropy_is_that_of_a_loop():
    torch.manual_seed(0)
    log_truth = torch.randn(2, 3, 4, 4).log_softmax(dim=1)
    labels = torch.randint(0, 3, (2, 4, 4, 4), dtype=torch.uint8)
    labels[torch.rand(labels.shape) < 0.5] = 255
    terms = []
    for b, d, y, x in np.ndindex(2, 4, 4, 4):
        if labels[b, d, y, x] < 3:
            p = log_truth[b, int(labels[b, d, y, x]), y, x].exp()
            terms.append(-p.log() if d < 2 else -((1 - p) / 2).log())
    torch.testing.assert_close(stroke_loss(log_truth, labels)[0], torch.stack(terms).mean())


def test_a_graph_cut_finds_the_object_from_two_points(scene):
    image, inside = scene
    ahead, behind = np.zeros((2, 24, 24), dtype=bool)
    ahead[10, 10:14], behind[2, 3:20] = True, True
    found = graph_cut(image, ahead, behind)
    assert (found == inside).mean() > 0.99
    volume = graph_cut(np.stack([image] * 3, axis=1), np.stack([ahead] * 3), np.stack([behind] * 3))
    assert (volume == inside).mean() > 0.99


def test_a_graph_cut_is_the_cheapest_of_all(scene):
    """On a tiny image, against the energy of every possible cut."""
    rng = np.random.default_rng(3)
    image = rng.random((1, 2, 4))
    ahead, behind = np.zeros((2, 2, 4), dtype=bool)
    ahead[0, 0], behind[1, 3] = True, True
    squares = [(np.diff(image[0], axis=axis)) ** 2 for axis in (0, 1)]
    usual = np.mean(np.concatenate([s.ravel() for s in squares]))
    to_object, to_rest = abs(image[0] - image[0, 0, 0]), abs(image[0] - image[0, 1, 3])
    share = to_object / (to_object + to_rest)

    def energy(cut):
        if not cut[0, 0] or cut[1, 3]:
            return np.inf
        one = np.where(cut, share, 1 - share)
        one[0, 0] = one[1, 3] = 0
        edges = [(np.diff(cut.astype(int), axis=a) != 0) * np.exp(-squares[a] / (2 * usual)) for a in (0, 1)]
        return one.sum() + EDGES * sum(e.sum() for e in edges)

    cuts = [np.array(list(f"{n:08b}"), dtype=int).reshape(2, 4).astype(bool) for n in range(256)]
    best = min(cuts, key=energy)
    np.testing.assert_allclose(energy(graph_cut(image, ahead, behind)), energy(best))


def test_grab_cut_finds_the_object_in_a_box(scene):
    image, inside = scene
    box = np.zeros_like(inside)
    box[4:18, 6:21] = True
    found = grab_cut(image, np.zeros_like(box), ~box, box)
    assert (found == inside).mean() > 0.97
    nowhere = np.zeros_like(box)
    assert not grab_cut(image, nowhere, ~nowhere, nowhere).any()


@pytest.mark.parametrize(("method", "library"), [("grab-cut", "cv2"), ("box-sup", "cv2"), ("lazy-snapping", "maxflow")])
def test_a_missing_library_is_named(method, library, scene, monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name == library:
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    annotations = Annotations.from_masks(scene[1][None, None].astype(np.uint8), images=scene[0][None])
    with pytest.raises(InputError, match=r"install annotruth\[cuts\]"):
        make_method(method, "masks").check(annotations)


def test_seeds_join_everybodys_strokes():
    masks = np.full((1, 2, 1, 4), 255, dtype=np.uint8)
    negatives = masks.copy()
    masks[0, :, 0, 0], masks[0, 1, 0, 1], negatives[0, 0, 0, 1:3] = 1, 2, 2
    marked, said_not = seeds(Annotations.from_masks(masks, negatives=negatives, classes=3), 0)
    np.testing.assert_array_equal(marked, [[1, 2, 255, 255]])
    np.testing.assert_array_equal(said_not[2], [[False, False, True, False]])  # where it is marked, that counts


@pytest.mark.parametrize("method", ["grab-cut", "lazy-snapping"])
def test_cut_masks_keep_to_the_strokes(method, scene):
    image, inside = scene
    drawn = simulate_drawings(inside[None].astype(np.uint8), positive=0.1, negative=0.1, strength=0)
    masks = np.concatenate([drawn.masks, np.full_like(drawn.masks, 255)])
    negatives = np.concatenate([drawn.negatives, np.full_like(drawn.masks, 255)])
    annotations = Annotations.from_masks(masks, images=np.stack([image] * 2), negatives=negatives, classes=2)
    made = make_method(method, "masks")
    mask = made.mask_targets(annotations, 0)[0].numpy()
    assert (mask == inside).mean() > 0.95
    assert (made.mask_targets(annotations, 1) == 255).all()  # no strokes, no mask


def test_a_bag_is_what_its_marked_pixels_are_on_average():
    found = torch.tensor([0.9, 0.1, 0.1, 0.9]).repeat(1, 4, 1)
    log_truth = torch.stack([1 - found, found], dim=1).log()
    labels = torch.full((1, 4, 4), 255, dtype=torch.uint8)
    labels[0, :, :2] = 1  # 0.9 and 0.1
    assert bag_loss(log_truth, labels).item() == pytest.approx(-math.log(0.5))
    labels[0, :, 2] = 0  # background counts pixel by pixel, and as much as the class
    assert bag_loss(log_truth, labels).item() == pytest.approx(-(math.log(0.5) + math.log(0.9)) / 2)


def test_no_class_is_cleaned_away():
    log_truth = torch.tensor([[[0.9, 0.9], [0.1, 0.1]]]).log()
    labels = torch.tensor([[[1, 0]]])
    torch.testing.assert_close(cleaned(log_truth, labels), labels)


def test_boxes_are_not_emptied():
    log_truth = torch.tensor([[[0.9] * 4, [0.1] * 4]]).log()
    boxes = torch.tensor([[[1, 1, 0, 255]]])
    torch.testing.assert_close(estimates_in_boxes(log_truth, boxes, boxes), boxes)


def test_mixed_boxes_lie_inside():
    torch.manual_seed(0)
    sizes = [int(random_box(torch.Size([8, 10]), torch.device("cpu")).sum()) for _ in range(50)]
    assert min(sizes) >= 20
    assert max(sizes) <= 80
    assert len(set(sizes)) > 5


def test_box_methods_learn_from_boxes(scene):
    rng = np.random.default_rng(0)
    truth = np.zeros((12, 24, 24), dtype=np.uint8)
    for mask in truth:
        y, x = rng.integers(1, 10, size=2)
        mask[y : y + 5, x : x + 11] = mask[y : y + 11, x : x + 5] = 1
    images = (truth * 2 + 0.2 * rng.standard_normal(truth.shape))[:, None].astype(np.float32)
    boxes = simulate_boxes(truth).annotations(images=images)
    model = Segmenter("box-sup", max_epochs=10, batch_size=2, validation=0.2, progress=False).fit(boxes)
    found = model.predict(images) == 1
    wrong = (found != (truth == 1)).mean()
    assert wrong < 0.5 * ((boxes.masks[:, 0] == 1) != (truth == 1)).mean()


def test_both_networks_of_l2g_learn():
    torch.manual_seed(0)
    made = make_method("l2g", "masks")
    parts = made.build(DataSpec(channels=1, raters=1, classes=2, dims=2)).train()
    labels = torch.randint(0, 2, (2, 2, 16, 16), dtype=torch.uint8)
    made.loss(parts, Batch(torch.randn(2, 1, 16, 16), labels), progress=0.9)[0].backward()
    for network in parts.truth:
        assert any((weight.grad != 0).any() for weight in network.parameters() if weight.grad is not None)
