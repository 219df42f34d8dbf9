"""Two stages: masks cut out of each image by its strokes, then a network on these masks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from annotruth.data.annotations import Annotations
from annotruth.methods.base import DataSpec, Method, MethodModel, as_tensor
from annotruth.methods.registry import register
from annotruth.methods.strokes.cuts import alike, grab_cut, graph_cut, max_flow, opencv
from annotruth.methods.strokes.drawings import check_strokes, seeds
from annotruth.validation import MISSING_PIXEL


@register
@dataclass(frozen=True)
class GrabCut(Method[MethodModel]):
    """GrabCut on each class by itself: it models the colours of the object and of the rest by mixtures of Gaussians.

    It starts from unmarked pixels being what the marked ones most like them in colour are.
    Several classes are cut one by one, later ones on top; OpenCV does it in 2D, volumes go slice by slice.
    """

    name = "grab-cut"
    paper = "Rother et al. 2004; two-stage comparison of the coarse-label paper"
    summary = "a network on masks that GrabCut makes of strokes"
    tasks = ("masks",)
    learns_from_raters = False

    def check(self, annotations: Annotations) -> None:
        opencv()
        check_strokes(annotations)

    def cut(self, image: np.ndarray, inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
        """The object, bool (*spatial), of which some pixels are known to be inside and outside."""
        maybe = alike(image, inside, outside) if inside.any() and outside.any() else np.zeros_like(inside)
        return grab_cut(image, inside, outside, maybe)

    def mask_targets(self, annotations: Annotations, index: int) -> Tensor:
        marked, said_not = seeds(annotations, index)
        if (marked == MISSING_PIXEL).all() and not said_not.any():
            return as_tensor(marked[None])  # an image without strokes teaches nothing
        mask = np.zeros_like(marked)
        for number in range(1, len(annotations.classes)):
            inside = marked == number
            outside = said_not[number] | ((marked != number) & (marked != MISSING_PIXEL))
            if inside.any():
                mask[self.cut(annotations.item_image(index), inside, outside)] = number
        return as_tensor(np.where(marked != MISSING_PIXEL, marked, mask)[None])

    def n_targets(self, spec: DataSpec) -> int:
        return 1


@register
@dataclass(frozen=True)
class LazySnapping(GrabCut):
    """A graph cut on each class by itself, with the colours near the strokes.

    Simplified: pixels take the place of the paper's watershed regions, which only made it faster, and nobody corrects
    the border by hand.
    """

    name = "lazy-snapping"
    paper = "Li et al. 2004; two-stage comparison of the coarse-label paper"
    summary = "a network on masks that a graph cut makes of strokes"

    def check(self, annotations: Annotations) -> None:
        max_flow()
        check_strokes(annotations)

    def cut(self, image: np.ndarray, inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
        return graph_cut(image, inside, outside)
