"""What makes a comparison impossible is said before any training."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth import Annotations
from annotruth.choosing.crowd import look_at, refuse_crowd
from annotruth.errors import InputError

MASKS = np.zeros((3, 2, 4, 4), dtype=np.uint8)
MASKS[:, :, 1:3] = 1
IMAGES = np.zeros((3, 1, 4, 4), dtype=np.float32)


def test_a_look_finds_who_labelled_what():
    masks = MASKS.copy()
    masks[0, 1] = 255
    found = look_at(Annotations.from_masks(masks, images=IMAGES))
    assert found.labelled.tolist() == [[True, False], [True, True], [True, True]]
    assert found.overlaps
    assert found.classes_seen == 2


def test_the_digest_changes_with_any_label_image_or_name_but_not_with_the_truth():
    def digest(masks: np.ndarray = MASKS, images: np.ndarray = IMAGES, **more: object) -> str:
        return look_at(Annotations.from_masks(masks, images=images, **more)).digest  # type: ignore[arg-type]

    masks, images = MASKS.copy(), IMAGES.copy()
    masks[2, 1, 0, 0], images[1, 0, 3, 3] = 1, 1
    others = [digest(masks), digest(images=images), digest(raters=["ann", "bob"]), digest(spacing=(1, 2))]
    assert len({digest(), *others}) == 5
    assert digest(truth=MASKS[:, 0]) == digest()


def test_one_rater_is_refused():
    masks = MASKS.copy()
    masks[:, 1] = 255
    ann = Annotations.from_masks(masks, images=IMAGES, raters=["ann", "bob"])
    with pytest.raises(InputError, match="Only ann labelled anything"):
        refuse_crowd(ann, look_at(ann))


@pytest.mark.parametrize("ann", [
    Annotations.from_masks(0 * MASKS, images=IMAGES),
    Annotations.from_answers(np.ones((3, 2), dtype=int), images=np.zeros((3, 4))),
])  # fmt: skip
def test_one_class_is_refused(ann: Annotations) -> None:
    with pytest.raises(InputError, match="gave only one"):
        refuse_crowd(ann, look_at(ann))


def test_no_label_at_all_is_refused():
    ann = Annotations.from_masks(np.full_like(MASKS, 255), images=IMAGES)
    with pytest.raises(InputError, match="not a single label"):
        refuse_crowd(ann, look_at(ann))
