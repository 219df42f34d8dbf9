"""Methods that learn from masks cut out around strokes, and the libraries that do the cutting."""

from __future__ import annotations

import builtins

import numpy as np
import pytest

from annotruth import Annotations
from annotruth.errors import InputError
from annotruth.methods import make_method
from annotruth.simulate import simulate_drawings


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
