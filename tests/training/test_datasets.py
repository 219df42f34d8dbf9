"""Items as tensors: standardised, cut, mirrored, padded and ordered the same way on every run."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from annotruth import Annotations
from annotruth.errors import InputError
from annotruth.methods import Batch, DataSpec, make_method
from annotruth.training import datasets as data
from annotruth.training.batches import loader
from annotruth.training.datasets import LabelTableDataset, MaskDataset, Standard

AS_IT_IS = Standard([0.0], [1.0])


def own_mask_as_image(shape: tuple[int, ...], items: int = 3, seed: int = 0) -> Annotations:
    """Items whose image is the mask that both raters drew: whatever moves, they must stay equal."""
    masks = np.random.default_rng(seed).integers(0, 4, (items, 1, *shape)).astype(np.uint8)
    return Annotations.from_masks(np.repeat(masks, 2, axis=1), images=masks.astype(np.float32), classes=4)


class Said(torch.nn.Module):
    """A network that says what it is told."""

    def __init__(self, scores: torch.Tensor) -> None:
        super().__init__()
        self.scores = scores

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.scores


@settings(max_examples=30, deadline=None)
@given(
    shape=st.lists(st.integers(1, 9), min_size=2, max_size=3),
    patch=st.lists(st.integers(1, 9), min_size=3, max_size=3),
    seed=st.integers(0, 3),
    epoch=st.integers(0, 3),
)
def test_image_and_masks_are_cut_together(shape, patch, seed, epoch):
    patch = patch[: len(shape)]
    annotations = own_mask_as_image(tuple(shape))
    cases = MaskDataset(annotations, make_method("mean", "masks"), patch, seed=seed).standardise(AS_IT_IS)
    cases.epoch = epoch
    images, labels, *_ = cases.__getitems__([0, 1, 2])
    size = [min(n, p) for n, p in zip(shape, patch)]
    assert list(images.shape) == [3, 1, *size]
    assert torch.equal(images.expand(-1, 2, *size), labels.float())


def test_every_patch_occurs():
    annotations = own_mask_as_image((4, 4), items=1)
    cases = MaskDataset(annotations, make_method("mean", "masks"), patch=(3, 3)).standardise(AS_IT_IS)
    seen = set()
    for epoch in range(60):
        cases.epoch = epoch
        seen.add(tuple(cases.__getitems__([0])[0].flatten().tolist()))
    whole = annotations.item_image(0)[0]
    assert seen == {tuple(whole[i : i + 3, j : j + 3].flatten().tolist()) for i in (0, 1) for j in (0, 1)}


def test_an_items_look_depends_on_seed_epoch_and_item_alone():
    annotations = own_mask_as_image((8, 8), items=6)
    cases = MaskDataset(annotations, make_method("mean", "masks"), (5, 5), augment=True, seed=3).standardise(AS_IT_IS)
    cases.epoch = 2
    together, *_ = cases.__getitems__([0, 1, 2, 3, 4, 5])
    backwards, _, positions, *_ = cases.__getitems__([5, 4, 3, 2, 1, 0])
    assert torch.equal(together, backwards.flip(0))
    assert positions.tolist() == [5, 4, 3, 2, 1, 0]
    cases.epoch = 3
    assert not torch.equal(together, cases.__getitems__([0, 1, 2, 3, 4, 5])[0])


def test_padding_is_not_labelled(make_cases):
    sizes = [(4, 7), (6, 3)]
    annotations = make_cases(2, sizes)
    images, labels, *_ = (
        MaskDataset(annotations, make_method("mean", "masks")).standardise(AS_IT_IS).__getitems__([0, 1])
    )
    assert images.shape == (2, 1, 6, 7)
    for position, (height, width) in enumerate(sizes):
        inside = np.zeros((6, 7), dtype=bool)
        inside[:height, :width] = True
        np.testing.assert_array_equal(labels[position, :, :height, :width], annotations.item_masks(position))
        assert (labels[position][:, ~inside] == 255).all()
        assert (images[position][:, ~inside] == 0).all()


@pytest.mark.parametrize("method", ["mean", "majority", "clean", "global-cm", "pixel-cm"])
def test_padding_teaches_nothing(make_cases, method):
    """Whatever the network says in the padding, loss and gradients there are none."""
    annotations = make_cases(2, [(4, 8), (8, 4)])
    made = make_method(method, "masks")
    images, labels, *_ = MaskDataset(annotations, made).standardise(AS_IT_IS).__getitems__([0, 1])
    scores = torch.randn(2, 2, 8, 8, generator=torch.Generator().manual_seed(0)).requires_grad_()
    model = made.build(DataSpec(channels=1, raters=3, classes=2, dims=2), network=Said(scores))
    loss, _ = made.loss(model, Batch(images, labels), progress=1.0)
    loss.backward()
    padded = (labels == 255).all(dim=1)
    assert padded.sum() == 64
    assert (scores.grad.movedim(1, -1)[padded] == 0).all()
    assert (scores.grad.movedim(1, -1)[~padded] != 0).any()


def test_data_that_do_not_fit_into_memory_give_the_same_batches(make_cases, monkeypatch):
    annotations = make_cases(6, (9, 9))
    kept = MaskDataset(annotations, make_method("majority", "masks"), (5, 5), augment=True).standardise(AS_IT_IS)
    monkeypatch.setattr(data, "MAX_BYTES_IN_MEMORY", 0)
    read = MaskDataset(annotations, make_method("majority", "masks"), (5, 5), augment=True).standardise(AS_IT_IS)
    assert kept.in_memory
    assert not read.in_memory
    for one, other in zip(loader(kept, 4), loader(read, 4)):
        assert all(torch.equal(a, b) for a, b in zip(one[:3], other[:3]))


def test_channels_are_checked_wherever_an_item_is_read(make_cases):
    with pytest.raises(InputError, match="Item item_0 has 1 channels, but other items 2"):
        MaskDataset(make_cases(2)).standardise(Standard([0.0, 0.0], [1.0, 1.0]))


def rare_classes(items: int = 40) -> Annotations:
    """A large class and a single pixel of another, in a ground that is labelled; a rater who drew nothing."""
    masks = np.zeros((items, 2, 30, 30), np.uint8)
    masks[:, 0, 20:28, 20:28], masks[:, 0, 3, 4], masks[:, 1] = 1, 2, 255
    return Annotations.from_masks(masks, images=np.zeros((items, 1, 30, 30), np.float32))


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_share_of_the_patches_holds_foreground_of_each_class_alike(in_memory, monkeypatch):
    if not in_memory:
        monkeypatch.setattr(data, "MAX_BYTES_IN_MEMORY", 0)
    annotations = rare_classes()

    def shares(foreground: float) -> tuple[float, float]:
        cases = MaskDataset(annotations, patch=(5, 5), foreground=foreground).standardise(AS_IT_IS)
        seen = []
        for cases.epoch in range(10):
            labels = cases.__getitems__(list(range(len(annotations))))[1][:, 0]
            seen.append([(labels == number).flatten(1).any(dim=1).float().mean() for number in (1, 2)])
        return tuple(np.mean(seen, axis=0))

    without, all_of_them, third = shares(0), shares(1), shares(1 / 3)
    assert without[1] < 0.05
    np.testing.assert_allclose(all_of_them, 0.5, atol=0.08)  # one class or the other, which are far from each other
    np.testing.assert_allclose(third, np.array(all_of_them) / 3 + np.array(without) * 2 / 3, atol=0.06)


def test_a_pixel_may_lie_anywhere_in_a_patch_laid_around_it():
    cases = MaskDataset(rare_classes(1), patch=(3, 31), foreground=1.0, seed=1).standardise(AS_IT_IS)
    rows = set()
    for cases.epoch in range(60):
        labels = cases.__getitems__([0])[1][0, 0]
        assert labels.shape == (3, 30)
        rows |= set(torch.argwhere(labels == 2)[:, 0].tolist())
    assert rows == {0, 1, 2}


def test_without_foreground_patches_lie_anywhere():
    blank = Annotations.from_masks(np.zeros((1, 1, 9, 9), np.uint8), images=np.zeros((1, 1, 9, 9), np.float32))
    images, labels, *_ = MaskDataset(blank, patch=(4, 4), foreground=1.0).standardise(AS_IT_IS).__getitems__([0])
    assert images.shape == labels.shape == (1, 1, 4, 4)


def test_few_foreground_pixels_are_kept_and_looked_for_once():
    masks = np.ones((1, 1, 60, 60), np.uint8)
    cases = MaskDataset(Annotations.from_masks(masks, images=masks.astype(np.float32)), patch=(4, 4), foreground=1.0)
    cases.standardise(AS_IT_IS).__getitems__([0])
    kept = cases._marked[0]
    assert kept[0].shape == (data.MOST_MARKED, 2)
    assert len(np.unique(kept[0], axis=0)) == data.MOST_MARKED
    cases.epoch = 1
    cases.__getitems__([0])
    assert cases._marked[0] is kept


@pytest.mark.parametrize("in_memory", [True, False])
def test_items_of_different_spacing_are_learnt_from_at_one(in_memory, monkeypatch):
    if not in_memory:
        monkeypatch.setattr(data, "MAX_BYTES_IN_MEMORY", 0)
    rng = np.random.default_rng(0)
    masks = [rng.choice([0, 1, 2, 255], (2, *shape)).astype(np.uint8) for shape in ((8, 6), (4, 6))]
    images = [rng.normal(size=(1, *mask.shape[1:])).astype(np.float32) for mask in masks]
    annotations = Annotations.from_masks(masks, images=images, classes=3, spacing=[(1, 1), (2, 1)])
    cases = MaskDataset(annotations, spacing=(1, 1)).standardise(AS_IT_IS)
    assert [cases.shape(index) for index in (0, 1)] == [(8, 6), (8, 6)]
    found, labels, *_ = cases.__getitems__([0, 1])
    assert found.shape == (2, 1, 8, 6)
    np.testing.assert_array_equal(found[0], images[0])
    np.testing.assert_array_equal(labels[1], masks[1].repeat(2, axis=1))
    np.testing.assert_allclose(found[1, 0, 1:-1:2], 0.75 * images[1][0, :-1] + 0.25 * images[1][0, 1:], atol=1e-6)
    assert [one.highest for one in MaskDataset(annotations, spacing=(1, 1)).fingerprints()] == [
        image.max() for image in images
    ], "planned by what the files hold"
    counted = cases.every_rater().__getitems__([1])[1]
    np.testing.assert_array_equal(counted[0], masks[1].repeat(2, axis=1))


def test_how_a_picture_is_augmented_depends_on_seed_and_epoch_alone():
    images = np.random.default_rng(0).normal(size=(20, 1, 8, 8)).astype(np.float32)
    answers = Annotations.from_answers(np.arange(20)[:, None] % 2, images=images)

    def seen(order: list[int], epoch: int = 2, seed: int = 0, batch_size: int = 6) -> torch.Tensor:
        items = LabelTableDataset(answers, augment=True, seed=seed).standardise(AS_IT_IS)
        items.epoch = epoch
        batches = list(loader(items, batch_size, order))
        return torch.cat([batch.images for batch in batches])[torch.cat([b.positions for b in batches]).argsort()]

    forwards = list(range(20))
    first = seen(forwards)
    assert torch.equal(seen(forwards[::-1], batch_size=4), first)
    assert not torch.equal(seen(forwards, epoch=3), first)
    assert not torch.equal(seen(forwards, seed=1), first)
    items = LabelTableDataset(answers, augment=True).standardise(AS_IT_IS)
    assert torch.equal(items.as_they_are().__getitems__(forwards).images, torch.from_numpy(images))
    assert not torch.equal(items.__getitems__(forwards).images, torch.from_numpy(images))
