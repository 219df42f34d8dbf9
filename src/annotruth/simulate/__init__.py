"""Annotators with known ways of erring, to see whether a method finds the truth and them."""

from annotruth.simulate.digits import noisy_digits
from annotruth.simulate.drawings import simulate_boxes, simulate_drawings
from annotruth.simulate.label_raters import (
    cifar10_group,
    class_swapper,
    hammer_spammer,
    label_group,
    neighbour_mixer,
    pairwise_flipper,
    similar_mixer,
)
from annotruth.simulate.labels import simulate_labels
from annotruth.simulate.mask_raters import MASK_RATERS, MaskRater
from annotruth.simulate.masks import simulate_masks
from annotruth.simulate.simulation import Simulation

__all__ = [
    "MASK_RATERS",
    "MaskRater",
    "Simulation",
    "cifar10_group",
    "class_swapper",
    "hammer_spammer",
    "label_group",
    "neighbour_mixer",
    "noisy_digits",
    "pairwise_flipper",
    "similar_mixer",
    "simulate_boxes",
    "simulate_drawings",
    "simulate_labels",
    "simulate_masks",
]
