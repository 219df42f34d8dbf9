"""Items as tensors: read, standardised, cut into patches and turned, the same way on every run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.votes import first_answers
from annotruth.methods import Batch, Method
from annotruth.methods.base import as_tensor
from annotruth.methods.protocols import KnowsConfusion
from annotruth.nn import pad_end
from annotruth.training.augment import Change, augment, augment_pictures
from annotruth.training.fingerprint import Fingerprint
from annotruth.training.resample import grid_sizes, nearest, resampled
from annotruth.training.standard import Standard, check_channels
from annotruth.validation import MISSING_LABEL, MISSING_PIXEL

Progress = Callable[[int, int], None]
"""Told how many items are read, of how many."""
MAX_BYTES_IN_MEMORY = 2 * 2**30
"""Bytes of images and masks up to which a whole data set is kept in memory."""
MOST_MARKED = 1000
"""Pixels of each class of an item around which patches are laid; no more are kept in mind."""


class Items(Dataset, ABC):
    """Items that come in batches, standardised by what is measured on the items to learn from.

    Attributes
    ----------
    annotations : what the items are
    epoch : which pass over them it is, for what changes from pass to pass
    repeats : how often a pass takes each item, which may look different each time
    in_memory : whether all items were read when the data set was made; if not, they are read when they are needed
    augment : whether items are seen in another way on every pass
    """

    annotations: Annotations
    in_memory: bool
    epoch: int = 0
    repeats: int = 1
    augment: bool = False
    _standard: Standard  # set by standardise(), before the first batch

    def __len__(self) -> int:
        return len(self.annotations)

    @abstractmethod
    def measure(self) -> Standard:
        """Mean and deviation of the channels."""

    @abstractmethod
    def standardise(self, standard: Standard) -> Self:
        """Give images standardised from now on."""

    def as_they_are(self) -> Self:
        """The same items without augmentation, to look at what a model makes of them."""
        same = copy(self)
        same.augment = False
        return same


class MaskDataset(Items):
    """Batches of images (batch, channels, *spatial) and of targets (batch, targets, *spatial) made of masks.

    Every file is read once, if all fit into memory, and resampled, if a spacing is given: images linearly, targets from
    the nearest pixel. Images of a batch that differ in size are padded at their far ends;
    padding is not labelled.

    Parameters
    ----------
    method : says what the masks teach; None = every rater's masks as they are
    patch : size of the random patches that items are cut into; None = whole items
    augment : whether items are seen in another way in each epoch
    with_truth : the annotations' truth is there to be learnt from, where it is known
    foreground : share of the patches that are laid around a pixel that somebody labelled as no background
    repeats : how many patches of each item an epoch takes
    spacing : what items are resampled to; None = they stay as they are

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
        *,
        foreground: float = 0.0,
        repeats: int = 1,
        spacing: Sequence[float] | None = None,
    ) -> None:
        self.annotations, self.method = annotations, method
        self.foreground, self.repeats, self._sizes = foreground, repeats, grid_sizes(annotations, spacing)
        self.patch, self.augment, self.seed, self.with_truth = patch, augment, seed, with_truth
        self.mirror = tuple(range(len(annotations.shape(0))))
        pixels = sum(int(np.prod(size)) for size in self._sizes)
        first = annotations.item_image(0)
        self.in_memory = pixels * (4 * len(first) + len(annotations.raters)) <= MAX_BYTES_IN_MEMORY
        self._raw: list[np.ndarray] = []  # until they are standardised
        self._images: list[Tensor] = []
        self._labels: list[Tensor] = []
        self._fingerprints: list[Fingerprint] = []  # likewise
        self._marked: dict[int, list[np.ndarray]] = {}  # some foreground pixels of items that were asked for them
        for index in range(len(annotations) if self.in_memory else 0):
            image, targets = annotations.item_image(index) if index else first, self._read_targets(index)
            self._fingerprints.append(self._fingerprint(image, targets))
            self._raw.append(self._on_grid(index, image))
            self._labels.append(nearest(targets, self._sizes[index]))
            if tell is not None:
                tell(index + 1, len(annotations))
        self._confusion: Tensor | None = None
        if isinstance(method, KnowsConfusion):
            known = [method.known_confusion(annotations, i) for i in range(len(annotations))]
            self._confusion = None if known[0] is None else torch.stack([one for one in known if one is not None])

    def shape(self, index: int) -> tuple[int, ...]:
        """One item's spatial size, as it is learnt from."""
        return self._sizes[index]

    def measure(self, clip: Sequence[Sequence[float]] | None = None) -> Standard:
        images = self._raw if self.in_memory else map(self._image, range(len(self)))
        return Standard.of(images, self.annotations.items, clip)

    def fingerprints(self) -> Iterable[Fingerprint]:
        """What each item is like; to be asked before they are standardised."""
        if self.in_memory:
            return self._fingerprints
        read = self.annotations.item_image
        return (self._fingerprint(read(index), self._read_targets(index)) for index in range(len(self)))

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
            same._labels = [same._targets(index) for index in range(len(self._labels))]
        return same

    def __getitems__(self, indices: list[int]) -> Batch:
        # A generator per epoch and item: what an item looks like depends on neither batches, workers nor resuming.
        # What lies beyond the last item is the first one again, and looks different.
        chance = [np.random.default_rng([self.seed, self.epoch, index]) for index in indices]
        indices = [index % len(self) for index in indices]
        pairs = [self._one(index, rng) for index, rng in zip(indices, chance)]
        if self.augment:
            changes = [Change.draw(len(one), one.shape[1:], self.mirror, rng) for (one, _), rng in zip(pairs, chance)]
            pairs = list(zip(*augment([one for one, _ in pairs], [said for _, said in pairs], changes)))
        size = tuple(int(n) for n in np.max([image.shape[1:] for image, _ in pairs], axis=0))
        images = torch.stack([pad_end(image, size, 0.0) for image, _ in pairs])
        labels = torch.stack([pad_end(label, size, MISSING_PIXEL) for _, label in pairs])
        confusion = None if self._confusion is None else self._confusion[indices]
        truth = None
        if self.with_truth:
            labels, truth = labels[:, :-1], labels[:, -1]
        return Batch(images, labels, torch.tensor(indices), confusion=confusion, truth=truth)

    def _image(self, index: int) -> np.ndarray:
        return self._on_grid(index, self.annotations.item_image(index))

    def _on_grid(self, index: int, image: np.ndarray) -> np.ndarray:
        return resampled(image, self._sizes[index])

    def _targets(self, index: int) -> Tensor:
        return nearest(self._read_targets(index), self._sizes[index])

    def _fingerprint(self, image: np.ndarray, targets: Tensor) -> Fingerprint:
        return Fingerprint.of(image, self._said(targets), len(self.annotations.classes))

    def _said(self, targets: Tensor) -> np.ndarray:
        """The classes that pixels are given: after the raters' masks there may be drawings of what is not there."""
        return targets[: len(self.annotations.raters)].numpy()

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
            image, labels = self._standardised(index, self._image(index)), self._targets(index)
        if self.patch is None:
            return image, labels
        last = [max(n - p, 0) for n, p in zip(image.shape[1:], self.patch)]
        corner = [int(rng.integers(0, most + 1)) for most in last]
        if self.foreground and rng.random() < self.foreground:
            classes = self._foreground(index, labels)
            if classes:
                pixels = classes[rng.integers(len(classes))]
                pixel = pixels[rng.integers(len(pixels))]
                bounds = [(max(at - p + 1, 0), min(at, most)) for at, p, most in zip(pixel, self.patch, last)]
                corner = [int(rng.integers(low, high + 1)) for low, high in bounds]
        window = (slice(None), *[slice(c, c + p) for c, p in zip(corner, self.patch)])
        return image[window], labels[window]

    def _foreground(self, index: int, targets: Tensor) -> list[np.ndarray]:
        """Some pixels (pixels, axes) of each class but the background that somebody gave; looked for once."""
        if index not in self._marked:
            said, rng = self._said(targets), np.random.default_rng([self.seed, index])
            present = np.flatnonzero(np.bincount(said.ravel())[1 : len(self.annotations.classes)]) + 1
            self._marked[index] = []
            for number in present.tolist():
                found = np.flatnonzero((said == number).any(axis=0))
                if len(found) > MOST_MARKED:
                    found = rng.choice(found, MOST_MARKED, replace=False)
                self._marked[index].append(np.stack(np.unravel_index(found, said.shape[1:]), axis=1).astype(np.int32))
        return self._marked[index]


class LabelTableDataset(Items):
    """Batches of images (batch, channels, *spatial) or features (batch, features), and of answers.

    A batch lists only the raters who answered something in it, so that it never grows with all raters.
    """

    def __init__(self, annotations: Annotations, augment: bool = False, seed: int = 0) -> None:
        self.annotations, self.augment, self.seed = annotations, augment, seed
        self._chance = (-1, np.empty((0, 0)))  # an epoch, and what it decides by
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
        images = self._images(indices)
        if self.augment:
            images = augment_pictures(images, self._chances()[items])
        return Batch(images, torch.from_numpy(labels), torch.from_numpy(items), torch.from_numpy(raters).long())

    def _chances(self) -> np.ndarray:
        """All items' random numbers of this epoch: what an item looks like depends on neither batches nor resuming."""
        epoch, chances = self._chance
        if epoch != self.epoch:
            chances = np.random.default_rng([self.seed, self.epoch, 1]).random((len(self), len(self._shape) + 1))
            self._chance = (self.epoch, chances)
        return chances

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
