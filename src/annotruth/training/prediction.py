"""What a trained segmenter says of new images: the truth, what people might draw, and how each rater would err."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from annotruth.errors import InputError
from annotruth.methods import DataSpec, Method, MethodModel
from annotruth.methods.inference import predict_options, sample_drawings
from annotruth.methods.protocols import PredictsRaters
from annotruth.training.dense_crf import CRF, refine_all
from annotruth.training.diagnostics import warn_of_small_images
from annotruth.training.inputs import Images, images_and_spacing
from annotruth.training.plan import Plan
from annotruth.training.rater_counts import mean_matrices
from annotruth.training.resample import Spacings, back_on_grid, grid_size, resampled, spacings
from annotruth.training.standard import Standard
from annotruth.training.windows import Predict, by_windows, mirrored
from annotruth.validation import finite_image, voxel_spacing


class PredictionMixin:
    """Mixed into ``Segmenter``."""

    augment: bool
    method_: Method[Any]
    module_: MethodModel
    plan_: Plan
    raters_: tuple[str, ...]
    confusion_: Any
    _spec: DataSpec
    _standard: Standard

    @torch.no_grad()
    def predict_proba(
        self,
        images: Images,
        *,
        spacing: Spacings = None,
        recurrence: int | None = None,
        confidences: Mapping[str, float] | Sequence[float] | None = None,
        crf: CRF = False,
    ) -> Any:
        """Probabilities of the true class: (items, classes, *spatial) float32 for images (items, channels, *spatial).

        A list of images of different sizes gives a list. Annotations give their images, and their spacing where none is
        named. A model that was trained with ``augment`` looks at each image in all the ways in which the plan lets it
        be mirrored, and gives the mean.

        Parameters
        ----------
        spacing : millimetres from pixel to pixel along each axis, one tuple for all images or one for each. A model
            that was trained at some spacing (``plan_.spacing``) resamples images to it, and gives probabilities on
            their own grid; None = they have that spacing already. Other models take no notice of it
        recurrence : of ``mrprism``, the estimate after this recurrence, counted from 0; None = the last
        confidences : of ``mrprism`` and ``mrnet``, how far to trust raters: ``{"rater_1": 2}``, the others 1, or one
            number for each
        crf : let every pixel listen to those near it, most to those that look alike: True, or a
            :class:`~annotruth.training.DenseCRF` with weights of your own
        """
        check_is_fitted(self, "annotators_")
        options = predict_options(self.method_, self.raters_, recurrence=recurrence, confidences=confidences)
        images, spacing = images_and_spacing(images, spacing)
        tensors = self._standardise_all(images, spacing)
        probabilities, sizes = [], []
        for image, tensor in zip(images, tensors):
            probabilities.append(self._predict_one(tensor, np.shape(image)[1:], options))
            sizes.append(tuple(tensor.shape[1:]))
        names = [f"image {position}" for position in range(len(images))]
        warn_of_small_images(self.module_, names, sizes, stacklevel=4)
        probabilities = refine_all(crf, probabilities, images, spacing)
        return np.stack(probabilities) if len({p.shape for p in probabilities}) == 1 else probabilities

    def predict(self, images: Images, **options: Any) -> Any:
        """The most likely class at every pixel: (items, *spatial) uint8; arguments are those of ``predict_proba``."""
        probabilities = self.predict_proba(images, **options)
        if isinstance(probabilities, np.ndarray):
            return probabilities.argmax(axis=1).astype(np.uint8)
        return [p.argmax(axis=0).astype(np.uint8) for p in probabilities]

    @torch.no_grad()
    def sample(self, images: Images, n: int, seed: int = 0, *, spacing: Spacings = None) -> Any:
        """What n people might draw on each image: (n, items, *spatial) uint8.

        Where the method learns how each rater errs, a drawing is what one of them would draw, picked at random, with
        the variety that the probabilities of that rater's labels leave (``separate``: what one of its networks draws).
        ``prob-unet`` draws from its latent. Other methods know of no variety, and give their one prediction n times.

        Each drawing is one person's: chance decides once per drawing and image, never pixel by pixel, and stays the
        same for all windows of an image that is predicted by patches.

        Images of different sizes give a list, (n, *spatial) for each. The same seed gives the same drawings.
        ``spacing`` is as in ``predict_proba``.
        """
        check_is_fitted(self, "annotators_")
        if n < 1:
            raise InputError(f"n is how many drawings to make of each image, at least 1, not {n}.")
        images, spacing = images_and_spacing(images, spacing)
        drawings = [
            self._sample_one(tensor, np.shape(image)[1:], position, n, seed)
            for position, (image, tensor) in enumerate(zip(images, self._standardise_all(images, spacing)))
        ]
        return np.stack(drawings, axis=1) if len({d.shape for d in drawings}) == 1 else drawings

    @torch.no_grad()
    def rater_proba(self, image: np.ndarray, *, spacing: Sequence[float] | None = None) -> np.ndarray | None:
        """What every rater would draw on one image: probabilities (raters, classes, *spatial).

        None where the method tells that only by the truth and the raters' matrices. ``spacing`` is as in
        ``predict_proba``.
        """
        if not isinstance(self.method_, PredictsRaters):
            return None
        draw = partial(self.method_.rater_probabilities, self.module_)
        tensor = self._standardised(image, "The image", spacing)
        scores = self._by_windows(tensor[None], self._mirrored(lambda part: draw(part).flatten(1, 2)))[0]
        return back_on_grid(scores.unflatten(0, (len(self.raters_), -1)), image.shape[1:])

    @torch.no_grad()
    def confusion_maps(self, image: np.ndarray, *, spacing: Sequence[float] | None = None) -> np.ndarray | None:
        """Every rater's matrix at every pixel of one image: (raters, classes, classes, *spatial).

        None where the method gives each rater only one matrix. ``spacing`` is as in ``predict_proba``.
        """
        if not self.method_.learns_annotators:
            return None
        tensor = self._standardised(image, "The image", spacing)
        maps = self.method_.confusion(self.module_, tensor[None]).dense()
        return back_on_grid(maps[0], image.shape[1:]) if maps.ndim == 4 + self._spec.dims else None

    @torch.no_grad()
    def confusion(self, images: Images, *, spacing: Spacings = None) -> np.ndarray:
        """Every rater's confusion on each of these images: (items, raters, classes, classes).

        Pixel matrices are averaged with the estimated truth as weight; where the method has one matrix per rater, every
        image gets that one. ``spacing`` is as in ``predict_proba``.
        """
        if not self.method_.learns_annotators:
            return np.broadcast_to(self.confusion_, (len(images), *self.confusion_.shape)).copy()
        tensors = self._standardise_all(*images_and_spacing(images, spacing))
        matrices = partial(self.method_.confusion, self.module_)
        sums = [mean_matrices(matrices, self.module_, tensor, self.plan_.patch_size) for tensor in tensors]
        return np.stack([rows / np.maximum(weights, 1e-9)[:, None] for rows, weights in sums])

    def _predict_one(self, image: torch.Tensor, size: Sequence[int], options: Mapping[str, Any]) -> np.ndarray:
        predict = self._mirrored(lambda part: self.module_.log_truth(part, **options).exp())
        scores = self._by_windows(image[None], predict)[0]
        return back_on_grid(scores / scores.sum(dim=0), size)

    def _sample_one(self, image: torch.Tensor, size: Sequence[int], position: int, n: int, seed: int) -> np.ndarray:
        def draw(part: torch.Tensor) -> torch.Tensor:
            # The same in every window, and in every mirror image of it.
            generator = torch.Generator().manual_seed(hash((seed, position)) % 2**63)
            drawn = sample_drawings(self.method_, self.module_, part, n, generator, self._spec)
            return drawn.transpose(0, 1).flatten(1, 2)

        drawn = self._by_windows(image[None], self._mirrored(draw))[0].unflatten(0, (n, -1))
        return back_on_grid(drawn, size).argmax(axis=1).astype(np.uint8)

    def _mirrored(self, predict: Predict) -> Predict:
        """The mean over mirror images, unless the network never saw any."""
        return mirrored(predict, self.plan_.mirror) if self.augment else predict

    def _by_windows(self, image: torch.Tensor, predict: Predict) -> torch.Tensor:
        return by_windows(image, self.plan_.patch_size, predict)

    def _standardise_all(self, images: np.ndarray | Sequence[np.ndarray], spacing: Spacings) -> Iterator[torch.Tensor]:
        every = spacings(spacing, len(images))
        return (self._standardised(image, f"Image {at}", one) for at, (image, one) in enumerate(zip(images, every)))

    def _standardised(self, image: np.ndarray, where: str, spacing: Sequence[float] | None = None) -> torch.Tensor:
        """An image as it was learnt from: at the plan's spacing, where its own is told, and standardised."""
        image = finite_image(image, where)
        dims, target = self._spec.dims, self.plan_.spacing
        if image.ndim != dims + 1 or len(image) != self._spec.channels:
            raise InputError(
                f"{where} has shape {image.shape}; the model needs (channels, *spatial) with {self._spec.channels} "
                f"channel(s) and {dims} spatial axes."
            )
        if spacing is not None and target is not None:
            size = grid_size(image.shape[1:], voxel_spacing(spacing, dims, where), target)
            image = resampled(image, size)
        return self._standard(image)
