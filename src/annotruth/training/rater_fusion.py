"""What a trained segmenter says of masks that are at hand: whom to believe where, and what they amount to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError, shorten
from annotruth.methods import DataSpec, Method, MethodModel
from annotruth.methods.inference import fuse_labels, predict_options, rater_confidences
from annotruth.methods.protocols import FusesLabels
from annotruth.training.resample import back_on_grid, nearest
from annotruth.validation import MISSING_PIXEL

Confidences = Mapping[str, float] | Sequence[float] | None


class RaterFusionMixin:
    """Mixed into ``Segmenter``."""

    method: str
    method_: Method[Any]
    module_: MethodModel
    classes_: Any
    raters_: tuple[str, ...]
    _spec: DataSpec
    _standardised: Callable[[np.ndarray, str, Sequence[float] | None], Tensor]
    _by_windows: Callable[[Tensor, Callable[[Tensor], Tensor]], Tensor]

    @torch.no_grad()
    def rater_confidences_(
        self,
        image: np.ndarray,
        *,
        spacing: Sequence[float] | None = None,
        recurrence: int | None = None,
        confidences: Confidences = None,
    ) -> np.ndarray:
        """How probable each rater is to be right, at every pixel of an image: (raters, *spatial) float32.

        Parameters
        ----------
        image : (channels, *spatial)
        spacing, recurrence, confidences : as in ``predict_proba``
        """
        options = self._options(recurrence, confidences)
        found = self._by_windows(
            self._standardised(image, "The image", spacing)[None],
            lambda part: rater_confidences(self.method_, self.module_, part, self._spec.raters, **options),
        )
        return back_on_grid(found[0], image.shape[1:])

    @torch.no_grad()
    def fuse(self, annotations: Annotations, *, recurrence: int | None = None, confidences: Confidences = None) -> Any:
        """Fuse masks that raters drew, by what the model knows of them and sees in the images.

        Where ``predict_proba`` looks at images alone, this looks at the masks, too. Both are resampled, where the model
        was trained at some spacing, and the result is given on the images' own grid.

        Parameters
        ----------
        annotations : masks with images, by raters whom the model was trained on, or some of them
        recurrence, confidences : as in ``predict_proba``

        Returns
        -------
        Probabilities of the true class: (items, classes, *spatial) float32, a list where sizes differ.

        Examples
        --------
        >>> import annotruth as at
        >>> from annotruth.simulate import noisy_digits, simulate_masks
        >>> images, truth, _ = noisy_digits(30)
        >>> ann = simulate_masks(truth, ["good", "over", "under"]).annotations(images=images)
        >>> model = at.Segmenter("mrprism", max_epochs=1, validation=0, progress=False).fit(ann)
        >>> model.fuse(ann.take([0, 1])).shape
        (2, 2, 28, 28)
        """
        options = self._options(recurrence, confidences)
        place = self._places(annotations)
        fused = []
        for index, item in enumerate(annotations.items):
            image = self._standardised(annotations.item_image(index), f"Item {item}", annotations.spacing(index))
            labels = torch.full((self._spec.raters, *image.shape[1:]), float(MISSING_PIXEL))
            drawn = torch.from_numpy(annotations.item_masks(index).astype(np.float32))
            labels[place] = nearest(drawn, image.shape[1:])

            def fuse_window(part: Tensor) -> Tensor:  # a window of image and labels together
                seen, said = part.split([self._spec.channels, self._spec.raters], dim=1)
                return fuse_labels(self.method_, self.module_, seen, said.to(torch.uint8), **options)

            found = self._by_windows(torch.cat([image, labels])[None], fuse_window)[0]
            fused.append(back_on_grid(found / found.sum(dim=0), annotations.shape(index)))
        return np.stack(fused) if len({one.shape for one in fused}) == 1 else fused

    def _options(self, recurrence: int | None, confidences: Confidences) -> dict[str, Any]:
        check_is_fitted(self, "annotators_")
        if not (self.method_.learns_annotators or isinstance(self.method_, FusesLabels)):
            raise InputError(
                f"The method {self.method} learns nothing of its raters. Train mrprism, pixel-cm or global-cm, or fuse "
                "masks without images (STAPLE)."
            )
        return predict_options(self.method_, self.raters_, recurrence=recurrence, confidences=confidences)

    def _places(self, annotations: Annotations) -> list[int]:
        """Where the raters of some annotations stand among those of the training."""
        if annotations.kind != "masks" or not annotations.has_images:
            raise InputError("Masks are fused together with their images; give masks, and images with images=.")
        if annotations.classes != tuple(self.classes_):
            raise InputError(
                f"The model knows the classes {shorten(list(self.classes_))}, the masks {shorten(annotations.classes)}."
            )
        strangers = [name for name in annotations.raters if name not in self.raters_]
        if strangers:
            raise InputError(
                f"The model was trained on {len(self.raters_)} raters and knows nothing of {shorten(strangers)}. Leave "
                "their masks out, or train anew with them."
            )
        return [self.raters_.index(name) for name in annotations.raters]
