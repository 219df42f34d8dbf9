"""cycle-mix: boxes that are mixed from one image into another."""

from __future__ import annotations

import torch

from annotruth.methods.strokes.cycle_mix import random_box


def test_mixed_boxes_lie_inside():
    torch.manual_seed(0)
    sizes = [int(random_box(torch.Size([8, 10]), torch.device("cpu")).sum()) for _ in range(50)]
    assert min(sizes) >= 20
    assert max(sizes) <= 80
    assert len(set(sizes)) > 5
