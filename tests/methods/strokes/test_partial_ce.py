"""Cross-entropy on strokes alone, against a loop."""

from __future__ import annotations

import numpy as np
import torch

from annotruth.methods.strokes.partial_ce import stroke_loss


def test_partial_cross_entropy_is_that_of_a_loop():
    torch.manual_seed(0)
    log_truth = torch.randn(2, 3, 4, 4).log_softmax(dim=1)
    labels = torch.randint(0, 3, (2, 4, 4, 4), dtype=torch.uint8)
    labels[torch.rand(labels.shape) < 0.5] = 255
    terms = []
    for b, d, y, x in np.ndindex(2, 4, 4, 4):
        if labels[b, d, y, x] < 3:
            p = log_truth[b, int(labels[b, d, y, x]), y, x].exp()
            terms.append(-p.log() if d < 2 else -((1 - p) / 2).log())
    torch.testing.assert_close(stroke_loss(log_truth, labels)[0], torch.stack(terms).mean())
