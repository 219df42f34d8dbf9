"""Items of a label table as tensors: images or features, and who answered what."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.votes import first_answers
from annotruth.methods import Batch
from annotruth.training.datasets import MEMORY, Items, Standard


class LabelTableDataset(Items):
    """Batches of images (batch, channels, *spatial) or features (batch, features), and of answers.

    A batch lists only the raters who answered something in it, so that it never grows with all raters.
    """

    def __init__(self, annotations: Annotations, standard: Standard) -> None:
        self.annotations, self.standard = annotations, standard
        self._first = first_answers(annotations.answers, len(annotations))
        self._shape = annotations.item_image(0).shape
        fits = 4 * len(annotations) * int(np.prod(self._shape)) <= MEMORY
        self._kept = torch.stack([self._read(index) for index in range(len(annotations))]) if fits else None

    def __getitems__(self, indices: list[int]) -> Batch:
        items = np.asarray(indices, dtype=np.int64)
        answers, first = self.annotations.answers, self._first[items]
        count = self._first[items + 1] - first
        row = np.repeat(np.arange(len(items)), count)
        answer = np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())
        raters, column = np.unique(answers.rater[answer], return_inverse=True)
        labels = np.full((len(items), len(raters)), -1, dtype=np.int16)
        labels[row, column] = answers.label[answer]
        return Batch(
            self._images(indices), torch.from_numpy(labels), torch.from_numpy(items), torch.from_numpy(raters).long()
        )

    def _images(self, indices: Sequence[int]) -> Tensor:
        if self._kept is not None:
            return self._kept[indices]
        return torch.stack([self._read(index) for index in indices])

    def _read(self, index: int) -> Tensor:
        image = self.annotations.item_image(index)
        if image.shape != self._shape:
            raise InputError(
                f"Item {self.annotations.items[index]} has shape {image.shape}, but item {self.annotations.items[0]} "
                f"{self._shape}: a classifier needs images of one size. Resize them."
            )
        return self.standard(image)
