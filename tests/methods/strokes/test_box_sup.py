"""box-sup: estimates inside boxes, and what is learnt from them."""

from __future__ import annotations

import numpy as np
import torch

from annotruth import Segmenter
from annotruth.methods.strokes.box_sup import estimates_in_boxes
from annotruth.simulate import simulate_boxes


def test_boxes_are_not_emptied():
    log_truth = torch.tensor([[[0.9] * 4, [0.1] * 4]]).log()
    boxes = torch.tensor([[[1, 1, 0, 255]]])
    torch.testing.assert_close(estimates_in_boxes(log_truth, boxes, boxes), boxes)


def test_box_methods_learn_from_boxes():
    rng = np.random.default_rng(0)
    truth = np.zeros((12, 24, 24), dtype=np.uint8)
    for mask in truth:
        y, x = rng.integers(1, 10, size=2)
        mask[y : y + 5, x : x + 11] = mask[y : y + 11, x : x + 5] = 1
    images = (truth * 2 + 0.2 * rng.standard_normal(truth.shape))[:, None].astype(np.float32)
    boxes = simulate_boxes(truth).annotations(images=images)
    model = Segmenter("box-sup", max_epochs=10, batch_size=2, validation=0.2, progress=False).fit(boxes)
    found = model.predict(images) == 1
    wrong = (found != (truth == 1)).mean()
    assert wrong < 0.5 * ((boxes.masks[:, 0] == 1) != (truth == 1)).mean()
