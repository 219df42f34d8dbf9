"""lc-mil: bags of marked pixels, and labels cleaned by the network."""

from __future__ import annotations

import math

import pytest
import torch

from annotruth.methods.strokes.lc_mil import bag_loss, cleaned


def test_a_bag_is_what_its_marked_pixels_are_on_average():
    found = torch.tensor([0.9, 0.1, 0.1, 0.9]).repeat(1, 4, 1)
    log_truth = torch.stack([1 - found, found], dim=1).log()
    labels = torch.full((1, 4, 4), 255, dtype=torch.uint8)
    labels[0, :, :2] = 1  # 0.9 and 0.1
    assert bag_loss(log_truth, labels).item() == pytest.approx(-math.log(0.5))
    labels[0, :, 2] = 0  # background counts pixel by pixel, and as much as the class
    assert bag_loss(log_truth, labels).item() == pytest.approx(-(math.log(0.5) + math.log(0.9)) / 2)


def test_no_class_is_cleaned_away():
    log_truth = torch.tensor([[[0.9, 0.9], [0.1, 0.1]]]).log()
    labels = torch.tensor([[[1, 0]]])
    torch.testing.assert_close(cleaned(log_truth, labels), labels)
