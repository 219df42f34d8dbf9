"""Items as tensors: read, standardised, cut into patches, turned and batched, the same way on every run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, Dataset, Sampler

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.methods import Batch, Method
from annotruth.methods.base import as_tensor
from annotruth.training.augment import augment
from annotruth.validation import MISSING_PIXEL

MEMORY = 2 * 2**30
"""Bytes of images and masks up to which a whole data set is kept in memory."""
LARGEST_WHOLE = {2: 256, 3: 64}
"""Side up to which images are trained on whole, by number of axes; larger ones are cut into patches of this side."""


@dataclass(frozen=True)
class Standard:
    """Mean and deviation of every channel, by which images are standardised."""

    mean: list[float]
    deviation: list[float]

    @classmethod
    def of(cls, annotations: Annotations) -> Standard:
        """Measure a data set, one image at a time."""
        total = square = count = 0.0
        for index in range(len(annotations)):
            image = annotations.item_image(index).astype(np.float64)
            if index:
                _same_channels(image, len(total), annotations.items[index])  # type: ignore[arg-type]
            flat = image.reshape(len(image), -1)
            total, square, count = total + flat.sum(axis=1), square + (flat**2).sum(axis=1), count + flat.shape[1]
        mean = total / count
        deviation = np.sqrt(np.maximum(square / count - mean**2, 0))
        return cls(np.atleast_1d(mean).tolist(), np.where(deviation > 0, deviation, 1.0).tolist())

    def __call__(self, image: np.ndarray) -> Tensor:
        """Standardise one image (channels, *spatial)."""
        shape = (-1, *[1] * (image.ndim - 1))
        mean, deviation = (np.array(of, dtype=np.float32).reshape(shape) for of in (self.mean, self.deviation))
        return torch.from_numpy((image - mean) / deviation)


def training_patch(annotations: Annotations, asked: Sequence[int] | None) -> tuple[int, ...] | None:
    """The patch size to train with: the one asked for, or None = whole images, where they are small enough."""
    shapes = [annotations.shape(index) for index in range(len(annotations))]
    axes = {len(shape) for shape in shapes}
    if len(axes) > 1 or not axes <= set(LARGEST_WHOLE):
        raise InputError(f"Images need 2 or 3 spatial axes, all the same; these have {sorted(axes)}.")
    if asked is not None:
        patch = tuple(int(length) for length in np.atleast_1d(asked))
        if len(patch) != len(shapes[0]) or min(patch) < 1:
            raise InputError(f"patch_size needs a positive number for each of the {len(shapes[0])} axes, not {asked}.")
        return patch
    side = LARGEST_WHOLE[len(shapes[0])]
    largest = np.max(shapes, axis=0)
    if (largest <= side).all():
        return None
    return tuple(int(min(side, length)) for length in largest)


class Items(Dataset):
    """Items that come in batches.

    Attributes
    ----------
    annotations : what the items are
    epoch : which pass over them it is, for what changes from pass to pass
    """

    annotations: Annotations
    epoch: int = 0

    def __len__(self) -> int:
        return len(self.annotations)


class MaskDataset(Items):
    """Batches of images (batch, channels, *spatial) and labels (batch, raters, *spatial).

    With ``with_truth``, the annotations' truth is there to be learnt from, where it is known. Images of a batch that
    differ in size are padded at their far ends; padding is not labelled.
    """

    def __init__(
        self,
        annotations: Annotations,
        method: Method,
        standard: Standard,
        patch: Sequence[int] | None = None,
        augment: bool = False,
        seed: int = 0,
        with_truth: bool = False,
    ) -> None:
        self.annotations, self.method, self.standard = annotations, method, standard
        self.patch, self.augment, self.seed, self.with_truth = patch, augment, seed, with_truth
        pixels = sum(int(np.prod(annotations.shape(i))) for i in range(len(annotations)))
        size = pixels * (4 * len(standard.mean) + len(annotations.raters))
        self._kept = [self._read(i) for i in range(len(annotations))] if size <= MEMORY else None
        known = [method.known_confusion(annotations, i) for i in range(len(annotations))]
        self._confusion = None if known[0] is None else torch.stack([one for one in known if one is not None])

    def __getitems__(self, indices: list[int]) -> Batch:
        pairs = [self._one(index) for index in indices]
        size = tuple(int(n) for n in np.max([image.shape[1:] for image, _ in pairs], axis=0))
        images = torch.stack([_pad(image, size, 0.0) for image, _ in pairs])
        labels = torch.stack([_pad(label, size, MISSING_PIXEL) for _, label in pairs])
        confusion = None if self._confusion is None else self._confusion[indices]
        truth = None
        if self.with_truth:
            labels, truth = labels[:, :-1], labels[:, -1]
        return Batch(images, labels, torch.tensor(indices), confusion=confusion, truth=truth)

    def _read(self, index: int) -> tuple[Tensor, Tensor]:
        image = self.annotations.item_image(index)
        _same_channels(image, len(self.standard.mean), self.annotations.items[index])
        labels = self.method.mask_targets(self.annotations, index)
        if self.with_truth:  # goes along with the raters' labels through patches and augmentation
            labels = torch.cat([labels, as_tensor(self.annotations.item_truth(index))[None]])
        return self.standard(image), labels

    def _one(self, index: int) -> tuple[Tensor, Tensor]:
        image, labels = self._kept[index] if self._kept is not None else self._read(index)
        if self.patch is None and not self.augment:
            return image, labels
        # A generator per epoch and item: what an item looks like depends on neither batches, workers nor resuming.
        rng = np.random.default_rng([self.seed, self.epoch, index])
        if self.patch is not None:
            corner = [int(rng.integers(0, max(n - p, 0) + 1)) for n, p in zip(image.shape[1:], self.patch)]
            window = (slice(None), *[slice(c, c + p) for c, p in zip(corner, self.patch)])
            image, labels = image[window], labels[window]
        return augment(image, labels, rng) if self.augment else (image, labels)


class EpochSampler(Sampler[int]):
    """A new order every epoch, that depends on the seed and the epoch alone, so that a resumed run goes on alike."""

    def __init__(self, cases: Items, seed: int) -> None:
        self.cases, self.seed = cases, seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = self.cases.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        order = np.random.default_rng([self.seed, self.epoch]).permutation(len(self.cases))
        return iter(order.tolist())

    def __len__(self) -> int:
        return len(self.cases)


class SharedBatches(BatchSampler):
    """The batches of an order of items, each shared out between processes: together they see what one would.

    Examples
    --------
    >>> [list(SharedBatches(range(5), 4, process, processes=2)) for process in (0, 1)]
    [[[0, 2], [4]], [[1, 3], [4]]]
    """

    def __init__(self, order: Iterable[int], batch_size: int, process: int = 0, processes: int = 1) -> None:
        super().__init__(order, batch_size, drop_last=False)
        self.process, self.processes = process, processes

    def __iter__(self) -> Iterator[list[int]]:
        for batch in super().__iter__():
            # All processes take every step together: one left without an item takes another's again.
            yield batch[self.process :: self.processes] or [batch[self.process % len(batch)]]


def loader(
    cases: Items, batch_size: int, order: Iterable[int] | None = None, process: int = 0, processes: int = 1
) -> DataLoader:
    """Batches in order, or in the given order, or a process's share of them.

    Items come from memory, so no worker processes are needed.
    """
    batches = SharedBatches(range(len(cases)) if order is None else order, batch_size, process, processes)
    # A generator of its own, or the loader would draw from the user's random numbers.
    return DataLoader(cases, batch_sampler=batches, collate_fn=_as_it_is, generator=torch.Generator())


def _as_it_is(batch: Any) -> Any:
    return batch


def _same_channels(image: np.ndarray, channels: int, item: str) -> None:
    if len(image) != channels:
        raise InputError(
            f"Item {item} has {len(image)} channels, but other items {channels}: every image needs the same channels."
        )


def _pad(values: Tensor, size: tuple[int, ...], fill: float) -> Tensor:
    missing = [wanted - has for wanted, has in zip(size, values.shape[1:])]
    if not any(missing):
        return values
    return F.pad(values, [amount for length in reversed(missing) for amount in (0, length)], value=fill)
