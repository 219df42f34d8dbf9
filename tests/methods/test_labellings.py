"""What may be the truth: everybody's drawings, and what all of them say together."""

from __future__ import annotations

import numpy as np
import torch

from annotruth.data.annotations import Annotations
from annotruth.fusion import DawidSkene
from annotruth.methods.labellings import TOGETHER, fused_confusion, labelling_count, labellings

UNKNOWN = [255, 255, 255]


def chances(says_one: list[list[float]]) -> torch.Tensor:
    """Log-probabilities (1, raters, 2, 1, pixels) of drawings that say one so surely."""
    one = torch.tensor(says_one)
    return torch.stack([1 - one, one], dim=1).log().unsqueeze(0).unsqueeze(3)


def test_foretold_are_each_raters_own_their_mean_their_vote_their_fusion_and_the_networks():
    drawings = chances([[0.9, 0.6, 0.1], [0.6, 0.1, 0.1], [0.1, 0.9, 0.6]])
    log_truth = torch.tensor([[[[0.9, 0.2, 0.9]], [[0.1, 0.8, 0.1]]]]).log()
    nothing = torch.full((1, 3, 1, 3), 255, dtype=torch.uint8)
    third_is_right = torch.tensor([[[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]], [[0.99, 0.01], [0.01, 0.99]]])
    foretold, drawn = labellings(drawings, nothing, log_truth, third_is_right.log())
    found = foretold[:, 0, 0].tolist()
    assert len(found) == labelling_count(3) == 6 + len(TOGETHER)
    assert found[:3] == found[3:6] == [[1, 1, 0], [1, 0, 0], [0, 1, 1]]
    assert found[6:] == [[1, 1, 0], [1, 1, 0], [1, 1, 0], [0, 1, 1], [0, 1, 1], [0, 1, 0]]
    assert (drawn == 255).all()


def test_drawn_are_raters_own_and_what_two_or_more_say():
    labels = torch.tensor([[1, 0, 1], [1, 1, 255], [0, 255, 255]], dtype=torch.uint8).view(1, 3, 1, 3)
    likely = chances([[0.9] * 3] * 3)  # decides the tie
    confusion = torch.tensor([[0.6, 0.4], [0.4, 0.6]]).expand(3, 2, 2).log()
    _, drawn = labellings(likely, labels, likely[:, 0], confusion)
    found = drawn[:, 0, 0].tolist()
    assert found[:3] == [[1, 0, 1], [1, 1, 255], [0, 255, 255]]
    assert found[3:] == [*[UNKNOWN] * 4, [1, 1, 255], UNKNOWN, [1, 1, 255], UNKNOWN, UNKNOWN]


def test_the_fused_labelling_is_dawid_and_skenes():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, (4, 1, 12, 12))
    right = rng.random((4, 5, 12, 12)) < np.array([0.9, 0.8, 0.7, 0.5, 0.4])[:, None, None]
    masks = np.where(right, truth, (truth + rng.integers(1, 3, right.shape)) % 3).astype(np.uint8)
    log_confusion = torch.from_numpy(fused_confusion(list(masks), 5, 3)).float()
    even = torch.full((4, 5, 3, 12, 12), 1 / 3).log()
    _, drawn = labellings(even, torch.from_numpy(masks), even[:, 0], log_confusion)
    fused = np.stack(DawidSkene().fit(Annotations.from_masks(masks, classes=3)).predict())
    assert (
        drawn[2 * 5 + TOGETHER.index("the fused labels")].numpy() == fused
    ).mean() > 0.98  # but for the classes' frequencies


def test_one_label_of_each_item_still_gives_matrices():
    masks = np.full((6, 3, 4, 4), 255, dtype=np.uint8)
    for item in range(6):
        masks[item, item % 3] = item % 2
    assert np.isfinite(fused_confusion(list(masks), 3, 2)).all()
