"""A rater who has labelled nothing, foretold by what is known of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from annotruth.errors import InputError
from annotruth.metrics import skill
from annotruth.nn import Confusion, GlobalConfusion
from annotruth.training.rater_counts import mean_matrices
from annotruth.training.resample import Spacings, back_on_grid

if TYPE_CHECKING:
    from annotruth.training.segmenter import Segmenter


@dataclass(frozen=True, repr=False)
class ExpectedAnnotator:
    """A rater of whom only features are known, as :meth:`Segmenter.expected_annotator` gives.

    Attributes
    ----------
    features : what is known of the rater
    """

    features: Mapping[str, Any]
    _model: Segmenter

    def __repr__(self) -> str:
        return f"ExpectedAnnotator({', '.join(f'{name}={value!r}' for name, value in self.features.items())})"

    def confusion(
        self, images: np.ndarray | Sequence[np.ndarray] | None = None, *, spacing: Spacings = None
    ) -> np.ndarray:
        """The matrix (classes, classes), [true, observed], that a rater with these features is expected to have.

        Where matrices depend on the image, ``images`` (items, channels, *spatial) are needed, over which they are
        averaged with the estimated truth as weight. ``spacing`` is as in ``Segmenter.predict_proba``.
        """
        if images is None:
            any_image = torch.zeros(1, self._model._spec.channels, *[8] * self._model._spec.dims)
            constant = self._confusion(any_image)
            if not isinstance(constant, GlobalConfusion):
                raise InputError(f"The matrices of {self._model.method} depend on the image: give confusion(images).")
            return constant.dense()[0, 0].detach().double().numpy()
        model = self._model
        tensors = model._standardise_all(images, spacing)
        sums = [mean_matrices(self._confusion, model.module_, tensor, model.plan_.patch_size) for tensor in tensors]
        rows, weights = (np.sum(part, axis=0) for part in zip(*sums))
        return rows[0] / np.maximum(weights, 1e-9)[:, None]

    def skill(self, images: np.ndarray | Sequence[np.ndarray] | None = None, *, spacing: Spacings = None) -> float:
        """Mean of the diagonal of :meth:`confusion`."""
        return float(skill(self.confusion(images, spacing=spacing)))

    @torch.no_grad()
    def predict_proba(self, image: np.ndarray, *, spacing: Sequence[float] | None = None) -> np.ndarray:
        """What would such a rater draw on an image (channels, *spatial)? Probabilities (classes, *spatial)."""
        truth = self._model.predict_proba(image[None], spacing=spacing)[0]
        matrices = self._confusion(self._model._standardised(image, "The image", spacing)[None]).dense()[0, 0]
        at_pixels = back_on_grid(matrices, image.shape[1:]) if matrices.ndim > 2 else matrices.numpy()
        return np.einsum("i...,ij...->j...", truth, at_pixels).astype(np.float32)

    def predict(self, image: np.ndarray, *, spacing: Sequence[float] | None = None) -> np.ndarray:
        """What would such a rater draw? The most likely label (*spatial) at every pixel."""
        return self.predict_proba(image, spacing=spacing).argmax(axis=0).astype(np.uint8)

    def _confusion(self, images: torch.Tensor) -> Confusion:
        columns = torch.from_numpy(self._model._rater_code.encode(self.features)).float()
        return self._model.module_.annotators.expected(images, columns)  # type: ignore[operator]
