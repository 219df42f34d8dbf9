"""Items as tensors: read, standardised, cut into patches, turned and batched, the same way on every run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, Dataset, Sampler

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.votes import first_answers
from annotruth.methods import Batch, Method
from annotruth.methods.base import as_tensor
from annotruth.methods.protocols import KnowsConfusion
from annotruth.nn import pad_end
from annotruth.training.augment import Change, augment
from annotruth.training.fingerprint import Fingerprint
from annotruth.validation import MISSING_LABEL, MISSING_PIXEL

Progress = Callable[[int, int], None]
"""Told how many items are read, of how many."""
MAX_BYTES_IN_MEMORY = 2 * 2**30
"""Bytes of images and masks up to which a whole data set is kept in memory."""


@dataclass(frozen=True)
class Standard:
    """Mean and deviation of every channel, by which images are standardised (z-scores)."""

    mean: list[float]
    deviation: list[float]

    @classmethod
    def of(cls, images: Iterable[np.ndarray], items: Sequence[str]) -> Standard:
        """Measure images (channels, *spatial) of some items, one at a time."""
        total = square = count = np.zeros(())
        for item, image in zip(items, images):
            image = image.astype(np.float64)
            if count:
                check_channels(image, len(total), item)
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


class Items(Dataset, ABC):
    """Items that come in batches, standardised by what is measured on the items to learn from.

    Attributes
    ----------
    annotations : what the items are
    epoch : which pass over them it is, for what changes from pass to pass
    in_memory : whether all items were read when the data set was made; if not, they are read when they are needed
    """

    annotations: Annotations
    in_memory: bool
    epoch: int = 0
    _standard: Standard  # set by standardise(), before the first batch

    def __len__(self) -> int:
        return len(self.annotations)

    @abstractmethod
    def measure(self) -> Standard:
        """Mean and deviation of the channels."""

    @abstractmethod
    def standardise(self, standard: Standard) -> Self:
        """Give images standardised from now on."""


class MaskDataset(Items):
    """Batches of images (batch, channels, *spatial) and of targets (batch, targets, *spatial) made of masks.

    Every file is read once, if all fit into memory. Images of a batch that differ in size are padded at their far ends;
    padding is not labelled.

    Parameters
    ----------
    method : says what the masks teach; None = every rater's masks as they are
    patch : size of the random patches that items are cut into; None = whole items
    augment : whether items are seen in another way in each epoch
    with_truth : the annotations' truth is there to be learnt from, where it is known

    Attributes
    ----------
    mirror : axes along which items may be mirrored, if they are augmented; all, unless set
    """

    def __init__(
        self,
        annotations: Annotations,
        method: Method[Any] | None = None,
        patch: Sequence[int] | None = None,
        augment: bool = False,
        seed: int = 0,
        with_truth: bool = False,
        tell: Progress | None = None,
    ) -> None:
        self.annotations, self.method = annotations, method
        self.patch, self.augment, self.seed, self.with_truth = patch, augment, seed, with_truth
        self.mirror = tuple(range(len(annotations.shape(0))))
        pixels = sum(int(np.prod(annotations.shape(i))) for i in range(len(annotations)))
        first = self._read_image(0)
        self.in_memory = pixels * (4 * len(first) + len(annotations.raters)) <= MAX_BYTES_IN_MEMORY
        self._raw: list[np.ndarray] = []  # until they are standardised
        self._images: list[Tensor] = []
        self._labels: list[Tensor] = []
        self._fingerprints: list[Fingerprint] = []  # likewise
        for index in range(len(annotations) if self.in_memory else 0):
            self._raw.append(self._read_image(index) if index else first)
            self._labels.append(self._read_targets(index))
            self._fingerprints.append(self._fingerprint(self._raw[-1], self._labels[-1]))
            if tell is not None:
                tell(index + 1, len(annotations))
        self._confusion: Tensor | None = None
        if isinstance(method, KnowsConfusion):
            known = [method.known_confusion(annotations, i) for i in range(len(annotations))]
            self._confusion = None if known[0] is None else torch.stack([one for one in known if one is not None])

    def measure(self) -> Standard:
        images = self._raw if self.in_memory else map(self._read_image, range(len(self)))
        return Standard.of(images, self.annotations.items)

    def fingerprints(self) -> Iterable[Fingerprint]:
        """What each item is like; to be asked before they are standardised."""
        if self.in_memory:
            return self._fingerprints
        return (self._fingerprint(self._read_image(i), self._read_targets(i)) for i in range(len(self)))

    def standardise(self, standard: Standard) -> Self:
        self._standard = standard
        self._images, self._fingerprints = [], []
        while self._raw:  # one after the other, so that no two copies of all of them are there
            self._images.append(self._standardised(len(self._images), self._raw.pop(0)))
        return self

    def every_rater(self) -> MaskDataset:
        """The same items with every rater's masks, whole and as they are, to count them."""
        same = MaskDataset.__new__(MaskDataset)
        same.__dict__.update(self.__dict__, method=None, patch=None, augment=False, with_truth=False, _confusion=None)
        if self.method is None or type(self.method).mask_targets is Method.mask_targets:
            same._labels = [labels[: len(self.annotations.raters)] for labels in self._labels]
        else:  # what the method fused or chose is no rater's mask
            same._labels = [same._read_targets(index) for index in range(len(self._labels))]
        return same

    def __getitems__(self, indices: list[int]) -> Batch:
        # A generator per epoch and item: what an item looks like depends on neither batches, workers nor resuming.
        chance = [np.random.default_rng([self.seed, self.epoch, index]) for index in indices]
        of_items, of_labels = zip(*(self._one(index, rng) for index, rng in zip(indices, chance)))
        if self.augment:
            drawn = [Change.draw(len(i), i.shape[1:], self.mirror, rng) for i, rng in zip(of_items, chance)]
            of_items, of_labels = augment(of_items, of_labels, drawn)
        size = tuple(int(n) for n in np.max([image.shape[1:] for image in of_items], axis=0))
        images = torch.stack([pad_end(image, size, 0.0) for image in of_items])
        labels = torch.stack([pad_end(label, size, MISSING_PIXEL) for label in of_labels])
        confusion = None if self._confusion is None else self._confusion[indices]
        truth = None
        if self.with_truth:
            labels, truth = labels[:, :-1], labels[:, -1]
        return Batch(images, labels, torch.tensor(indices), confusion=confusion, truth=truth)

    def _read_image(self, index: int) -> np.ndarray:
        return self.annotations.item_image(index)

    def _fingerprint(self, image: np.ndarray, targets: Tensor) -> Fingerprint:
        # The first ones: after the raters' masks there may be drawings of what is not there.
        labels = targets[: len(self.annotations.raters)].numpy()
        return Fingerprint.of(image, labels, len(self.annotations.classes))

    def _standardised(self, index: int, image: np.ndarray) -> Tensor:
        check_channels(image, len(self._standard.mean), self.annotations.items[index])
        return self._standard(image)

    def _read_targets(self, index: int) -> Tensor:
        if self.method is None:
            targets = as_tensor(self.annotations.item_masks(index))
        else:
            targets = self.method.mask_targets(self.annotations, index)
        if self.with_truth:  # goes along with the raters' labels through patches and augmentation
            targets = torch.cat([targets, as_tensor(self.annotations.item_truth(index))[None]])
        return targets

    def _one(self, index: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """One item's image and targets, or a patch of them that ``rng`` chooses."""
        if self.in_memory:
            image, labels = self._images[index], self._labels[index]
        else:
            image, labels = self._standardised(index, self._read_image(index)), self._read_targets(index)
        if self.patch is None:
            return image, labels
        corner = [int(rng.integers(0, max(n - p, 0) + 1)) for n, p in zip(image.shape[1:], self.patch)]
        window = (slice(None), *[slice(c, c + p) for c, p in zip(corner, self.patch)])
        return image[window], labels[window]


class LabelTableDataset(Items):
    """Batches of images (batch, channels, *spatial) or features (batch, features), and of answers.

    A batch lists only the raters who answered something in it, so that it never grows with all raters.
    """

    def __init__(self, annotations: Annotations) -> None:
        self.annotations = annotations
        self._first = first_answers(annotations.answers, len(annotations))
        self._shape = annotations.item_image(0).shape
        self.in_memory = 4 * len(annotations) * int(np.prod(self._shape)) <= MAX_BYTES_IN_MEMORY
        self._kept: Tensor | None = None

    def measure(self) -> Standard:
        return Standard.of(map(self._image, range(len(self))), self.annotations.items)

    def standardise(self, standard: Standard) -> Self:
        self._standard = standard
        if self.in_memory:
            self._kept = torch.stack([standard(self._image(index)) for index in range(len(self))])
        return self

    def __getitems__(self, indices: list[int]) -> Batch:
        items = np.asarray(indices, dtype=np.int64)
        answers, first = self.annotations.answers, self._first[items]
        count = self._first[items + 1] - first
        row = np.repeat(np.arange(len(items)), count)
        answer = np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())
        raters, column = np.unique(answers.rater[answer], return_inverse=True)
        labels = np.full((len(items), len(raters)), MISSING_LABEL, dtype=np.int16)
        labels[row, column] = answers.label[answer]
        return Batch(
            self._images(indices), torch.from_numpy(labels), torch.from_numpy(items), torch.from_numpy(raters).long()
        )

    def _images(self, indices: Sequence[int]) -> Tensor:
        if self._kept is not None:
            return self._kept[indices]
        return torch.stack([self._standard(self._image(index)) for index in indices])

    def _image(self, index: int) -> np.ndarray:
        image = self.annotations.item_image(index)
        if image.shape != self._shape:
            raise InputError(
                f"Item {self.annotations.items[index]} has shape {image.shape}, but item {self.annotations.items[0]} "
                f"{self._shape}: a classifier needs images of one size. Resize them."
            )
        return image


def read_images(annotations: Annotations, tell: Progress | None = None) -> Annotations:
    """The same annotations with all images in memory, if they fit and are of one size: files are then read once."""
    shape = annotations.item_image(0).shape
    if isinstance(annotations._images, np.ndarray) or 4 * len(annotations) * int(np.prod(shape)) > MAX_BYTES_IN_MEMORY:
        return annotations
    images = []
    for index in range(len(annotations)):
        images.append(annotations.item_image(index))
        if tell is not None:
            tell(index + 1, len(annotations))
    return annotations.with_images(np.stack(images)) if all(image.shape == shape for image in images) else annotations


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


def check_channels(image: np.ndarray, channels: int, item: str) -> None:
    """Refuse an image of other channels than the others have."""
    if len(image) != channels:
        raise InputError(
            f"Item {item} has {len(image)} channels, but other items {channels}: every image needs the same channels."
        )
