"""Annotators with known ways of erring, to see whether a method finds the truth and them."""

from annotruth.simulate.digits import noisy_digits
from annotruth.simulate.mask_raters import MASK_RATERS, MaskRater
from annotruth.simulate.masks import simulate_masks
from annotruth.simulate.simulation import Simulation

__all__ = ["MASK_RATERS", "MaskRater", "Simulation", "noisy_digits", "simulate_masks"]
