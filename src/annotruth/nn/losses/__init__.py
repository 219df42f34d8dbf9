"""Losses between what a network says and what raters did."""

from annotruth.nn.losses.dice import dice_loss, dice_loss_of_raters
from annotruth.nn.losses.noisy_labels import noisy_label_loss
from annotruth.nn.losses.smoothness import smoothness_loss

__all__ = ["dice_loss", "dice_loss_of_raters", "noisy_label_loss", "smoothness_loss"]
